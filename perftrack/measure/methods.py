"""The methods of measuring that ship: one default and one quick one for each backend."""

from msgspec.structs import replace

from perftrack.model import Backend, Method

_CUDA = Method(
    version=3,
    # 50 samples of 2 ms: on an H200, a tenth of a second gave medians within 0.1 % of those of half a second, which is
    # less than they move from process to process; more processes tell more than longer ones
    timed_s=0.1,
    warmup_s=0.1,
    # where arrays lie moves a kernel by 0.1 to 0.6 % (standard deviation over sets; attention over a long cache by
    # 1 %), and the median of a round by that ÷ √sets; more than 32 would fill half of the memory in most cases
    sets=32,
)
_CPU = Method(
    timer="host",
    blocks=15,
    timed_s=0.4,
    warmup_s=0.1,
    max_warmup_s=0.4,
    # memory is shared with every other process: a copy may take twice its usual time and say nothing of the code
    canary_limit=1.0,
)


def default_method(backend: Backend) -> Method:
    """What `perftrack submit` uses."""
    return _CUDA if backend == "cuda" else _CPU


def quick_method(backend: Backend) -> Method:
    """What `--quick` uses: less than half the samples, so only larger changes show."""
    short = replace(default_method(backend), name="quick", blocks=10, max_warmup_s=0.5)
    if backend == "cuda":
        return replace(short, timed_s=0.04)
    return replace(short, timed_s=0.15, warmup_s=0.05, max_warmup_s=0.15)

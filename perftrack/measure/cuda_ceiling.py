"""Ceilings: what the card's memory gives to the simplest kernel of each mix of reads and writes."""

import statistics
from collections.abc import Callable
from typing import Any

import cupy as cp

from perftrack.measure.cuda_kernels import Kernels

_ARRAY_BYTES = 1 << 30
_MAX_SHARE = 0.25
_SEED_WORDS = 1 << 22
_REPEATS = 15
_CALLS = 3
_BLOCKS = (256, 512)
_WARMUP_S = 0.05


def measure_ceiling(kernels: Kernels, reads: int, time_calls: Callable[[Callable[[], Any], int], float]) -> float:
    """Bytes per second of the best launch shape, each by its median; arrays of 1 GiB or a quarter of the memory.

    `time_calls(call, n)` gives the device seconds of `n` calls. Work that hardly reads (0) is held against the
    better of writing and copying.
    """
    free = cp.cuda.Device().mem_info[0]
    each = min(_ARRAY_BYTES, int(_MAX_SHARE * free / (reads + 2))) // 4096 * 4096
    source, output = random_words(max(1, reads) * each), random_words(each)
    moved = (reads + 1) * each
    best = 0.0
    for block in _BLOCKS:

        def call(block: int = block) -> None:
            kernels.mix(reads, source, output, block)

        spent = 0.0
        while spent < _WARMUP_S:
            spent += time_calls(call, _CALLS)
        median = statistics.median(time_calls(call, _CALLS) / _CALLS for _ in range(_REPEATS))
        best = max(best, moved / median)
    return best


def random_words(count_bytes: int) -> Any:
    """Random bits, repeated every 16 MiB: what is in memory moves the power that moving it takes."""
    words = cp.empty(count_bytes // 4, cp.uint32)
    rng: Any = cp.random.default_rng(1)
    seed = rng.standard_normal(size=min(_SEED_WORDS, words.size), dtype=cp.float32).view(cp.uint32)
    whole = words.size // seed.size * seed.size
    words[:whole].reshape(-1, seed.size)[...] = seed
    words[whole:] = seed[: words.size - whole]
    return words

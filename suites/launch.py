"""Work so small that launching it takes the time: timed as a user's loop runs it, launches included."""

from typing import Any

from kernels import tiny_chain as kernel
from perftrack.declare import benchmark, variant


@benchmark(
    variants={
        "unfused": variant(kernel.unfused, tolerance=4),
        "steps": variant(cuda=kernel.steps, tolerance=4),
        "graph": variant(cuda=kernel.graph, tolerance=4),
        "fused": variant(cuda=kernel.fused),
        "fused_graph": variant(cuda=kernel.fused_graph),
    },
    reference=kernel.reference,
    axes={"cuda": {"dtype": ["float32"], "length": [3], "n": [4096], "repeats": [1, 20]}},
    traffic=kernel.traffic,
    issue="eager",
    min_effect=0.05,  # a host's launch times vary more than a card's kernels
)
def tiny_chain(rng: Any, dtype: str, length: int, n: int, repeats: int) -> Any:
    """A chain of tiny operations: each its launch, one graph, one kernel, or both."""
    del length, repeats
    return rng.normal(n, dtype)

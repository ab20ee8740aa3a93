"""How what fusion gains grows with the number of operations fused."""

from typing import Any

from kernels import chain as kernel
from perftrack.declare import benchmark, variant


@benchmark(
    variants={
        "unfused": variant(kernel.unfused, tolerance=4),
        "steps": variant(cuda=kernel.steps, tolerance=4),
        "fused": variant(cuda=kernel.fused),
    },
    reference=kernel.reference,
    axes={"cuda": {"dtype": ["float32"], "length": [1, 2, 4, 8, 16], "n": [2**26]}},
    traffic=kernel.traffic,
)
def chain(rng: Any, dtype: str, length: int, n: int) -> Any:
    """Cheap element-wise operations, one after the other."""
    del length
    return rng.normal(n, dtype)

"""Dropout from a counter-based generator: every variant drops the same elements."""

from typing import Any

from kernels import dropout_relu as dropout
from perftrack.declare import benchmark, variant


@benchmark(
    variants={
        "unfused": variant(dropout.unfused, tolerance=4),
        "steps": variant(cuda=dropout.steps, tolerance=4),
        "fused": variant(cuda=dropout.fused, cpu=dropout.fused_cpu, requires={"cpu": ["numba"]}),
    },
    reference=dropout.reference,
    axes={
        "cuda": {"dtype": ["float32", "float16"], "n": [2**26]},
        "cpu": {"dtype": ["float32"], "n": [2**19]},
    },
    traffic=dropout.traffic,
)
def dropout_relu(rng: Any, dtype: str, n: int) -> Any:
    """Rectify, then drop a tenth of the elements."""
    return rng.normal(n, dtype)

"""Normalisation over rows."""

from typing import Any

from kernels import residual_layernorm as layernorm
from perftrack.declare import benchmark, variant


@benchmark(
    variants={
        "unfused": variant(layernorm.unfused, tolerance=4),
        "steps": variant(cuda=layernorm.steps, tolerance=4),
        "fused": variant(cuda=layernorm.fused, cpu=layernorm.fused_cpu, requires={"cpu": ["numba"]}),
    },
    reference=layernorm.reference,
    axes={
        "cuda": {"dtype": ["float32", "float16"], "rows": [16384], "cols": [4096]},
        "cpu": {"dtype": ["float32"], "rows": [512], "cols": [2048]},
    },
    traffic=layernorm.traffic,
)
def residual_layernorm(rng: Any, dtype: str, rows: int, cols: int) -> Any:
    """Layer normalisation of x plus a residual; the sum is an output too."""
    x, residual = rng.normal((rows, cols), dtype), rng.normal((rows, cols), dtype)
    return x, residual, rng.uniform(cols, dtype) + 0.5, rng.normal(cols, dtype)

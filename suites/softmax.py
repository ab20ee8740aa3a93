"""Softmax over rows."""

from typing import Any

from kernels import softmax as kernel
from perftrack.declare import benchmark, variant


@benchmark(
    variants={
        "unfused": variant(kernel.unfused, tolerance=4),
        "steps": variant(cuda=kernel.steps, tolerance=4),
        "fused": variant(cuda=kernel.fused, cpu=kernel.fused_cpu, requires={"cpu": ["numba"]}),
    },
    reference=kernel.reference,
    axes={
        "cuda": {"dtype": ["float32", "float16"], "rows": [16384], "cols": [4096]},
        "cpu": {"dtype": ["float32", "float64"], "rows": [256], "cols": [2048]},
    },
    traffic=kernel.traffic,
)
def softmax(rng: Any, dtype: str, rows: int, cols: int) -> Any:
    """Softmax of every row, safe against overflow."""
    return rng.normal((rows, cols), dtype) * 3

"""Chains of element-wise operations, with and without parameters per column."""

from typing import Any

from kernels import add_mul_relu as amr
from kernels import bias_gelu as gelu
from kernels import norm_scale_relu as norm
from perftrack.declare import benchmark, variant

MATRIX = {
    "cuda": {"dtype": ["float32", "float16"], "rows": [16384], "cols": [4096]},
    "cpu": {"dtype": ["float32"], "rows": [512], "cols": [2048]},
}


@benchmark(
    variants={
        "unfused": variant(amr.unfused, tolerance=4),
        "steps": variant(cuda=amr.steps, tolerance=4),
        "fused": variant(cuda=amr.fused, cpu=amr.fused_cpu, requires={"cpu": ["numba"]}),
        "fused_shared": variant(cuda=amr.fused_shared),
    },
    reference=amr.reference,
    axes={
        "cuda": {"dtype": ["float32", "float16"], "n": [2**26]},
        "cpu": {"dtype": ["float32", "float64"], "n": [2**20]},
    },
    traffic=amr.traffic,
)
def add_mul_relu(rng: Any, dtype: str, n: int) -> Any:
    """relu((a + b) · c), three arrays in and one out."""
    return rng.normal(n, dtype), rng.normal(n, dtype), rng.normal(n, dtype)


@benchmark(
    variants={
        "unfused": variant(norm.unfused, tolerance=4),
        "steps": variant(cuda=norm.steps, tolerance=4),
        "fused": variant(cuda=norm.fused, cpu=norm.fused_cpu, requires={"cpu": ["numba"]}),
    },
    reference=norm.reference,
    axes=MATRIX,
    traffic=norm.traffic,
)
def norm_scale_relu(rng: Any, dtype: str, rows: int, cols: int) -> Any:
    """relu((x - mean) · rstd · gamma) with statistics per column."""
    mean, rstd, gamma = rng.normal(cols, dtype), rng.uniform(cols, dtype) + 0.5, rng.uniform(cols, dtype) + 0.5
    return rng.normal((rows, cols), dtype), mean, rstd, gamma


@benchmark(
    variants={
        "unfused": variant(gelu.unfused, tolerance=4),
        "steps": variant(cuda=gelu.steps, tolerance=4),
        "fused": variant(cuda=gelu.fused, cpu=gelu.fused_cpu, requires={"cpu": ["numba"]}),
    },
    reference=gelu.reference,
    axes=MATRIX,
    traffic=gelu.traffic,
)
def bias_gelu(rng: Any, dtype: str, rows: int, cols: int) -> Any:
    """GELU in its tanh form of x plus a bias per column."""
    return rng.normal((rows, cols), dtype), rng.normal(cols, dtype) * 0.5

"""A matrix product with what follows it in a linear layer."""

from typing import Any

from kernels import gemm_bias_mask_relu as gemm
from perftrack.declare import benchmark, variant


def _traffic(*, dtype: str, shape: str) -> dict[str, Any]:
    m, n, k = map(int, shape.split("x"))
    return gemm.traffic(dtype=dtype, m=m, n=n, k=k)


@benchmark(
    variants={
        "unfused": variant(gemm.unfused, tolerance=4),
        "steps": variant(cuda=gemm.steps, tolerance=4),
        "fused": variant(cuda=gemm.fused, cpu=gemm.fused_cpu, requires={"cpu": ["numba"]}),
    },
    reference=gemm.reference,
    axes={
        "cuda": {"dtype": ["float16"], "shape": ["16384x4096x512", "8192x4096x4096"]},
        "cpu": {"dtype": ["float32"], "shape": ["512x512x256"]},
    },
    traffic=_traffic,
    tolerance={"float32": 1e-5},  # sums of k products: their round-off grows like the root of k
)
def gemm_bias_mask_relu(rng: Any, dtype: str, shape: str) -> Any:
    """relu((a @ w + bias) · mask); the shape is m x n x k."""
    m, n, k = map(int, shape.split("x"))
    mask = (rng.uniform((m, n), "float32") > 0.1).astype(dtype)
    return rng.normal((m, k), dtype), rng.normal((k, n), dtype) * k**-0.5, rng.normal(n, dtype), mask

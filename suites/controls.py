"""Controls: where fusion has nothing to save, `fused` must not be faster than `steps`."""

from typing import Any

from kernels import copy, relu
from kernels import gemm_bias_relu as gemm
from kernels import relu_and_scale as both
from perftrack.declare import benchmark, variant


@benchmark(
    variants={
        "unfused": variant(relu.unfused),
        "steps": variant(cuda=relu.steps),
        "fused": variant(cuda=relu.fused, cpu=relu.fused_cpu, requires={"cpu": ["numba"]}),
    },
    reference=relu.reference,
    axes={
        "cuda": {"dtype": ["float32"], "n": [2**26]},
        "cpu": {"dtype": ["float32"], "n": [2**20]},
    },
    traffic=relu.traffic,
)
def control_single_op(rng: Any, dtype: str, n: int) -> Any:
    """One relu: the same kernel as `steps` and as `fused`."""
    return rng.normal(n, dtype)


@benchmark(
    variants={
        "unfused": variant(gemm.unfused, tolerance=4),
        "steps": variant(cuda=gemm.steps, tolerance=4),
        "fused": variant(cuda=gemm.fused, cpu=gemm.fused_cpu, requires={"cpu": ["numba"]}),
    },
    reference=gemm.reference,
    axes={
        "cuda": {"dtype": ["float16"], "n": [8192]},
        "cpu": {"dtype": ["float32"], "n": [512]},
    },
    traffic=gemm.traffic,
    tolerance={"float32": 1e-5},  # sums of n products: their round-off grows like the root of n
)
def control_large_gemm(rng: Any, dtype: str, n: int) -> Any:
    """relu(a @ b + bias) of large square matrices: the product takes nearly all the time."""
    return rng.normal((n, n), dtype), rng.normal((n, n), dtype) * n**-0.5, rng.normal(n, dtype)


@benchmark(
    variants={"unfused": copy.unfused, "steps": variant(cuda=copy.steps), "fused": variant(cuda=copy.fused)},
    reference=copy.reference,
    axes={"cuda": {"dtype": ["float32"], "n": [2**26]}},
    traffic=copy.traffic,
)
def control_copy(rng: Any, dtype: str, n: int) -> Any:
    """A copy: nothing but memory traffic, the same kernel as `steps` and as `fused`."""
    return rng.normal(n, dtype)


@benchmark(
    variants={"unfused": both.unfused, "steps": variant(cuda=both.steps), "fused": variant(cuda=both.fused)},
    reference=both.reference,
    axes={"cuda": {"dtype": ["float32"], "n": [2**26], "m": [3 * 2**24]}},
    traffic=both.traffic,
)
def control_independent_ops(rng: Any, dtype: str, n: int, m: int) -> Any:
    """Two operations on arrays of their own lengths, in one kernel: they share no data, so none is saved."""
    return rng.normal(n, dtype), rng.normal(m, dtype)

"""Chains of element-wise operations, with and without parameters per column, and one that ends in a reduction."""

from typing import Any

from kernels import add_mul_relu as amr
from kernels import bias_gelu as gelu
from kernels import gelu_scale as gelu_scaled
from kernels import norm_scale_relu as norm
from kernels import relu, row_squares, tensorrt_ops, vllm_ops
from kernels import silu_mul as silu
from perftrack.declare import benchmark, variant

MATRIX = {
    "cuda": [
        {"dtype": ["float32"], "rows": [16384], "cols": [4096]},
        {"dtype": ["float16"], "rows": [32768], "cols": [4096]},
    ],
    "cpu": {"dtype": ["float32"], "rows": [512], "cols": [2048]},
}

AMR = {
    "unfused": variant(amr.unfused, tolerance=4),
    "steps": variant(cuda=amr.steps, tolerance=4),
    "fused": variant(cuda=amr.fused, cpu=amr.fused_cpu, requires={"cpu": ["numba"]}),
    "fused_shared": variant(cuda=amr.fused_shared),
    "fused_elementwise": variant(cuda=amr.fused_elementwise),
    "fused_cupy": variant(cuda=amr.fused_cupy, tolerance=4),  # it rounds after each step
}


@benchmark(
    variants={
        **AMR,
        "torch_compile": variant(cuda=amr.torch_compile, requires=["torch"]),
        "torch_jit": variant(cuda=amr.torch_jit, requires=["torch"], tolerance=4),  # what it fuses is its own affair
        "triton": variant(cuda=amr.triton, requires=["torch", "triton"]),
    },
    reference=amr.reference,
    axes={
        "cuda": [{"dtype": ["float32"], "n": [2**26]}, {"dtype": ["float16", "bfloat16"], "n": [2**27]}],
        "cpu": {"dtype": ["float32", "float64"], "n": [2**20]},
    },
    traffic=amr.traffic,
)
def add_mul_relu(rng: Any, dtype: str, n: int) -> Any:
    """relu((a + b) · c), three arrays in and one out."""
    return rng.normal(n, dtype), rng.normal(n, dtype), rng.normal(n, dtype)


@benchmark(
    variants=AMR,
    reference=amr.reference,
    axes={"cuda": {"dtype": ["float16"], "n": [2**27 - 3]}},
    traffic=amr.traffic,
)
def add_mul_relu_odd(rng: Any, dtype: str, n: int) -> Any:
    """The same of a length that is no whole number of 16-byte accesses."""
    return rng.normal(n, dtype), rng.normal(n, dtype), rng.normal(n, dtype)


@benchmark(
    variants=AMR,
    reference=amr.reference,
    axes={"cuda": {"dtype": ["float32"], "n": [4096]}},
    traffic=amr.traffic,
)
def add_mul_relu_small(rng: Any, dtype: str, n: int) -> Any:
    """The same of arrays so small that the time is that of starting a kernel."""
    return rng.normal(n, dtype), rng.normal(n, dtype), rng.normal(n, dtype)


@benchmark(
    variants={"unfused": relu.unfused, "fused": variant(cuda=relu.fused)},
    reference=relu.reference,
    axes={"cuda": {"dtype": ["float16"], "n": [2**31 + 8]}},
    traffic=relu.traffic,
)
def relu_huge(rng: Any, dtype: str, n: int) -> Any:
    """One relu of more elements than 32 bits count; its sets and their check take most of 140 GB."""
    return rng.normal(n, dtype)


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
        "torch_compile": variant(cuda=gelu.torch_compile, requires=["torch"]),
        "tensorrt": variant(cuda=tensorrt_ops.bias_gelu, requires=["tensorrt"], tolerance=4),
        "torch_jit": variant(cuda=gelu.torch_jit, requires=["torch"], tolerance=4),  # what it fuses is its own affair
    },
    reference=gelu.reference,
    axes=MATRIX
    | {
        "cuda": [
            {"dtype": ["float32"], "rows": [16384], "cols": [4096]},
            {"dtype": ["float16", "bfloat16"], "rows": [32768], "cols": [4096]},
        ]
    },
    traffic=gelu.traffic,
)
def bias_gelu(rng: Any, dtype: str, rows: int, cols: int) -> Any:
    """GELU in its tanh form of x plus a bias per column."""
    x = rng.normal((rows, cols), dtype)
    return x, (rng.normal(cols) * 0.5).astype(x.dtype)


@benchmark(
    variants={
        "unfused": variant(silu.unfused, tolerance=4),
        "steps": variant(cuda=silu.steps, tolerance=4),
        "fused": variant(cuda=silu.fused),
        "torch_compile": variant(cuda=silu.torch_compile, requires=["torch"]),
        "vllm": variant(cuda=vllm_ops.silu_mul, requires=["torch", "vllm"], tolerance=4),
    },
    reference=silu.reference,
    axes={"cuda": {"dtype": ["bfloat16"], "n": [2**27]}},
    traffic=silu.traffic,
)
def silu_mul(rng: Any, dtype: str, n: int) -> Any:
    """silu(x) · y, the gate of a SwiGLU layer."""
    return rng.normal(n, dtype), rng.normal(n, dtype)


@benchmark(
    variants={
        "unfused": variant(gelu_scaled.unfused, tolerance=4),
        "steps": variant(cuda=gelu_scaled.steps, tolerance=4),
        "fused": variant(cuda=gelu_scaled.fused),
        "torch_compile": variant(cuda=gelu_scaled.torch_compile, requires=["torch"]),
    },
    reference=gelu_scaled.reference,
    axes={"cuda": {"dtype": ["float16"], "n": [2**27]}},
    traffic=gelu_scaled.traffic,
)
def gelu_scale(rng: Any, dtype: str, n: int) -> Any:
    """GELU in its tanh form, then a constant factor."""
    return rng.normal(n, dtype)


@benchmark(
    variants={
        "unfused": variant(row_squares.unfused, tolerance=4),
        "steps": variant(cuda=row_squares.steps, tolerance=4),
        "fused": variant(cuda=row_squares.fused),
        "fused_cupy": variant(cuda=row_squares.fused_cupy, tolerance=4),
    },
    reference=row_squares.reference,
    axes={"cuda": {"dtype": ["float32"], "rows": [16384], "cols": [4096]}},
    traffic=row_squares.traffic,
)
def row_square_sums(rng: Any, dtype: str, rows: int, cols: int) -> Any:
    """Squared norm of each row on top of an offset; `cupy.fuse` runs reductions like this one on a few blocks."""
    return rng.normal((rows, cols), dtype), rng.normal(rows, "float32")

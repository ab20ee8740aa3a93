"""Matrix products with what follows them in linear layers, and layers of several products."""

from typing import Any

from kernels import gemm_bias_gelu as gelu
from kernels import gemm_bias_mask_relu as gemm
from kernels import gemm_swiglu as swiglu
from kernels import llama_ffn as ffn
from kernels import qkv_projection as qkv
from kernels.decoder_layer import MODELS
from perftrack.declare import benchmark, variant


def _sizes(shape: str) -> dict[str, int]:
    m, n, k = map(int, shape.split("x"))
    return {"m": m, "n": n, "k": k}


def _weights(rng: Any, like: Any, rows: int, cols: int) -> Any:
    """Weights that leave the size of what they are multiplied with as it is."""
    return (rng.normal((rows, cols)) * rows**-0.5).astype(like.dtype)


@benchmark(
    variants={
        "unfused": variant(gemm.unfused, tolerance=4),
        "steps": variant(cuda=gemm.steps, tolerance=4),
        "fused": variant(cuda=gemm.fused, cpu=gemm.fused_cpu, requires={"cpu": ["numba"]}),
        "cublaslt": variant(cuda=gemm.cublaslt),
        "torch": variant(cuda=gemm.torch, requires=["torch"]),
    },
    reference=gemm.reference,
    axes={
        "cuda": {"dtype": ["float16"], "shape": ["16384x4096x512", "8192x4096x4096"]},
        "cpu": {"dtype": ["float32"], "shape": ["512x512x256"]},
    },
    traffic=lambda *, dtype, shape: gemm.traffic(dtype=dtype, **_sizes(shape)),
    tolerance={"float32": 1e-5},  # sums of k products: their round-off grows like the root of k
)
def gemm_bias_mask_relu(rng: Any, dtype: str, shape: str) -> Any:
    """relu((a @ w + bias) · mask); the shape is m x n x k."""
    m, n, k = map(int, shape.split("x"))
    mask = (rng.uniform((m, n), "float32") > 0.1).astype(dtype)
    return rng.normal((m, k), dtype), rng.normal((k, n), dtype) * k**-0.5, rng.normal(n, dtype), mask


@benchmark(
    variants={
        "unfused": variant(cuda=gelu.unfused, tolerance=4),
        "steps": variant(cuda=gelu.steps, tolerance=4),
        "fused": variant(cuda=gelu.fused, tolerance=2),  # the sum is rounded before GELU
        "cublaslt": variant(cuda=gelu.cublaslt),
        "nvmath": variant(cuda=gelu.nvmath, requires=["nvmath"]),
        "torch": variant(cuda=gelu.torch, requires=["torch"]),
        "torch_compile": variant(cuda=gelu.torch_compile, requires=["torch"], tolerance=2),
    },
    reference=gelu.reference,
    axes={"cuda": {"dtype": ["float16", "bfloat16"], "shape": ["16384x4096x1024"]}},
    traffic=lambda *, dtype, shape: gelu.traffic(dtype=dtype, **_sizes(shape)),
)
def gemm_bias_gelu(rng: Any, dtype: str, shape: str) -> Any:
    """gelu(a @ w + bias), GELU in its tanh form; the shape is m x n x k."""
    sizes = _sizes(shape)
    a = rng.normal((sizes["m"], sizes["k"]), dtype)
    return a, _weights(rng, a, sizes["k"], sizes["n"]), rng.normal(sizes["n"], dtype)


@benchmark(
    variants={
        "unfused": variant(cuda=swiglu.unfused, tolerance=4),
        "steps": variant(cuda=swiglu.steps, tolerance=4),
        "fused": variant(cuda=swiglu.fused, tolerance=2),  # the products are rounded before the gate
        "cublaslt": variant(cuda=swiglu.cublaslt, tolerance=2),
        "torch_compile": variant(cuda=swiglu.torch_compile, requires=["torch"], tolerance=2),
    },
    reference=swiglu.reference,
    axes={"cuda": {"dtype": ["float16"], "shape": ["8192x5504x1024"]}},
    traffic=lambda *, dtype, shape: swiglu.traffic(dtype=dtype, **_sizes(shape)),
)
def gemm_swiglu(rng: Any, dtype: str, shape: str) -> Any:
    """silu(x @ gate) · (x @ up); the shape is m x n x k."""
    sizes = _sizes(shape)
    x = rng.normal((sizes["m"], sizes["k"]), dtype)
    return x, *(_weights(rng, x, sizes["k"], sizes["n"]) for _ in range(2))


FFN = {
    "unfused": variant(cuda=ffn.unfused, tolerance=4),
    "steps": variant(cuda=ffn.steps, tolerance=4),
    "fused": variant(cuda=ffn.fused, tolerance=2),  # the products are rounded before the gate
    "cublaslt": variant(cuda=ffn.cublaslt, tolerance=2),
}


def _ffn_traffic(*, dtype: str, model: str, tokens: int) -> dict[str, Any]:
    return ffn.traffic(dtype=dtype, tokens=tokens, **MODELS[model]._asdict())


def _ffn_inputs(rng: Any, dtype: str, model: str, tokens: int) -> Any:
    hidden, inner = MODELS[model]
    x = rng.normal((tokens, hidden), dtype)
    return x, *(_weights(rng, x, *shape) for shape in ((hidden, inner), (hidden, inner), (inner, hidden)))


@benchmark(
    variants=FFN | {"torch_compile": variant(cuda=ffn.torch_compile, requires=["torch"], tolerance=2)},
    reference=ffn.reference,
    axes={"cuda": {"dtype": ["float16"], "model": ["llama-2-7b"], "tokens": [2048]}},
    traffic=_ffn_traffic,
)
def llama_ffn(rng: Any, dtype: str, model: str, tokens: int) -> Any:
    """The feed-forward layer of Llama for many tokens, without its normalisation."""
    return _ffn_inputs(rng, dtype, model, tokens)


@benchmark(
    variants=FFN,
    reference=ffn.reference,
    axes={"cuda": {"dtype": ["float16"], "model": ["llama-2-7b"], "tokens": [16]}},
    traffic=_ffn_traffic,
)
def llama_ffn_few_tokens(rng: Any, dtype: str, model: str, tokens: int) -> Any:
    """The same for so few tokens that reading the weights takes the time."""
    return _ffn_inputs(rng, dtype, model, tokens)


@benchmark(
    variants={
        "unfused": variant(cuda=qkv.unfused),
        "steps": variant(cuda=qkv.steps),
        "fused": variant(cuda=qkv.fused),
        "cublaslt": variant(cuda=qkv.cublaslt),
    },
    reference=qkv.reference,
    axes={"cuda": {"dtype": ["float16"], "model": ["llama-2-7b"], "tokens": [16, 2048]}},
    traffic=lambda *, dtype, model, tokens: qkv.traffic(dtype=dtype, tokens=tokens, hidden=MODELS[model].hidden),
)
def qkv_projection(rng: Any, dtype: str, model: str, tokens: int) -> Any:
    """Queries, keys and values: three products, or one with the weights side by side."""
    hidden = MODELS[model].hidden
    x = rng.normal((tokens, hidden), dtype)
    return x, *(_weights(rng, x, hidden, hidden) for _ in range(3))

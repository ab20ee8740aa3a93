"""out = silu(x @ gate) · (x @ up), x of [m, k], gate and up of [k, n].

Formula: the gate of a feed-forward layer (SwiGLU: Shazeer, 2020; silu(x) = x / (1 + exp(-x))).
Traffic in bytes: the products read x and both weights and write two results of m × n elements; then, in units of
that, fused 2 + 1 = 3; step by step negate 2, exp 2, add 2, divide 3, multiply 3: 12. With both weights side by side,
one product reads x once. The expected gain is one of time: it approaches 1 as k grows.
"""

from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from typing import Any

from kernels import silu_mul, torch_ops
from kernels.dtypes import element_bytes
from kernels.gemm_bias_mask_relu import EPILOGUE
from kernels.launch import KernelCall, Launch, array_module, launch
from kernels.product import joined, product


def unfused(x: Any, gate: Any, up: Any, **_: object) -> tuple[Launch, Any]:
    """Two products, and one library call a step."""
    return products_then(silu_mul.unfused, x, gate, up)


def steps(x: Any, gate: Any, up: Any, **_: object) -> tuple[Launch, Any]:
    """The same products, and the same five steps with 16-byte accesses."""
    return products_then(silu_mul.steps, x, gate, up)


def products_then(build: Callable[..., tuple[Launch, Any]], x: Any, gate: Any, up: Any) -> tuple[Launch, Any]:
    """Both products by CuPy, and what `build` makes of them."""
    xp = array_module(x)
    gates, values = (xp.empty((x.shape[0], gate.shape[1]), x.dtype) for _ in range(2))
    after, out = build(gates, values)
    return joined(partial(xp.matmul, x, gate, out=gates), partial(xp.matmul, x, up, out=values), after), out


def fused(x: Any, gate: Any, up: Any, **_: object) -> tuple[Launch, Any]:
    """One product with both weights side by side, as they would be stored, and one kernel for the gate."""
    xp = array_module(x)
    both, out, call = beside(x, gate, up)
    return launch(partial(xp.matmul, x, xp.concatenate([gate, up], axis=1), out=both), call), out


def cublaslt(x: Any, gate: Any, up: Any, **_: object) -> tuple[Launch, Any]:
    """The same, with the product straight from cuBLASLt."""
    both, out, call = beside(x, gate, up)
    return launch(product(x, array_module(x).concatenate([gate, up], axis=1), both), call), out


def beside(x: Any, gate: Any, up: Any) -> tuple[Any, Any, KernelCall]:
    """Room for the product with both weights and for the result, and the gate between them."""
    xp, (rows, cols) = array_module(x), (x.shape[0], gate.shape[1])
    both, out = xp.empty((rows, cols + up.shape[1]), x.dtype), xp.empty((rows, cols), x.dtype)
    return both, out, EPILOGUE.matrix("swiglu", out.shape, (both, out))


def torch_compile(x: Any, gate: Any, up: Any, **_: object) -> tuple[Launch, Any]:
    """What PyTorch's compiler makes of the formula."""
    out = array_module(x).empty((x.shape[0], gate.shape[1]), x.dtype)
    return launch(torch_ops.on_current_stream(_compiled(), x, gate, up, out)), out


@cache
def _compiled() -> Any:
    torch = import_module("torch")

    def body(x: Any, gate: Any, up: Any, out: Any) -> None:
        out.copy_(torch.nn.functional.silu(x @ gate) * (x @ up))

    return torch_ops.compiled(body)


def reference(x: Any, gate: Any, up: Any, **_: object) -> Any:
    """The right answer, from float64 inputs."""
    return silu_mul.reference(x @ gate, x @ up)


def traffic(*, dtype: str, m: int, n: int, k: int) -> dict[str, Any]:
    """Bytes and operations of one call."""
    size = element_bytes(dtype)
    source, weights, result = m * k * size, 2 * k * n * size, m * n * size
    apart, beside_each_other = 2 * source + weights + 14 * result, source + weights + 5 * result
    return {
        "reads": source + weights,
        "writes": result,
        "moved": {
            "unfused": apart,
            "steps": apart,
            "fused": beside_each_other,
            "cublaslt": beside_each_other,
            "torch_compile": source + beside_each_other,
        },
        "flops": 4 * m * n * k + 5 * m * n,
    }

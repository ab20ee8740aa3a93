"""out = (silu(x @ gate) · (x @ up)) @ down, x of [tokens, hidden], gate and up of [hidden, inner], down back again.

Formula: the feed-forward layer of Llama (Touvron et al., 2023; SwiGLU: Shazeer, 2020), without its normalisation.
Traffic in bytes: the three weights are read once, x and the result of the gate once a product, the products write their
results; between them, in units of tokens × inner elements, fused 2 + 1 = 3; step by step 12, as in gemm_swiglu.py.
The expected gain is one of time. With few tokens, reading the weights is all of it.
"""

from functools import cache, partial
from importlib import import_module
from typing import Any

from kernels import gemm_swiglu, torch_ops
from kernels.dtypes import element_bytes
from kernels.launch import Launch, array_module, launch
from kernels.product import joined, product


def unfused(x: Any, gate: Any, up: Any, down: Any, **_: object) -> tuple[Launch, Any]:
    """Three products, and one library call a step between them."""
    return _then_down(gemm_swiglu.unfused(x, gate, up), down)


def steps(x: Any, gate: Any, up: Any, down: Any, **_: object) -> tuple[Launch, Any]:
    """The same products, and the same five steps with 16-byte accesses."""
    return _then_down(gemm_swiglu.steps(x, gate, up), down)


def fused(x: Any, gate: Any, up: Any, down: Any, **_: object) -> tuple[Launch, Any]:
    """Two products, the first with both weights side by side, and one kernel between them."""
    return _then_down(gemm_swiglu.fused(x, gate, up), down)


def _then_down(built: tuple[Launch, Any], down: Any) -> tuple[Launch, Any]:
    before, inner = built
    xp = array_module(inner)
    out = xp.empty((inner.shape[0], down.shape[1]), inner.dtype)
    return joined(before, partial(xp.matmul, inner, down, out=out)), out


def cublaslt(x: Any, gate: Any, up: Any, down: Any, **_: object) -> tuple[Launch, Any]:
    """The same as `fused`, with the products straight from cuBLASLt."""
    before, inner = gemm_swiglu.cublaslt(x, gate, up)
    out = array_module(x).empty((x.shape[0], down.shape[1]), x.dtype)
    return joined(before, product(inner, down, out)), out


def torch_compile(x: Any, gate: Any, up: Any, down: Any, **_: object) -> tuple[Launch, Any]:
    """What PyTorch's compiler makes of the formula."""
    out = array_module(x).empty((x.shape[0], down.shape[1]), x.dtype)
    return launch(torch_ops.on_current_stream(_compiled(), x, gate, up, down, out)), out


@cache
def _compiled() -> Any:
    torch = import_module("torch")

    def body(x: Any, gate: Any, up: Any, down: Any, out: Any) -> None:
        out.copy_((torch.nn.functional.silu(x @ gate) * (x @ up)) @ down)

    return torch_ops.compiled(body)


def reference(x: Any, gate: Any, up: Any, down: Any, **_: object) -> Any:
    """The right answer, from float64 inputs."""
    return gemm_swiglu.reference(x, gate, up) @ down


def traffic(*, dtype: str, tokens: int, hidden: int, inner: int) -> dict[str, Any]:
    """Bytes and operations of one call."""
    gated = gemm_swiglu.traffic(dtype=dtype, m=tokens, n=inner, k=hidden)
    size = element_bytes(dtype)
    between, down, result = tokens * inner * size, inner * hidden * size, tokens * hidden * size
    return {
        "reads": gated["reads"] + down,
        "writes": result,
        "moved": {name: moved + between + down + result for name, moved in gated["moved"].items()},
        "flops": gated["flops"] + 2 * tokens * hidden * inner,
    }

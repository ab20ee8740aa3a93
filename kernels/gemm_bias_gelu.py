"""out = gelu(a @ w + bias), a of [m, k], w of [k, n], bias one value a column; GELU in its tanh form.

Formula: the first half of a transformer's feed-forward layer (GELU: see bias_gelu.py).
Traffic in bytes: the product reads a and w and writes its result; then, in units of m × n elements, fused 1 + 1 = 2;
step by step 23, as in bias_gelu.py. Where the library applies bias and GELU before it stores, nothing follows.
The expected gain is one of time: it approaches 1 as k grows.
"""

from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from typing import Any

from kernels import bias_gelu, torch_ops
from kernels.dtypes import element_bytes
from kernels.launch import Launch, array_module, launch
from kernels.product import joined, product


def unfused(a: Any, w: Any, bias: Any, **_: object) -> tuple[Launch, Any]:
    """One library call a step."""
    return _product_then(bias_gelu.unfused, a, w, bias)


def steps(a: Any, w: Any, bias: Any, **_: object) -> tuple[Launch, Any]:
    """The same product, and the same ten steps with 16-byte accesses."""
    return _product_then(bias_gelu.steps, a, w, bias)


def fused(a: Any, w: Any, bias: Any, **_: object) -> tuple[Launch, Any]:
    """The same product, and one kernel for all that follows it."""
    return _product_then(bias_gelu.fused, a, w, bias)


def _product_then(build: Callable[..., tuple[Launch, Any]], a: Any, w: Any, bias: Any) -> tuple[Launch, Any]:
    xp = array_module(a)
    y = xp.empty((a.shape[0], w.shape[1]), a.dtype)
    after, out = build(y, bias)
    return joined(partial(xp.matmul, a, w, out=y), after), out


def cublaslt(a: Any, w: Any, bias: Any, **_: object) -> tuple[Launch, Any]:
    """One call of cuBLASLt, which applies bias and GELU to the sums before it stores them."""
    out = array_module(a).empty((a.shape[0], w.shape[1]), a.dtype)
    return launch(product(a, w, out, bias=bias, activation="gelu")), out


def nvmath(a: Any, w: Any, bias: Any, **_: object) -> tuple[Launch, Any]:
    """The same through nvmath-python, whose bias runs along rows of a column-ordered result: all is transposed."""
    advanced = import_module("nvmath.linalg.advanced")
    out = array_module(a).empty((a.shape[0], w.shape[1]), a.dtype)
    multiply = advanced.Matmul(w.T, a.T, out.T, beta=0.0, options={"inplace": True})
    multiply.plan(epilog=advanced.MatmulEpilog.GELU_BIAS, epilog_inputs={"bias": bias})
    return launch(multiply.execute), out


def torch(a: Any, w: Any, bias: Any, **_: object) -> tuple[Launch, Any]:
    """PyTorch's call for this very epilogue of cuBLASLt."""
    out = array_module(a).empty((a.shape[0], w.shape[1]), a.dtype)
    return launch(torch_ops.on_current_stream(_torch_body, a, w, bias, out)), out


def _torch_body(a: Any, w: Any, bias: Any, out: Any) -> None:
    import_module("torch")._addmm_activation(bias, a, w, use_gelu=True, out=out)  # noqa: SLF001 - it has no public name


def torch_compile(a: Any, w: Any, bias: Any, **_: object) -> tuple[Launch, Any]:
    """What PyTorch's compiler makes of the formula."""
    out = array_module(a).empty((a.shape[0], w.shape[1]), a.dtype)
    return launch(torch_ops.on_current_stream(_compiled(), a, w, bias, out)), out


@cache
def _compiled() -> Any:
    torch = import_module("torch")

    def body(a: Any, w: Any, bias: Any, out: Any) -> None:
        out.copy_(torch.nn.functional.gelu(torch.addmm(bias, a, w), approximate="tanh"))

    return torch_ops.compiled(body)


def reference(a: Any, w: Any, bias: Any, **_: object) -> Any:
    """The right answer, from float64 inputs."""
    return bias_gelu.reference(a @ w, bias)


def traffic(*, dtype: str, m: int, n: int, k: int) -> dict[str, Any]:
    """Bytes and operations of one call."""
    size = element_bytes(dtype)
    factors, result, columns = (m * k + k * n) * size, m * n * size, n * size
    least = factors + columns + result
    apart = bias_gelu.traffic(dtype=dtype, rows=m, cols=n)
    behind = {name: least - columns + apart["moved"][name] for name in ("unfused", "steps", "fused")}
    libraries = dict.fromkeys(("cublaslt", "nvmath", "torch", "torch_compile"), least)
    return {
        "reads": factors + columns,
        "writes": result,
        "moved": {**behind, **libraries},
        "flops": 2 * m * n * k + apart["flops"],
    }

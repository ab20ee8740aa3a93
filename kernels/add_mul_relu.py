"""out = relu((a + b) · c) over flat arrays of n elements.

Formula: three element-wise operations, the chain that every fusion tutorial begins with.
Traffic in units of n elements: fused 3 reads + 1 write = 4; step by step 3 + 3 + 2 = 8. Expected gain 2.0.
Staging the inputs in shared memory moves the same 4: nothing is used twice, so nothing can be gained. TorchScript
cannot write into a given array, and copying its result moves 2 more.
"""

from functools import cache, partial
from importlib import import_module
from typing import Any

import numpy as np

from kernels import steps as step
from kernels import torch_ops
from kernels.cpu_threads import in_threads
from kernels.cuda_source import Source
from kernels.dtypes import element_bytes
from kernels.launch import Launch, array_module, launch

SOURCE = Source(("flat.cuh", "add_mul_relu.cu"), registers={"add_mul_relu": 40, "add_mul_relu_shared": 40})

TRITON_BLOCK = 1024
"""Elements of one program of the Triton kernel."""


def unfused(a: Any, b: Any, c: Any, **_: object) -> tuple[Launch, Any]:
    """One library call a step, into buffers that exist already."""
    xp = array_module(a)
    total, product, out = (xp.empty_like(a) for _ in range(3))
    return launch(
        partial(xp.add, a, b, out=total),
        partial(xp.multiply, total, c, out=product),
        partial(xp.maximum, product, 0, out=out),
    ), out


def steps(a: Any, b: Any, c: Any, **_: object) -> tuple[Launch, Any]:
    """The same three steps with 16-byte accesses."""
    xp = array_module(a)
    total, product, out = (xp.empty_like(a) for _ in range(3))
    return launch(
        step.flat("add", total, a, b),
        step.flat("multiply", product, total, c),
        step.flat("relu_of", out, product),
    ), out


def fused(a: Any, b: Any, c: Any, **_: object) -> tuple[Launch, Any]:
    """One kernel, one pack of each input a thread."""
    out = array_module(a).empty_like(a)
    return launch(SOURCE.flat("add_mul_relu", a.size, (a, b, c, out))), out


def fused_shared(a: Any, b: Any, c: Any, **_: object) -> tuple[Launch, Any]:
    """One kernel that stages its inputs in shared memory first."""
    out = array_module(a).empty_like(a)
    return launch(SOURCE.flat("add_mul_relu_shared", a.size, (a, b, c, out))), out


def fused_elementwise(a: Any, b: Any, c: Any, **_: object) -> tuple[Launch, Any]:
    """One of CuPy's own element-wise kernels: what fusion alone gives, without 16-byte accesses."""
    out = array_module(a).empty_like(a)
    return launch(partial(_elementwise_kernel(), a, b, c, out)), out


@cache
def _elementwise_kernel() -> Any:
    import cupy

    code = "out = fmaxf(((float)a + (float)b) * (float)c, 0.f)"
    return cupy.ElementwiseKernel("T a, T b, T c", "T out", code, "add_mul_relu")


def fused_cupy(a: Any, b: Any, c: Any, **_: object) -> tuple[Launch, Any]:
    """`cupy.fuse` of the three steps."""
    out = array_module(a).empty_like(a)
    return launch(partial(_fusion(str(a.dtype)), a, b, c, out)), out


@cache
def _fusion(_dtype: str) -> Any:
    """One for each dtype: `cupy.fuse` changes its way of fusing for good where a dtype needs the other one."""
    import cupy

    def add_mul_relu(a: Any, b: Any, c: Any, out: Any) -> None:
        array_module(a).maximum((a + b) * c, 0, out=out)

    return cupy.fuse(add_mul_relu)


def torch_compile(a: Any, b: Any, c: Any, **_: object) -> tuple[Launch, Any]:
    """What PyTorch's compiler makes of it."""
    out = array_module(a).empty_like(a)
    return launch(torch_ops.on_current_stream(_compiled(), a, b, c, out)), out


@cache
def _compiled() -> Any:
    return torch_ops.compiled(_body)


def _body(a: Any, b: Any, c: Any, out: Any) -> None:
    out.copy_(((a + b) * c).relu())


def torch_jit(a: Any, b: Any, c: Any, **_: object) -> tuple[Launch, Any]:
    """What TorchScript makes of it, with the copy that it takes to have the result in a given array."""
    out = array_module(a).empty_like(a)
    return launch(torch_ops.on_current_stream(_scripted(), a, b, c, out)), out


@cache
def _scripted() -> Any:
    return torch_ops.scripted(_expression)


def _expression(a, b, c):  # noqa: ANN001, ANN202  # pyright: ignore[reportMissingParameterType]
    return ((a + b) * c).relu()


def triton(a: Any, b: Any, c: Any, **_: object) -> tuple[Launch, Any]:
    """A kernel in Triton."""
    out = array_module(a).empty_like(a)
    kernel = _triton_kernel()[(-(-a.size // TRITON_BLOCK),)]
    return launch(torch_ops.on_current_stream(partial(kernel, n=a.size, BLOCK=TRITON_BLOCK), a, b, c, out)), out


@cache
def _triton_kernel() -> Any:
    tl = import_module("triton.language")

    # Triton reads annotations as code, and knows no names of ours: they are strings
    def add_mul_relu(
        a: "Any",
        b: "Any",
        c: "Any",
        out: "Any",
        n: "Any",
        BLOCK: tl.constexpr,  # pyright: ignore[reportInvalidTypeForm]
    ) -> None:
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = at < n
        total = tl.load(a + at, inside).to(tl.float32) + tl.load(b + at, inside).to(tl.float32)
        y = tl.maximum(total * tl.load(c + at, inside).to(tl.float32), 0.0)
        tl.store(out + at, y.to(out.dtype.element_ty), inside)

    return import_module("triton").jit(add_mul_relu)


def fused_cpu(a: Any, b: Any, c: Any, **_: object) -> tuple[Launch, Any]:
    """One compiled loop."""
    out = np.empty_like(a)
    return launch(in_threads(_loop, (a, b, c, out))), out


def _loop(_start: int, a: Any, b: Any, c: Any, out: Any) -> None:
    for i in range(out.size):
        x = (a[i] + b[i]) * c[i]
        out[i] = max(x, 0)


def reference(a: Any, b: Any, c: Any, **_: object) -> Any:
    """The right answer, from float64 inputs."""
    return np.maximum((a + b) * c, 0)


def traffic(*, dtype: str, n: int) -> dict[str, Any]:
    """Bytes and operations of one call."""
    array = n * element_bytes(dtype)
    once = ("fused", "fused_shared", "fused_elementwise", "fused_cupy", "torch_compile", "triton")
    moved = {"unfused": 8 * array, "steps": 8 * array, **dict.fromkeys(once, 4 * array), "torch_jit": 6 * array}
    return {"reads": 3 * array, "writes": array, "moved": moved, "flops": 3 * n}

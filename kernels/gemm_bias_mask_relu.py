"""out = relu((a @ w + bias) · mask), a of [m, k], w of [k, n], mask of [m, n], bias one value a column.

Formula: a linear layer with a mask and an activation. The product is the library's (cuBLAS, BLAS) in every variant;
what can be fused is what follows it, here as one pass over the result in place.
Traffic in bytes: the product reads a and w and writes out; then, in units of m × n elements, fused 1 + 1 + mask 1 = 3
more; step by step add 2, multiply 3, relu 2: 7 more. The expected gain is one of time: it approaches 1 as k grows.
"""

from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from kernels import steps as step
from kernels import torch_ops
from kernels.cpu_threads import in_threads
from kernels.cuda_source import Source
from kernels.dtypes import element_bytes
from kernels.launch import Launch, array_module, launch
from kernels.product import product

EPILOGUE = Source(("matrix.cuh", "gemm_epilogue.cu"), registers={"bias_relu": 64, "bias_mask_relu": 72, "swiglu": 64})


def unfused(a: Any, w: Any, bias: Any, mask: Any, **_: object) -> tuple[Launch, Any]:
    """One library call a step, all of them in place on the product."""
    xp = array_module(a)
    y = xp.empty(mask.shape, a.dtype)
    return launch(
        partial(xp.matmul, a, w, out=y),
        partial(xp.add, y, bias, out=y),
        partial(xp.multiply, y, mask, out=y),
        partial(xp.maximum, y, 0, out=y),
    ), y


def steps(a: Any, w: Any, bias: Any, mask: Any, **_: object) -> tuple[Launch, Any]:
    """The same product, and the same three steps with 16-byte accesses."""
    xp = array_module(a)
    y = xp.empty(mask.shape, a.dtype)
    return launch(
        partial(xp.matmul, a, w, out=y),
        step.beside("add_column", y, y, bias),
        step.flat("multiply", y, y, mask),
        step.flat("relu_of", y, y),
    ), y


def fused(a: Any, w: Any, bias: Any, mask: Any, **_: object) -> tuple[Launch, Any]:
    """The same product, and one kernel for all that follows it."""
    xp = array_module(a)
    y = xp.empty(mask.shape, a.dtype)
    return launch(
        partial(xp.matmul, a, w, out=y),
        EPILOGUE.matrix("bias_mask_relu", y.shape, (y, bias, mask)),
    ), y


def cublaslt(a: Any, w: Any, bias: Any, mask: Any, **_: object) -> tuple[Launch, Any]:
    """Bias and relu applied by cuBLASLt before it stores, and one step for the mask: 0 or 1 commutes with relu."""
    y = array_module(a).empty(mask.shape, a.dtype)
    return launch(product(a, w, y, bias=bias, activation="relu"), step.flat("multiply", y, y, mask)), y


def torch(a: Any, w: Any, bias: Any, mask: Any, **_: object) -> tuple[Launch, Any]:
    """The same two through PyTorch."""
    y = array_module(a).empty(mask.shape, a.dtype)
    return launch(torch_ops.on_current_stream(_torch_body, a, w, bias, mask, y)), y


def _torch_body(a: Any, w: Any, bias: Any, mask: Any, out: Any) -> None:
    import_module("torch")._addmm_activation(bias, a, w, out=out)  # noqa: SLF001 - it has no public name
    out.mul_(mask)


def fused_cpu(a: Any, w: Any, bias: Any, mask: Any, **_: object) -> tuple[Launch, Any]:
    """The same product, and one compiled loop for all that follows it."""
    y = np.empty(mask.shape, a.dtype)
    return launch(partial(np.matmul, a, w, out=y), in_threads(_loop, (y, mask), (bias,))), y


def _loop(_start: int, y: Any, mask: Any, bias: Any) -> None:
    for r in range(y.shape[0]):
        for c in range(y.shape[1]):
            x = (y[r, c] + bias[c]) * mask[r, c]
            y[r, c] = max(x, 0)


def reference(a: Any, w: Any, bias: Any, mask: Any, **_: object) -> Any:
    """The right answer, from float64 inputs."""
    return np.maximum((a @ w + bias) * mask, 0)


def traffic(*, dtype: str, m: int, n: int, k: int) -> dict[str, Any]:
    """Bytes and operations of one call."""
    size = element_bytes(dtype)
    factors, result, columns = (m * k + k * n) * size, m * n * size, n * size
    apart, two_passes = factors + columns + 8 * result, factors + columns + 4 * result
    return {
        "reads": factors + columns + result,
        "writes": result,
        "moved": {
            "unfused": apart,
            "steps": apart,
            **dict.fromkeys(("fused", "cublaslt", "torch"), two_passes),
        },
        "flops": 2 * m * n * k + 3 * m * n,
    }

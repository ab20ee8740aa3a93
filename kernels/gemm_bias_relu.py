"""out = relu(a @ b + bias), all of size n: a control that fusion must not help much.

Formula: a linear layer. At n = 8192 the product takes twenty times as long as either step behind it.
Traffic in units of n² elements: the product 3; then fused 2 more, step by step 4 more.
"""

from functools import partial
from typing import Any

import numpy as np

from kernels import steps as step
from kernels.cpu_threads import in_threads
from kernels.dtypes import element_bytes
from kernels.gemm_bias_mask_relu import EPILOGUE
from kernels.launch import Launch, array_module, launch


def unfused(a: Any, b: Any, bias: Any, **_: object) -> tuple[Launch, Any]:
    """One library call a step, all of them in place on the product."""
    xp = array_module(a)
    y = xp.empty((a.shape[0], b.shape[1]), a.dtype)
    return launch(
        partial(xp.matmul, a, b, out=y),
        partial(xp.add, y, bias, out=y),
        partial(xp.maximum, y, 0, out=y),
    ), y


def steps(a: Any, b: Any, bias: Any, **_: object) -> tuple[Launch, Any]:
    """The same product, and the same two steps with 16-byte accesses."""
    xp = array_module(a)
    y = xp.empty((a.shape[0], b.shape[1]), a.dtype)
    return launch(
        partial(xp.matmul, a, b, out=y),
        step.beside("add_column", y, y, bias),
        step.flat("relu_of", y, y),
    ), y


def fused(a: Any, b: Any, bias: Any, **_: object) -> tuple[Launch, Any]:
    """The same product, and one kernel for both that follow it."""
    xp = array_module(a)
    y = xp.empty((a.shape[0], b.shape[1]), a.dtype)
    return launch(partial(xp.matmul, a, b, out=y), EPILOGUE.matrix("bias_relu", y.shape, (y, bias))), y


def fused_cpu(a: Any, b: Any, bias: Any, **_: object) -> tuple[Launch, Any]:
    """The same product, and one compiled loop for both that follow it."""
    y = np.empty((a.shape[0], b.shape[1]), a.dtype)
    return launch(partial(np.matmul, a, b, out=y), in_threads(_loop, (y,), (bias,))), y


def _loop(_start: int, y: Any, bias: Any) -> None:
    for r in range(y.shape[0]):
        for c in range(y.shape[1]):
            x = y[r, c] + bias[c]
            y[r, c] = max(x, 0)


def reference(a: Any, b: Any, bias: Any, **_: object) -> Any:
    """The right answer, from float64 inputs."""
    return np.maximum(a @ b + bias, 0)


def traffic(*, dtype: str, n: int) -> dict[str, Any]:
    """Bytes and operations of one call."""
    size = element_bytes(dtype)
    matrix, columns = n * n * size, n * size
    apart = 7 * matrix + columns
    return {
        "reads": 2 * matrix + columns,
        "writes": matrix,
        "moved": {"unfused": apart, "steps": apart, "fused": 5 * matrix + columns},
        "flops": 2 * n**3 + 2 * n * n,
    }

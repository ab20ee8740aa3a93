"""h = x + residual and y = (h - mean(h)) / √(var(h) + ε) · gamma + beta, row by row of [rows, cols].

Formula: layer normalisation (Ba, Kiros and Hinton, 2016) behind a residual addition, as in a pre-norm transformer:
the sum is an output too, since the next block adds to it. ε = 1e-5.
Traffic in units of rows × cols elements: fused 2 + 2 = 4; step by step add 3, mean 1, subtract 2, square 2, mean 1,
divide 2, scale 2, shift 2: 15. Expected gain 3.75. Column vectors and row statistics count once.
"""

from functools import cache, partial
from typing import Any

import numpy as np

from kernels import steps as step
from kernels.cpu_threads import in_threads
from kernels.cuda_source import Source
from kernels.dtypes import element_bytes
from kernels.launch import Launch, array_module, launch, row_statistics_dtype
from kernels.rows import by_row, row_kernels

SOURCE = Source(
    ("row.cuh", "norm.cuh", "residual_layernorm.cu"), registers=dict.fromkeys(row_kernels("residual_layernorm", 4), 64)
)

EPSILON = 1e-5

PACKS_A_THREAD = 1


def unfused(x: Any, residual: Any, gamma: Any, beta: Any, **_: object) -> tuple[Launch, Any]:
    """One library call a step, into buffers that exist already."""
    xp = array_module(x)
    h, t, y = (xp.empty_like(x) for _ in range(3))
    kept = row_statistics_dtype(x)
    mean, deviation = xp.empty((x.shape[0], 1), kept), xp.empty((x.shape[0], 1), kept)
    return launch(
        partial(xp.add, x, residual, out=h),
        partial(xp.mean, h, axis=1, dtype=kept, out=mean, keepdims=True),
        partial(xp.subtract, h, mean, out=t),
        partial(xp.multiply, t, t, out=y),
        partial(xp.mean, y, axis=1, dtype=kept, out=deviation, keepdims=True),
        partial(xp.add, deviation, EPSILON, out=deviation),
        partial(xp.sqrt, deviation, out=deviation),
        partial(xp.divide, t, deviation, out=t),
        partial(xp.multiply, t, gamma, out=t),
        partial(xp.add, t, beta, out=y),
    ), (h, y)


def steps(x: Any, residual: Any, gamma: Any, beta: Any, **_: object) -> tuple[Launch, Any]:
    """The same steps with 16-byte accesses; the two on one number a row are one."""
    xp = array_module(x)
    h, t, y = (xp.empty_like(x) for _ in range(3))
    mean, deviation = xp.empty(x.shape[0], np.float32), xp.empty(x.shape[0], np.float32)
    return launch(
        step.flat("add", h, x, residual),
        step.over_row("row_mean", mean, h),
        step.beside("subtract_row", t, h, mean),
        step.flat("multiply", y, t, t),
        step.over_row("row_mean", deviation, y),
        step.root_of_rows(deviation, EPSILON, x.dtype),
        step.beside("divide_row", t, t, deviation),
        step.beside("multiply_column", t, t, gamma),
        step.beside("add_column", y, t, beta),
    ), (h, y)


def fused(x: Any, residual: Any, gamma: Any, beta: Any, **_: object) -> tuple[Launch, Any]:
    """One kernel; a row stays in the registers of some lanes or of a block."""
    xp = array_module(x)
    h, y = xp.empty_like(x), xp.empty_like(x)
    arrays = (x, residual, gamma, beta, h, y)
    call = by_row(SOURCE, "residual_layernorm", x.shape, arrays, np.float32(EPSILON), packs_a_thread=PACKS_A_THREAD)
    return launch(call), (h, y)


def fused_cpu(x: Any, residual: Any, gamma: Any, beta: Any, **_: object) -> tuple[Launch, Any]:
    """One compiled loop; a row stays in the first-level cache."""
    h, y = np.empty_like(x), np.empty_like(x)
    return launch(in_threads(_loop(str(x.dtype)), (x, residual, h, y), (gamma, beta))), (h, y)


@cache
def _loop(dtype: str) -> Any:
    real = np.dtype(dtype).type
    zero, one, epsilon = real(0), real(1), real(EPSILON)

    def loop(_start: int, x: Any, residual: Any, h: Any, y: Any, gamma: Any, beta: Any) -> None:
        share = one / real(x.shape[1])
        for r in range(x.shape[0]):
            total, squares = zero, zero
            for c in range(x.shape[1]):
                h[r, c] = x[r, c] + residual[r, c]
                total += h[r, c]
            mean = total * share
            for c in range(x.shape[1]):
                squares += (h[r, c] - mean) * (h[r, c] - mean)
            scale = one / np.sqrt(squares * share + epsilon)
            for c in range(x.shape[1]):
                y[r, c] = (h[r, c] - mean) * scale * gamma[c] + beta[c]

    return loop


def reference(x: Any, residual: Any, gamma: Any, beta: Any, **_: object) -> Any:
    """The right answer, from float64 inputs."""
    h = x + residual
    centred = h - h.mean(axis=1, keepdims=True)
    variance = (centred * centred).mean(axis=1, keepdims=True)
    return h, centred / np.sqrt(variance + EPSILON) * gamma + beta


def traffic(*, dtype: str, rows: int, cols: int) -> dict[str, Any]:
    """Bytes and operations of one call."""
    size = element_bytes(dtype)
    matrix, columns = rows * cols * size, 2 * cols * size
    statistics = 2 * rows * np.dtype(dtype if dtype == "float64" else "float32").itemsize
    apart = 15 * matrix + columns + statistics
    return {
        "reads": 2 * matrix + columns,
        "writes": 2 * matrix,
        "moved": {
            "unfused": apart,
            "steps": apart,
            "fused": 4 * matrix + columns,
            "torch": 5 * matrix + columns,  # the sum is written, and read again
            "torch_compile": 4 * matrix + columns,
        },
        "flops": 9 * rows * cols,
    }

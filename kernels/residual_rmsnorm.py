"""h = x + residual and y = h / √(mean(h²) + ε) · gamma, row by row of [rows, cols].

Formula: RMS normalisation (Zhang and Sennrich, 2019) behind a residual addition, as between the blocks of a Llama
model: the sum is an output too, since the next block adds to it. ε = 1e-6.
Traffic in units of rows × cols elements: fused 2 + 2 = 4; step by step add 3, then as RMS norm 7: 10. Expected gain
2.5. Column vectors and row statistics count once.
"""

from functools import partial
from typing import Any

import numpy as np

from kernels import rmsnorm
from kernels import steps as step
from kernels.cuda_source import Source
from kernels.dtypes import element_bytes
from kernels.launch import Launch, array_module, launch
from kernels.rows import by_row, row_kernels

SOURCE = Source(
    ("row.cuh", "norm.cuh", "residual_rmsnorm.cu"), registers=dict.fromkeys(row_kernels("residual_rmsnorm", 4), 64)
)

EPSILON = rmsnorm.EPSILON

PACKS_A_THREAD = 1


def unfused(x: Any, residual: Any, gamma: Any, **_: object) -> tuple[Launch, Any]:
    """One library call a step, into buffers that exist already."""
    xp = array_module(x)
    h = xp.empty_like(x)
    norm, y = rmsnorm.unfused(h, gamma)
    return launch(partial(xp.add, x, residual, out=h), *norm.steps), (h, y)


def steps(x: Any, residual: Any, gamma: Any, **_: object) -> tuple[Launch, Any]:
    """The same steps with 16-byte accesses; the two on one number a row are one."""
    xp = array_module(x)
    h, t, y = (xp.empty_like(x) for _ in range(3))
    root = xp.empty(x.shape[0], np.float32)
    return launch(
        step.flat("add", h, x, residual),
        step.flat("multiply", t, h, h),
        step.over_row("row_mean", root, t),
        step.root_of_rows(root, EPSILON, x.dtype),
        step.beside("divide_row", t, h, root),
        step.beside("multiply_column", y, t, gamma),
    ), (h, y)


def fused(x: Any, residual: Any, gamma: Any, **_: object) -> tuple[Launch, Any]:
    """One kernel; a row stays in the registers of some lanes or of a block."""
    xp = array_module(x)
    h, y = xp.empty_like(x), xp.empty_like(x)
    arrays = (x, residual, gamma, h, y)
    call = by_row(SOURCE, "residual_rmsnorm", x.shape, arrays, np.float32(EPSILON), packs_a_thread=PACKS_A_THREAD)
    return launch(call), (h, y)


def reference(x: Any, residual: Any, gamma: Any, **_: object) -> Any:
    """The right answer, from float64 inputs."""
    h = x + residual
    return h, rmsnorm.reference(h, gamma)


def traffic(*, dtype: str, rows: int, cols: int) -> dict[str, Any]:
    """Bytes and operations of one call."""
    size = element_bytes(dtype)
    matrix, columns = rows * cols * size, cols * size
    apart = 10 * matrix + columns + rows * 4
    once = dict.fromkeys(("fused", "torch_compile", "liger"), 4 * matrix + columns)
    return {
        "reads": 2 * matrix + columns,
        "writes": 2 * matrix,
        "moved": {"unfused": apart, "steps": apart, **once},
        "flops": 5 * rows * cols,
    }

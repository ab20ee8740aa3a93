"""y = x / √(mean(x²) + ε) · gamma, row by row of [rows, cols].

Formula: root mean square layer normalisation (Zhang and Sennrich, 2019); ε = 1e-6.
Traffic in units of rows × cols elements: fused 1 + 1 = 2; step by step square 2, mean 1, divide 2, scale 2: 7. Expected
gain 3.5. Column vectors and row statistics count once.
"""

from functools import partial
from typing import Any

import numpy as np

from kernels import steps as step
from kernels.cuda_source import Source
from kernels.dtypes import element_bytes
from kernels.launch import Launch, array_module, launch, row_statistics_dtype
from kernels.rows import by_row, row_kernels

SOURCE = Source(("row.cuh", "norm.cuh", "rmsnorm.cu"), registers=dict.fromkeys(row_kernels("rmsnorm", 4), 64))

EPSILON = 1e-6

PACKS_A_THREAD = 2
"""What a thread of `fused` holds of a row: with 1, too little is under way while the block waits for its sum."""
MOST_THREADS = 512
"""The launch bound of rmsnorm.cu for so many packs a thread."""


def unfused(x: Any, gamma: Any, **_: object) -> tuple[Launch, Any]:
    """One library call a step, into buffers that exist already."""
    xp = array_module(x)
    t, y = xp.empty_like(x), xp.empty_like(x)
    kept = row_statistics_dtype(x)
    root = xp.empty((x.shape[0], 1), kept)
    return launch(
        partial(xp.multiply, x, x, out=t),
        partial(xp.mean, t, axis=1, dtype=kept, out=root, keepdims=True),
        partial(xp.add, root, EPSILON, out=root),
        partial(xp.sqrt, root, out=root),
        partial(xp.divide, x, root, out=t),
        partial(xp.multiply, t, gamma, out=y),
    ), y


def steps(x: Any, gamma: Any, **_: object) -> tuple[Launch, Any]:
    """The same steps with 16-byte accesses; the two on one number a row are one."""
    xp = array_module(x)
    t, y = xp.empty_like(x), xp.empty_like(x)
    root = xp.empty(x.shape[0], np.float32)
    return launch(
        step.flat("multiply", t, x, x),
        step.over_row("row_mean", root, t),
        step.root_of_rows(root, EPSILON, x.dtype),
        step.beside("divide_row", t, x, root),
        step.beside("multiply_column", y, t, gamma),
    ), y


def fused(x: Any, gamma: Any, **_: object) -> tuple[Launch, Any]:
    """One kernel; a row stays in the registers of some lanes or of a block."""
    y = array_module(x).empty_like(x)
    shape = {"packs_a_thread": PACKS_A_THREAD, "most_threads": MOST_THREADS}
    return launch(by_row(SOURCE, "rmsnorm", x.shape, (x, gamma, y), np.float32(EPSILON), **shape)), y


def reference(x: Any, gamma: Any, **_: object) -> Any:
    """The right answer, from float64 inputs."""
    return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + EPSILON) * gamma


def traffic(*, dtype: str, rows: int, cols: int) -> dict[str, Any]:
    """Bytes and operations of one call."""
    size = element_bytes(dtype)
    matrix, columns = rows * cols * size, cols * size
    apart = 7 * matrix + columns + rows * 4
    once = dict.fromkeys(("fused", "torch", "torch_compile", "liger", "cudnn", "vllm"), 2 * matrix + columns)
    return {
        "reads": matrix + columns,
        "writes": matrix,
        "moved": {"unfused": apart, "steps": apart, **once},
        "flops": 4 * rows * cols,
    }

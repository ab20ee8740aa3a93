"""out = relu((x - mean) · rstd · gamma), x of [rows, cols], the others one value a column.

Formula: inference-time batch normalisation with known statistics (Ioffe and Szegedy, 2015), without a shift.
Traffic in units of rows × cols elements: fused 1 + 1 = 2; step by step 4 × 2 = 8. Expected gain 4.0. The column
vectors count once.
"""

from functools import partial
from typing import Any

import numpy as np

from kernels import steps as step
from kernels.cpu_threads import in_threads
from kernels.cuda_source import Source
from kernels.dtypes import element_bytes
from kernels.launch import Launch, array_module, launch

SOURCE = Source(("matrix.cuh", "norm_scale_relu.cu"), registers={"norm_scale_relu": 64})


def unfused(x: Any, mean: Any, rstd: Any, gamma: Any, **_: object) -> tuple[Launch, Any]:
    """One library call a step, into buffers that exist already."""
    xp = array_module(x)
    t, out = xp.empty_like(x), xp.empty_like(x)
    return launch(
        partial(xp.subtract, x, mean, out=t),
        partial(xp.multiply, t, rstd, out=t),
        partial(xp.multiply, t, gamma, out=t),
        partial(xp.maximum, t, 0, out=out),
    ), out


def steps(x: Any, mean: Any, rstd: Any, gamma: Any, **_: object) -> tuple[Launch, Any]:
    """The same four steps with 16-byte accesses."""
    xp = array_module(x)
    t, out = xp.empty_like(x), xp.empty_like(x)
    return launch(
        step.beside("subtract_column", t, x, mean),
        step.beside("multiply_column", t, t, rstd),
        step.beside("multiply_column", t, t, gamma),
        step.flat("relu_of", out, t),
    ), out


def fused(x: Any, mean: Any, rstd: Any, gamma: Any, **_: object) -> tuple[Launch, Any]:
    """One kernel; a thread keeps the parameters of its columns in registers over two rows."""
    out = array_module(x).empty_like(x)
    return launch(SOURCE.matrix("norm_scale_relu", x.shape, (x, mean, rstd, gamma, out))), out


def fused_cpu(x: Any, mean: Any, rstd: Any, gamma: Any, **_: object) -> tuple[Launch, Any]:
    """One compiled loop."""
    out = np.empty_like(x)
    return launch(in_threads(_loop, (x, out), (mean, rstd, gamma))), out


def _loop(_start: int, x: Any, out: Any, mean: Any, rstd: Any, gamma: Any) -> None:
    for r in range(x.shape[0]):
        for c in range(x.shape[1]):
            y = (x[r, c] - mean[c]) * rstd[c] * gamma[c]
            out[r, c] = max(y, 0)


def reference(x: Any, mean: Any, rstd: Any, gamma: Any, **_: object) -> Any:
    """The right answer, from float64 inputs."""
    return np.maximum((x - mean) * rstd * gamma, 0)


def traffic(*, dtype: str, rows: int, cols: int) -> dict[str, Any]:
    """Bytes and operations of one call."""
    size = element_bytes(dtype)
    matrix, columns = rows * cols * size, 3 * cols * size
    moved = {"unfused": 8 * matrix + columns, "steps": 8 * matrix + columns, "fused": 2 * matrix + columns}
    return {"reads": matrix + columns, "writes": matrix, "moved": moved, "flops": 4 * rows * cols}

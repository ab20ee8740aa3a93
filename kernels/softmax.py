"""out = exp(x - max(x)) / Σ exp(x - max(x)), row by row of [rows, cols].

Formula: the safe softmax; a row of which every element is -inf gives NaN.
Traffic in units of rows × cols elements: fused 1 + 1 = 2; step by step max 1, subtract 2, exp 2, sum 1, divide 2: 8.
Expected gain 4.0. Row statistics count once.
"""

from functools import cache, partial
from typing import Any

import numpy as np

from kernels import steps as step
from kernels.cpu_exp import exponential
from kernels.cpu_threads import in_threads
from kernels.cuda_source import Source
from kernels.launch import Launch, array_module, launch, row_statistics_dtype

SOURCE = Source(
    ("row.cuh", "softmax.cu"),
    registers={"softmax_1": 64, "softmax_2": 64, "softmax_4": 64},
)


def unfused(x: Any, **_: object) -> tuple[Launch, Any]:
    """One library call a step, into buffers that exist already."""
    xp = array_module(x)
    t, out = xp.empty_like(x), xp.empty_like(x)
    kept = row_statistics_dtype(x)
    most, total = xp.empty((x.shape[0], 1), x.dtype), xp.empty((x.shape[0], 1), kept)
    return launch(
        partial(xp.max, x, axis=1, out=most, keepdims=True),
        partial(xp.subtract, x, most, out=t),
        partial(xp.exp, t, out=t),
        partial(xp.sum, t, axis=1, dtype=kept, out=total, keepdims=True),
        partial(xp.divide, t, total, out=out),
    ), out


def steps(x: Any, **_: object) -> tuple[Launch, Any]:
    """The same five steps with 16-byte accesses."""
    xp = array_module(x)
    t, out = xp.empty_like(x), xp.empty_like(x)
    most, total = xp.empty(x.shape[0], np.float32), xp.empty(x.shape[0], np.float32)
    return launch(
        step.over_row("row_max", most, x),
        step.beside("subtract_row", t, x, most),
        step.flat("exp_of", t, t),
        step.over_row("row_sum", total, t),
        step.beside("divide_row", out, t, total),
    ), out


def fused(x: Any, **_: object) -> tuple[Launch, Any]:
    """One kernel, one block a row, which stays in registers."""
    out = array_module(x).empty_like(x)
    return launch(SOURCE.by_row("softmax", x.shape, (x, out), packs_a_thread=2)), out


def fused_cpu(x: Any, **_: object) -> tuple[Launch, Any]:
    """One compiled loop; a row stays in the first-level cache."""
    out = np.empty_like(x)
    return launch(in_threads(_loop(str(x.dtype)), (x, out))), out


@cache
def _loop(dtype: str) -> Any:
    exp, real = exponential(dtype), np.dtype(dtype).type
    zero, one, least, nan = real(0), real(1), real(-np.inf), real(np.nan)

    def loop(_start: int, x: Any, out: Any) -> None:
        for r in range(x.shape[0]):
            most, total = least, zero
            for c in range(x.shape[1]):
                most = max(most, x[r, c])
            for c in range(x.shape[1]):
                e = exp(x[r, c] - most)
                out[r, c] = e
                total += e
            share = nan if most == least else one / total
            for c in range(x.shape[1]):
                out[r, c] *= share

    return loop


def reference(x: Any, **_: object) -> Any:
    """The right answer, from float64 inputs."""
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def traffic(*, dtype: str, rows: int, cols: int) -> dict[str, Any]:
    """Bytes and operations of one call."""
    size = np.dtype(dtype).itemsize
    matrix = rows * cols * size
    apart = 8 * matrix + 2 * rows * np.dtype(dtype if dtype == "float64" else "float32").itemsize
    return {
        "reads": matrix,
        "writes": matrix,
        "moved": {"unfused": apart, "steps": apart, "fused": 2 * matrix},
        "flops": 4 * rows * cols,
    }

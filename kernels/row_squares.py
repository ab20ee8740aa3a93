"""out = offset + Σ x², row by row of [rows, cols]; offset and out are float32, one value a row.

Formula: the squared norm of every row on top of an offset, as in ‖x - y‖² = ‖x‖² + ‖y‖² - 2 x·y (nearest neighbours)
and in row-wise AdaGrad: a reduction with an element-wise operation on either side.
Traffic in units of rows × cols elements: fused 1; step by step square 2, sum 1: 3. Expected gain 3.0. Values per row
count once for each time they are read or written.
"""

from functools import cache, partial
from typing import Any

from kernels import steps as step
from kernels.cuda_source import Source
from kernels.dtypes import element_bytes
from kernels.launch import Launch, array_module, launch

SOURCE = Source(("row.cuh", "row_squares.cu"), registers={"row_squares": 48})


def unfused(x: Any, offset: Any, **_: object) -> tuple[Launch, Any]:
    """One library call a step, into buffers that exist already."""
    xp = array_module(x)
    t, out = xp.empty_like(x), xp.empty_like(offset)
    return launch(
        partial(xp.multiply, x, x, out=t),
        partial(xp.sum, t, axis=1, dtype=out.dtype, out=out),
        partial(xp.add, out, offset, out=out),
    ), out


def steps(x: Any, offset: Any, **_: object) -> tuple[Launch, Any]:
    """The same three steps with 16-byte accesses."""
    xp = array_module(x)
    t, out = xp.empty_like(x), xp.empty_like(offset)
    return launch(
        step.flat("multiply", t, x, x),
        step.over_row("row_sum", out, t),
        step.flat("add", out, out, offset),
    ), out


def fused(x: Any, offset: Any, **_: object) -> tuple[Launch, Any]:
    """One kernel, one block a row, which stays in registers."""
    out = array_module(x).empty_like(offset)
    return launch(SOURCE.by_row("row_squares", x.shape, (x, offset, out), sized=False)), out


def fused_cupy(x: Any, offset: Any, **_: object) -> tuple[Launch, Any]:
    """`cupy.fuse` of all three steps. It allocates the sums of the rows at each call."""
    out = array_module(x).empty_like(offset)
    return launch(partial(_fusion(str(x.dtype)), x, offset, out)), out


@cache
def _fusion(_dtype: str) -> Any:
    """One for each dtype: `cupy.fuse` changes its way of fusing for good where a dtype needs the other one."""
    import cupy

    def row_squares(x: Any, offset: Any, out: Any) -> None:
        xp = array_module(x)
        xp.add(xp.sum(x * x, axis=1), offset, out=out)

    return cupy.fuse(row_squares)


def reference(x: Any, offset: Any, **_: object) -> Any:
    """The right answer, from float64 inputs."""
    return offset + (x * x).sum(axis=1)


def traffic(*, dtype: str, rows: int, cols: int) -> dict[str, Any]:
    """Bytes and operations of one call."""
    matrix, column = rows * cols * element_bytes(dtype), rows * 4
    moved = {
        "unfused": 3 * matrix + 4 * column,
        "steps": 3 * matrix + 4 * column,
        "fused": matrix + 2 * column,
        "fused_cupy": matrix + 4 * column,
    }
    return {"reads": matrix + column, "writes": column, "moved": moved, "flops": 2 * rows * cols}

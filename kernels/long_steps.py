"""Reductions of rows of any length as single steps; `steps` has those of rows that fit in registers."""

from typing import Any

from kernels import steps
from kernels.cuda_source import MOST_PACKS_A_THREAD, MOST_THREADS, Source, pack_elements
from kernels.launch import KernelCall
from kernels.rows import streamed

SOURCE = Source(
    ("row.cuh", "long_row.cuh", "long_steps.cu"), registers=dict.fromkeys(("row_max", "row_sum", "row_mean"), 64)
)


def over_row(kernel: str, out: Any, x: Any) -> KernelCall:
    """`row_max`, `row_sum`, `row_mean`: a float32 number per row."""
    if x.shape[1] <= MOST_PACKS_A_THREAD * MOST_THREADS * pack_elements(str(x.dtype)):
        return steps.over_row(kernel, out, x)
    return streamed(SOURCE, kernel, x.shape, (x, out))

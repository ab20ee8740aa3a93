"""Single steps as well-made CUDA kernels: what a `steps` variant is put together from.

CuPy's own element-wise kernels handle one element a thread and reach 20 to 78 % of what the memory of a large
card gives. Against them, a fused kernel wins by its better code as well as by fusion; against these steps, which
access memory in packs of 16 bytes as the fused kernels do, only by fusion.
"""

from typing import Any

import numpy as np

from kernels.cuda_source import FLAT_THREADS, Source, checked
from kernels.launch import KernelCall

SOURCE = Source(
    files=("flat.cuh", "matrix.cuh", "row.cuh", "steps.cu"),
    registers={
        "add": 32,
        "multiply": 32,
        "divide": 48,
        "copy_of": 32,
        "relu_of": 32,
        "exp_of": 32,
        "tanh_of": 40,
        "scale": 32,
        "shift": 32,
        "subtract_column": 48,
        "add_column": 48,
        "multiply_column": 48,
        "subtract_row": 48,
        "divide_row": 64,
        "row_max": 48,
        "row_sum": 48,
        "row_mean": 48,
        "root_of_rows": 32,
    },
)


def flat(kernel: str, out: Any, *inputs: Any, by: float | None = None) -> KernelCall:
    """`add`, `multiply`, `divide`, `relu_of`, `exp_of`, `tanh_of`, `copy_of`; with the scalar `by` `scale`, `shift`."""
    scalars = () if by is None else (np.float32(by),)
    return SOURCE.flat(kernel, out.size, (*inputs, out), *scalars)


def beside(kernel: str, out: Any, x: Any, vector: Any) -> KernelCall:
    """A matrix with a value per column (`add_column`, …) or a float32 value per row (`subtract_row`, …)."""
    return SOURCE.matrix(kernel, x.shape, (x, vector, out))


def over_row(kernel: str, out: Any, x: Any) -> KernelCall:
    """`row_max`, `row_sum`, `row_mean`: a float32 number per row."""
    return SOURCE.by_row(kernel, x.shape, (x, out), sized=False)


def root_of_rows(values: Any, shift_by: float, dtype: Any) -> KernelCall:
    """In place √(value + shift_by) of a float32 number per row, in the module for elements of `dtype`."""
    checked(values)
    args = (values, np.int64(values.size), np.float32(shift_by))
    return SOURCE.bind("root_of_rows", str(dtype), -(-values.size // FLAT_THREADS), FLAT_THREADS, args)

"""CUDA C++ sources: reading, compiling once per process, and binding arguments to a kernel.

A source is one translation unit without includes of its own files: CuPy's cache on disk knows the text, the
options and the compiler, not the files that a text includes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from kernels.dtypes import element_bytes
from kernels.launch import KernelCall

ELEMENT = {"float32": "float", "float16": "__half", "bfloat16": "__nv_bfloat16"}
"""dtype → the element type of the CUDA C++ sources."""

ACCESS_BYTES = 16
"""What one thread loads or stores at once, a *pack*; arrays must be aligned to it."""

FLAT_THREADS = 256
MATRIX_THREADS = 256
ROWS_A_THREAD = 2
"""The constant ROWS of matrix.cuh."""

MOST_PACKS_A_THREAD = 4
MOST_THREADS = 1024


@dataclass(frozen=True)
class Source:
    """A CUDA C++ text, and the most registers a thread of each of its kernels may use."""

    files: tuple[str, ...]
    """Names of files beside this module, in order; prelude.cuh comes first by itself."""
    registers: Mapping[str, int]
    """Kernel → budget, for every element type and architecture; no kernel may spill."""
    dtypes: tuple[str, ...] = tuple(ELEMENT)
    """What its elements may be."""

    @property
    def text(self) -> str:
        """The whole translation unit."""
        return "\n".join(_read(name) for name in ("prelude.cuh", *self.files))

    def flat(self, kernel: str, elements: int, arrays: tuple[Any, ...], *scalars: Any) -> KernelCall:
        """Bind a kernel with one pack a thread over `elements` elements: arguments are arrays, count, scalars."""
        import numpy as np

        dtype = checked(*arrays)
        packs = -(-elements // pack_elements(dtype))
        args = (*arrays, np.int64(elements), *scalars)
        return self.bind(kernel, dtype, max(1, -(-packs // FLAT_THREADS)), FLAT_THREADS, args)

    def matrix(self, kernel: str, shape: tuple[int, int], arrays: tuple[Any, ...]) -> KernelCall:
        """Bind a kernel of matrix.cuh: arguments are arrays, rows, packs a row, blocks across."""
        import numpy as np

        dtype = checked(*arrays)
        rows, packs = shape[0], packs_in_row(shape[1], dtype)
        threads = min(MATRIX_THREADS, _power_of_two(packs))
        across = -(-packs // threads)
        args = (*arrays, np.int64(rows), np.int32(packs), np.int32(across))
        return self.bind(kernel, dtype, across * -(-rows // ROWS_A_THREAD), threads, args)

    def by_row(
        self,
        kernel: str,
        shape: tuple[int, int],
        arrays: tuple[Any, ...],
        *scalars: Any,
        packs_a_thread: int = MOST_PACKS_A_THREAD,
        most_threads: int = MOST_THREADS,
        sized: bool = True,
    ) -> KernelCall:
        """Bind a kernel with one block a row, the row in registers: arguments are arrays, packs a row, scalars.

        A thread holds `packs_a_thread` packs, up to four where the row has more than that for `most_threads`. A `sized`
        kernel exists for 1, 2 and 4 packs a thread, as `kernel_1`, `kernel_2` and `kernel_4`.
        """
        import numpy as np

        dtype = checked(*arrays)
        packs = packs_in_row(shape[1], dtype)
        held = packs_a_thread
        while packs > held * most_threads and held < MOST_PACKS_A_THREAD:
            held *= 2
        if packs > held * MOST_THREADS:
            most = held * MOST_THREADS * pack_elements(dtype)
            raise ValueError(f"a row of {shape[1]} {dtype} elements does not fit in registers; the most is {most}")
        threads = _power_of_two(-(-packs // held))
        name = f"{kernel}_{_power_of_two(-(-packs // threads), least=1)}" if sized else kernel
        return self.bind(name, dtype, shape[0], threads, (*arrays, np.int32(packs), *scalars))

    def bind(self, kernel: str, dtype: str, blocks: int, threads: int, args: tuple[Any, ...]) -> KernelCall:
        """Compile `kernel` for `dtype` unless this process has it already, and bind its arguments."""
        if dtype in ELEMENT and dtype not in self.dtypes:
            raise ValueError(f"{kernel} is for elements of {', '.join(self.dtypes)}, not {dtype}")
        text, options = self.text, compile_options(dtype)
        identity = "\n".join((*options, text))
        return KernelCall(compiled(text, options, kernel), (blocks,), (threads,), args, identity)


@cache
def _read(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def compile_options(dtype: str) -> tuple[str, ...]:
    """Options of the run-time compiler for elements of `dtype`."""
    if dtype not in ELEMENT:
        raise ValueError(f"the CUDA kernels are for elements of {', '.join(ELEMENT)}, not {dtype}")
    return ("-std=c++17", f"-DELEM={ELEMENT[dtype]}")


@cache
def compiled(text: str, options: tuple[str, ...], kernel: str) -> Any:
    """The compiled kernel, a `cupy.RawKernel`; CuPy compiles a text once, however many kernels it has."""
    import cupy

    return cupy.RawModule(code=text, options=options).get_function(kernel)


def checked(*arrays: Any) -> str:
    """The dtype of the first array, after checking that raw pointers to all of them mean what they should."""
    for array in arrays:
        if not array.flags.c_contiguous:
            raise ValueError(f"an array of shape {array.shape} is not contiguous; pass a copy")
        if _address(array) % ACCESS_BYTES:
            raise ValueError(f"an array of shape {array.shape} is not aligned to {ACCESS_BYTES} bytes; pass a copy")
    return str(arrays[0].dtype)


def _address(array: Any) -> int:
    # a NumPy array of bfloat16 has no buffer, so that its `data` cannot even be asked for
    return array.ctypes.data if hasattr(array, "ctypes") else array.data.ptr


def pack_elements(dtype: str) -> int:
    """Elements in one 16-byte access."""
    return ACCESS_BYTES // element_bytes(dtype)


def packs_in_row(columns: int, dtype: str) -> int:
    """How many packs a row of `columns` elements has; every row must begin at a 16-byte border."""
    width = pack_elements(dtype)
    if columns == 0 or columns % width:
        raise ValueError(f"a row of {columns} {dtype} elements is not a multiple of {width} (16 bytes); pad the rows")
    return columns // width


def _power_of_two(count: int, *, least: int = 32) -> int:
    return max(least, 1 << (count - 1).bit_length())

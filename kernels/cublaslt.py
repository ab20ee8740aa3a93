"""Matrix products by cuBLASLt, through its C interface.

CuPy 14 has no binding of this library. Its own products take neither a bias nor an activation, are refused while a
stream is being captured, and turn stacked halves into float32 before they multiply them. cuBLASLt does none of that,
and it lies beside the cuBLAS that CuPy loads anyway.

It thinks in columns: a matrix whose rows lie one after the other is its own transpose to it. So `out = a @ b` is
asked for as outᵀ = bᵀ aᵀ, which also puts a bias per column of `out` where the library wants it, along its rows.
"""

import ctypes
import weakref
from ctypes import byref, c_float, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass
from functools import cache
from typing import Any

from kernels.dtypes import element_bytes

WORKSPACE_BYTES = 32 << 20
"""What NVIDIA recommends for cards of the Hopper generation and later; shared by all products of a process."""

_DATA_TYPE = {"float32": 0, "float16": 2, "bfloat16": 14}
_COMPUTE_32F = 68
_DESC_TRANSA, _DESC_EPILOGUE, _DESC_BIAS_POINTER = 3, 7, 8
_LAYOUT_BATCH_COUNT, _LAYOUT_BATCH_STRIDE = 5, 6
_PREF_MAX_WORKSPACE_BYTES = 1
_PREF_MIN_ALIGNMENT_BYTES = (5, 6, 7, 8)
"""Of the two factors, the addend and the result; the library takes 256 where it is not told."""
_ACTIVATION = {"": 1, "relu": 2, "gelu": 32}
_BIAS = 4


class _Heuristic(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t."""

    _fields_ = (
        ("algorithm", c_uint64 * 8),
        ("workspace_bytes", c_size_t),
        ("state", c_int32),
        ("waves", c_float),
        ("reserved", c_int32 * 4),
    )


@dataclass(frozen=True, slots=True)
class Matrix:
    """One matrix, or a stack of matrices at an even distance, whose rows are contiguous."""

    address: int
    dtype: str
    rows: int
    cols: int
    row_stride: int
    stack: int
    stack_stride: int

    @classmethod
    def of(cls, array: Any) -> "Matrix":
        """The last two axes of a CuPy array; the axes before them are the stack."""
        *stack, rows, cols = array.shape
        *strides, row_stride, col_stride = (stride // array.itemsize for stride in array.strides)
        count, distance = 1, 0
        for length, stride in zip(reversed(stack), reversed(strides), strict=True):
            if length == 1:
                continue
            if count > 1 and stride != count * distance:
                raise ValueError(f"the matrices of an array of strides {array.strides} are not evenly spaced")
            distance = distance or stride
            count *= length
        if col_stride != 1 and cols > 1:
            raise ValueError(f"the rows of an array of strides {array.strides} are not contiguous")
        return cls(array.data.ptr, str(array.dtype), rows, cols, row_stride if rows > 1 else cols, count, distance)

    @property
    def alignment(self) -> int:
        """Bytes, at most 256, of which the address of every matrix of the stack is a multiple."""
        bits = self.address | (self.stack_stride * element_bytes(self.dtype) if self.stack > 1 else 0) | 256
        return bits & -bits


class Product:
    """`out = activation(scale · a @ b + add + bias)`, prepared; calling it issues the product on the current stream.

    Sums are float32 whatever the elements are, and `out` is rounded once. `b` is [k, n], or [n, k] if `transposed`.
    """

    def __init__(
        self,
        a: Any,
        b: Any,
        out: Any,
        *,
        transposed: bool,
        scale: float,
        add: Any,
        bias: Any,
        activation: str,
    ) -> None:
        self._current_stream = _stream_getter()
        self._kept = (a, b, out, add, bias, _workspace())
        self._scale, self._beta = c_float(scale), c_float(0.0 if add is None else 1.0)
        left, right, result = Matrix.of(b), Matrix.of(a), Matrix.of(out)
        _check_shapes(right, left, result, transposed=transposed)
        plan = _Plan(transposed, activation, None if bias is None else int(bias.data.ptr))
        addend = result if add is None else Matrix.of(add)
        matrices = (left, right, addend, result)
        layouts = [plan.layout(matrix) for matrix in matrices]
        self._algorithm = plan.algorithm(layouts, [matrix.alignment for matrix in matrices])
        self._plan = plan
        self._arguments = (
            *(_handle(), plan.description, byref(self._scale)),
            *(c_void_p(left.address), layouts[0], c_void_p(right.address), layouts[1]),
            *(byref(self._beta), c_void_p(addend.address), layouts[2], c_void_p(result.address), layouts[3]),
            *(byref(self._algorithm), c_void_p(_workspace().data.ptr), c_size_t(WORKSPACE_BYTES)),
        )
        self._multiply = _library().cublasLtMatmul

    def __call__(self) -> None:
        """Issue it; allocates nothing."""
        _check(self._multiply(*self._arguments, c_void_p(self._current_stream().ptr)), "cublasLtMatmul")


class _Plan:
    """The library's descriptions of one product, destroyed with this object."""

    def __init__(self, transposed: bool, activation: str, bias: int | None) -> None:  # noqa: FBT001 - private
        library = _library()
        self.description = c_void_p()
        _check(
            library.cublasLtMatmulDescCreate(byref(self.description), _COMPUTE_32F, _DATA_TYPE["float32"]), "MatmulDesc"
        )
        weakref.finalize(self, library.cublasLtMatmulDescDestroy, self.description)
        self._set(_DESC_TRANSA, c_int32(int(transposed)))
        self._set(_DESC_EPILOGUE, c_int32(_ACTIVATION[activation] | (_BIAS if bias is not None else 0)))
        if bias is not None:
            self._set(_DESC_BIAS_POINTER, c_void_p(bias))

    def _set(self, attribute: int, value: Any) -> None:
        function = _library().cublasLtMatmulDescSetAttribute
        _check(function(self.description, attribute, byref(value), c_size_t(ctypes.sizeof(value))), "MatmulDesc")

    def layout(self, matrix: Matrix) -> c_void_p:
        """A matrix as the library sees it: its columns are our rows."""
        library, made = _library(), c_void_p()
        shape = (c_uint64(matrix.cols), c_uint64(matrix.rows), c_int64(matrix.row_stride))
        _check(library.cublasLtMatrixLayoutCreate(byref(made), _DATA_TYPE[matrix.dtype], *shape), "Layout")
        weakref.finalize(self, library.cublasLtMatrixLayoutDestroy, made)
        stack = {_LAYOUT_BATCH_COUNT: c_int32(matrix.stack), _LAYOUT_BATCH_STRIDE: c_int64(matrix.stack_stride)}
        for attribute, value in stack.items():
            size = c_size_t(ctypes.sizeof(value))
            _check(library.cublasLtMatrixLayoutSetAttribute(made, attribute, byref(value), size), "Layout")
        return made

    def algorithm(self, layouts: list[c_void_p], alignments: list[int]) -> _Heuristic:
        """The library's first choice."""
        library, preference = _library(), c_void_p()
        _check(library.cublasLtMatmulPreferenceCreate(byref(preference)), "Preference")
        limits = zip(_PREF_MIN_ALIGNMENT_BYTES, map(c_uint32, alignments), strict=True)
        try:
            for attribute, limit in ((_PREF_MAX_WORKSPACE_BYTES, c_uint64(WORKSPACE_BYTES)), *limits):
                size = c_size_t(ctypes.sizeof(limit))
                setter = library.cublasLtMatmulPreferenceSetAttribute
                _check(setter(preference, attribute, byref(limit), size), "Preference")
            found, count = _Heuristic(), c_int32()
            choose = library.cublasLtMatmulAlgoGetHeuristic
            arguments = (_handle(), self.description, *layouts, preference, 1, byref(found), byref(count))
            _check(choose(*arguments), "cublasLtMatmulAlgoGetHeuristic")
        finally:
            library.cublasLtMatmulPreferenceDestroy(preference)
        if not count.value:
            raise RuntimeError("cuBLASLt has no algorithm for this product")
        return found


def _check_shapes(a: Matrix, b: Matrix, out: Matrix, *, transposed: bool) -> None:
    inner, cols = (b.cols, b.rows) if transposed else (b.rows, b.cols)
    if (a.cols, a.rows, cols) != (inner, out.rows, out.cols):
        raise ValueError(f"shapes of a product do not fit: {a}, {b}, {out}")
    if not a.stack == b.stack == out.stack:
        raise ValueError(f"stacks of {a.stack}, {b.stack} and {out.stack} matrices are not the same")


def _check(status: int, what: str) -> None:
    if status:
        raise RuntimeError(f"{what} failed with cuBLAS status {status}")


@cache
def _library() -> Any:
    from cuda import pathfinder  # CuPy needs it, so it is there

    return ctypes.CDLL(pathfinder.load_nvidia_dynamic_lib("cublasLt").abs_path or "libcublasLt.so")


@cache
def _handle() -> c_void_p:
    made = c_void_p()
    _check(_library().cublasLtCreate(byref(made)), "cublasLtCreate")
    return made


@cache
def _stream_getter() -> Any:
    import cupy

    return cupy.cuda.get_current_stream


@cache
def _workspace() -> Any:
    import cupy

    return cupy.empty(WORKSPACE_BYTES, cupy.uint8)

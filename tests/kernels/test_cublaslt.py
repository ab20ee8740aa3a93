"""Products through cuBLASLt's C interface, against a stand-in of the library that runs on the CPU."""

import ctypes
import gc
import subprocess
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cuda_on_cpu import COMPILER, FLAGS, SHIM

from kernels import cublaslt, product
from kernels.cublaslt import Matrix, Product


class OnDevice:
    """A NumPy array that looks like one of CuPy's."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.shape, self.strides = array.shape, array.strides
        self.dtype, self.itemsize = array.dtype, array.itemsize
        self.data = SimpleNamespace(ptr=array.ctypes.data)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    library = tmp_path_factory.mktemp("cublaslt") / "cublaslt.so"
    subprocess.run([*COMPILER, *FLAGS, str(SHIM / "cublaslt_on_cpu.cpp"), "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))


@pytest.fixture
def library(built: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> ctypes.CDLL:
    monkeypatch.setattr(cublaslt, "_library", lambda: built)
    monkeypatch.setattr(cublaslt, "_handle", cache(cublaslt._handle.__wrapped__))
    monkeypatch.setattr(cublaslt, "_stream_getter", lambda: lambda: SimpleNamespace(ptr=77))
    workspace = OnDevice(np.empty(64, np.uint8))
    monkeypatch.setattr(cublaslt, "_workspace", lambda: workspace)
    return built


def normal(*shape: int, seed: int = 1) -> Any:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def multiply(a: Any, b: Any, out: Any, **options: Any) -> Product:
    chosen = {"transposed": False, "scale": 1.0, "add": None, "bias": None, "activation": ""} | options
    arrays = {name: OnDevice(value) if isinstance(value, np.ndarray) else value for name, value in chosen.items()}
    made = Product(OnDevice(a), OnDevice(b), OnDevice(out), **arrays)
    made()
    return made


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"transposed": True},
        {"scale": 0.25, "add": normal(5, 7, seed=2)},
        {"bias": normal(7), "activation": "relu"},
        {"transposed": True, "bias": normal(7), "activation": "gelu"},
        {"bias": normal(7)},
    ],
)
@pytest.mark.usefixtures("library")
def test_it_computes_what_the_stand_in_for_numpy_arrays_computes(options: dict[str, Any]) -> None:
    a, b = normal(5, 3), normal(7, 3) if "transposed" in options else normal(3, 7)
    out, right = np.full((5, 7), np.nan, np.float32), np.empty((5, 7), np.float32)
    multiply(a, b, out, **options)
    product.product(a, b, right, **options)()
    np.testing.assert_allclose(out, right, rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures("library")
def test_stacks_and_rows_with_room_between_them() -> None:
    queries, cache_of_keys = normal(2, 3, 1, 8), normal(2, 3, 9, 8)
    keys = cache_of_keys[:, :, :6]  # a cache with room for three more
    padded = np.full((2, 3, 1, 16), np.nan, np.float32)
    multiply(queries, keys, padded[..., :6], transposed=True)
    np.testing.assert_allclose(padded[..., :6], queries @ keys.swapaxes(-1, -2), rtol=1e-5, atol=1e-6)
    assert np.isnan(padded[..., 6:]).all()


@pytest.mark.usefixtures("library")
def test_a_view_of_columns_is_written_in_place() -> None:
    a, b, wide = normal(5, 3), normal(3, 4), np.full((5, 12), np.nan, np.float32)
    multiply(a, b, wide[:, 4:8])
    np.testing.assert_allclose(wide[:, 4:8], a @ b, rtol=1e-5, atol=1e-6)
    assert np.isnan(wide[:, :4]).all()
    assert np.isnan(wide[:, 8:]).all()


def test_it_goes_to_the_stream_that_is_current(library: ctypes.CDLL) -> None:
    multiply(normal(2, 3), normal(3, 4), np.empty((2, 4), np.float32))
    assert ctypes.c_void_p.in_dll(library, "last_stream").value == 77


def test_what_it_made_is_destroyed_with_it(library: ctypes.CDLL) -> None:
    before = library.cublaslt_living()
    made = multiply(normal(2, 3), normal(3, 4), np.empty((2, 4), np.float32))
    assert library.cublaslt_living() == before + 5, "a product and four matrices"
    del made
    gc.collect()
    assert library.cublaslt_living() == before


@pytest.mark.usefixtures("library")
def test_what_does_not_fit_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match="shapes of a product do not fit"):
        multiply(normal(2, 3), normal(4, 5), np.empty((2, 5), np.float32))
    with pytest.raises(ValueError, match="stacks of 2, 3 and 2 matrices are not the same"):
        multiply(normal(2, 4, 3), normal(3, 3, 5), np.empty((2, 4, 5), np.float32))
    with pytest.raises(ValueError, match="not evenly spaced"):
        Matrix.of(OnDevice(normal(2, 4, 6, 8)[:, :3]))
    with pytest.raises(ValueError, match=r"rows of an array of strides .* are not contiguous"):
        Matrix.of(OnDevice(normal(4, 6).T))
    with pytest.raises(RuntimeError, match="no algorithm for this product"):
        multiply(normal(13, 3), normal(3, 4), np.empty((13, 4), np.float32))


def test_a_matrix_with_one_row_has_no_distance_between_rows() -> None:
    assert Matrix.of(OnDevice(normal(3, 8)[1:2])).row_stride == 8
    assert Matrix.of(OnDevice(normal(2, 1, 4, 6))).stack == 2


def test_alignment_is_that_of_the_least_aligned_matrix_of_a_stack() -> None:
    matrix = replace(Matrix.of(OnDevice(np.zeros((2, 4, 6), np.float32))), address=1024)
    assert matrix.alignment == 32, "a matrix of the stack has 96 bytes"
    assert replace(matrix, stack=1).alignment == 256
    assert replace(matrix, address=1032).alignment == 8

"""The NumPy and the Numba versions against the float64 reference."""

import tracemalloc
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from agreement import Normal, assert_agrees, run

from kernels import (
    add_mul_relu,
    bias_gelu,
    cpu_exp,
    cpu_threads,
    dropout_relu,
    gemm_bias_mask_relu,
    gemm_bias_relu,
    norm_scale_relu,
    relu,
    residual_layernorm,
    softmax,
)

DTYPES = ("float32", "float64")
MATRIX = ((1, 1), (3, 7), (5, 1000), (130, 33))
SHAPES: dict[ModuleType, tuple[tuple[int, ...], ...]] = {
    add_mul_relu: ((1,), (7,), (1001,), (40003,)),
    relu: ((1,), (7,), (40003,)),
    dropout_relu: ((1,), (7,), (8,), (513,), (40003,)),
    norm_scale_relu: MATRIX,
    bias_gelu: MATRIX,
    residual_layernorm: MATRIX,
    softmax: MATRIX,
    gemm_bias_mask_relu: MATRIX,
    gemm_bias_relu: ((1, 1), (33, 33)),
}
CASES = [(module, shape) for module, shapes in SHAPES.items() for shape in shapes]


def inputs_of(module: ModuleType, shape: tuple[int, ...], dtype: str) -> tuple[Any, ...]:
    normal = Normal(dtype)

    def column(shift: float = 0) -> Any:
        return normal(shape[-1], shift=shift)

    makers: dict[ModuleType, Callable[[], tuple[Any, ...]]] = {
        add_mul_relu: lambda: (normal(*shape), normal(*shape), normal(*shape)),
        norm_scale_relu: lambda: (normal(*shape, shift=1), column(1), column(), column()),
        bias_gelu: lambda: (normal(*shape, scale=3), column()),
        residual_layernorm: lambda: (normal(*shape), normal(*shape), column(1), column()),
        softmax: lambda: (normal(*shape, scale=3),),
        gemm_bias_mask_relu: lambda: (
            normal(shape[0], 50),
            normal(50, shape[1], scale=1 / 7),
            column(),
            (normal(*shape) > -1).astype(dtype),
        ),
        gemm_bias_relu: lambda: (normal(*shape), normal(*shape), column()),
    }
    return makers.get(module, lambda: (normal(*shape),))()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("module", "shape"), CASES)
@pytest.mark.parametrize("variant", ["unfused", "fused_cpu"])
def test_variant_agrees_with_the_reference(
    module: ModuleType, shape: tuple[int, ...], dtype: str, variant: str
) -> None:
    factor = 5 if "gemm" in module.__name__ else 1  # sums of products in an order of their own
    assert_agrees(module, variant, inputs_of(module, shape, dtype), factor)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("variant", ["unfused", "fused_cpu"])
def test_softmax_of_special_rows(dtype: str, variant: str) -> None:
    x = Normal(dtype)(5, 100)
    x[0, :3] = -np.inf
    x[1] = 7
    x[2] += 5000
    x[3] = -np.inf
    with np.errstate(invalid="ignore"):
        assert_agrees(softmax, variant, (x,))


@pytest.mark.parametrize("variant", ["unfused", "fused_cpu"])
def test_dropout_is_the_same_in_every_dtype_and_on_every_call(variant: str) -> None:
    build = getattr(dropout_relu, variant)
    kept = [run(build, (np.ones(9001, dtype),))[0] > 0 for dtype in (*DTYPES, "float32")]
    np.testing.assert_array_equal(kept[0], kept[1])
    np.testing.assert_array_equal(kept[0], kept[2])
    assert 0.88 < kept[0].mean() < 0.92


@pytest.mark.parametrize("module", SHAPES)
@pytest.mark.parametrize("variant", ["unfused", "fused_cpu"])
def test_a_launch_allocates_next_to_nothing(module: ModuleType, variant: str) -> None:
    shape = (1 << 20,) if len(SHAPES[module][0]) == 1 else (1024, 1024)
    launch, _ = getattr(module, variant)(*inputs_of(module, shape, "float32"))
    launch()
    tracemalloc.start()
    try:
        launch()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < (1 << 22) / 8, "a launch allocates an eighth of an array"


@pytest.mark.parametrize("dtype", DTYPES)
def test_exponential(dtype: str) -> None:
    exp, most = cpu_exp.exponential(dtype), {"float32": 87.0, "float64": 708.0}[dtype]
    x = np.linspace(-most, most, 4001).astype(dtype)
    found = np.array([exp(value) for value in x], np.float64)
    right = np.exp(x.astype(np.float64))
    unit = float(np.finfo(dtype).eps)
    assert float((abs(found - right) / right).max()) < 4 * unit
    real = x.dtype.type
    assert 0 < exp(real(-np.inf)) < 1e-37
    assert exp(real(0)) == 1


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize("n", [1, 8, 9, 1000])
def test_parts_cover_every_element_once(threads: int, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_threads, "_threads", lambda: threads)
    seen = np.zeros(n, np.int64)
    cpu_threads.in_threads(_count, (seen,), multiple=8)()
    np.testing.assert_array_equal(seen, np.arange(n) + 1)


def _count(start: int, seen: Any) -> None:
    for i in range(seen.size):
        seen[i] += start + i + 1

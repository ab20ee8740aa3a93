"""Element-wise kernels, the chain and the controls, run on the CPU thread by thread; launches without a GPU."""

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from agreement import Normal, assert_agrees, assert_close, run

from kernels import (
    add_mul_relu,
    bias_gelu,
    chain,
    copy,
    cuda_source,
    gelu_scale,
    relu,
    relu_and_scale,
    row_squares,
    silu_mul,
    tiny_chain,
)

pytestmark = pytest.mark.usefixtures("cuda_on_cpu")

DTYPES = tuple(cuda_source.ELEMENT)
FLAT = (3, 40, 4099)
"""Below one pack, whole packs, several blocks and a tail."""


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("variant", ["unfused", "steps", "fused"])
def test_activations(dtype: str, variant: str) -> None:
    for n in FLAT:
        normal = Normal(dtype, seed=n)
        assert_agrees(gelu_scale, variant, (normal(n, scale=3),))
        assert_agrees(silu_mul, variant, (normal(n, scale=3), normal(n)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_activations_of_large_values_do_not_overflow(dtype: str) -> None:
    x = Normal(dtype)(40)
    x[:] = np.linspace(-300, 300, x.size)
    assert_agrees(silu_mul, "fused", (x, np.ones_like(x)))
    assert_agrees(gelu_scale, "fused", (x,))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("length", chain.LENGTHS)
def test_a_chain_of_any_length(dtype: str, length: int) -> None:
    for variant in ("unfused", "steps", "fused"):
        # each step of the chain rounds, and a later one may take the difference
        assert_agrees(chain, variant, (Normal(dtype)(4099),), factor=4 if variant == "fused" else length, length=length)


def test_a_chain_without_a_kernel_is_refused() -> None:
    with pytest.raises(ValueError, match="no fused chain of 5 operations; there are 1, 2, 3, 4, 8, 16"):
        chain.fused(np.ones(8, np.float32), length=5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "m"), [(40, 4099), (4099, 3), (1, 1), (2048, 4096)])
def test_controls(dtype: str, n: int, m: int) -> None:
    x, y = Normal(dtype)(n), Normal(dtype, seed=2)(m)
    for variant in ("unfused", "steps", "fused"):
        assert_agrees(relu_and_scale, variant, (x, y))
        (out,) = run(getattr(copy, variant), (x,))
        np.testing.assert_array_equal(out, x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("packs", [1, 33, 1000, 3000])
def test_row_squares(dtype: str, packs: int) -> None:
    x, offset = Normal(dtype)(3, packs * cuda_source.pack_elements(dtype)), Normal("float32", seed=2)(3)
    # the sums are float32; what rounds to a shorter dtype on the way is the squares of the steps
    steps = {"float32": 1.0, "float16": 500.0, "bfloat16": 4000.0}[dtype]
    for variant, factor in (("unfused", steps), ("steps", steps), ("fused", 1.0)):
        assert_agrees(row_squares, variant, (x, offset), factor)


def test_fusion_by_cupy_is_of_the_same_formula() -> None:
    normal = Normal("float32")  # given NumPy arrays, `cupy.fuse` runs the function as it is
    assert_agrees(add_mul_relu, "fused_cupy", (normal(40), normal(40), normal(40)), 4)
    assert_agrees(row_squares, "fused_cupy", (normal(5, 64), normal(5)), 4)


class Tensor:
    """As much of a tensor as the expressions below need."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __add__(self, other: Any) -> "Tensor":
        return Tensor(self.values + getattr(other, "values", other))

    def __mul__(self, other: Any) -> "Tensor":
        return Tensor(self.values * getattr(other, "values", other))

    __radd__, __rmul__ = __add__, __mul__

    def relu(self) -> "Tensor":
        return Tensor(np.maximum(self.values, 0))

    def tanh(self) -> "Tensor":
        return Tensor(np.tanh(self.values))

    def sigmoid(self) -> "Tensor":
        return Tensor(1 / (1 + np.exp(-self.values)))

    def copy_(self, other: "Tensor") -> None:
        self.values[...] = other.values


def test_what_torch_is_given_is_of_the_same_formula() -> None:
    x, y, z = (Normal("float64", seed=seed)(40) for seed in (1, 2, 3))
    tensors = [Tensor(values) for values in (x, y, z)]
    np.testing.assert_allclose(add_mul_relu._expression(*tensors).values, add_mul_relu.reference(x, y, z))
    np.testing.assert_allclose(bias_gelu._expression(*tensors[:2]).values, bias_gelu.reference(x, y), atol=1e-12)
    out = Tensor(np.empty(40))
    add_mul_relu._body(*tensors, out)
    np.testing.assert_allclose(out.values, add_mul_relu.reference(x, y, z))
    silu_mul._body(*tensors[:2], out)
    np.testing.assert_allclose(out.values, silu_mul.reference(x, y))


class Stream:
    """Stands for the stream that captures: what is called between begin and end makes the graph."""

    def __init__(self, log: list[str]) -> None:
        self.log = log

    def synchronize(self) -> None:
        self.log.append("wait")

    def begin_capture(self) -> None:
        self.log.append("begin")

    def end_capture(self) -> SimpleNamespace:
        self.log.append("end")
        return SimpleNamespace(launch=lambda: self.log.append("replay"))


def test_a_graph_is_captured_once_and_only_replayed_when_launched(monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[str] = []
    stream = SimpleNamespace(get_current_stream=lambda: Stream(log))
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=stream))
    launched, out = tiny_chain.fused_graph(x := Normal("float32")(40), length=3, repeats=2)
    assert log == ["wait", "begin", "end"]
    launched()
    launched()
    assert log[3:] == ["replay", "replay"]
    assert_close(out, chain.reference(x.astype(np.float64), length=3), 4)
    assert [use[0].name for use in launched.kernels] == ["chain_3"] * 2
    tiny_chain.graph(x, length=16, repeats=1)


def test_more_elements_than_32_bits_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_source, "compiled", lambda *_: print)
    x = np.empty(2**31 + 8, np.float16)  # never touched, so that it takes no memory
    launched, _ = relu.fused(x)
    ((_, grid, block, _),) = launched.kernels
    assert grid[0] * block[0] * 8 >= x.size
    assert grid[0] < 2**31
    (call,) = launched.steps
    n = call.args[2][-1]
    assert (n, n.dtype) == (2**31 + 8, np.dtype(np.int64))

"""Variants by TensorRT and vLLM: what can be told without either, by stand-ins that have the calls they are given."""

import sys
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from kernels import bias_gelu, rmsnorm, silu_mul, tensorrt_ops, vllm_ops
from perftrack.measure.collect import collect_tree
from perftrack.measure.session import Session
from perftrack.measure.tree import Workspace
from perftrack.model import Status

ROOT = Path(__file__).parents[2]
STREAM = 7


class Array(np.ndarray):
    """NumPy's memory with CuPy's name for its address."""

    @property
    def data(self) -> Any:
        return SimpleNamespace(ptr=self.ctypes.data)


Array.__module__ = "cupy"  # where its functions are looked for


def array(values: Any, dtype: Any = np.float32) -> Any:
    return np.asarray(values).astype(dtype).view(Array)


class Tensor:
    """A tensor of the network: how to compute it from the bound arrays."""

    def __init__(self, compute: Any, name: str = "") -> None:
        self.compute, self.name = compute, name


class Network:
    def __init__(self) -> None:
        self.inputs: dict[str, tuple[Any, tuple[int, ...]]] = {}
        self.out = Tensor(None)

    def add_input(self, name: str, kind: Any, shape: tuple[int, ...]) -> Tensor:
        self.inputs[name] = (kind, shape)
        return Tensor(lambda bound: bound[name].reshape(shape), name)

    def add_elementwise(self, left: Tensor, right: Tensor, operation: str) -> Any:
        assert operation == "sum"
        return self._layer(lambda bound: left.compute(bound) + right.compute(bound))

    def add_activation(self, inside: Tensor, kind: str) -> Any:
        assert kind == "gelu_tanh"
        return self._layer(lambda bound: bias_gelu.reference(inside.compute(bound), 0.0))

    def _layer(self, compute: Any) -> Any:
        return SimpleNamespace(get_output=lambda index: Tensor(compute))

    def mark_output(self, tensor: Tensor) -> None:
        self.out = tensor


class TensorRT(SimpleNamespace):
    """Builds networks and runs them on arrays that are known by their addresses."""

    def __init__(self) -> None:
        super().__init__(
            Logger=type("Logger", (), {"WARNING": 2, "__init__": lambda self, level: None}),
            NetworkDefinitionCreationFlag=SimpleNamespace(STRONGLY_TYPED=1),
            DataType=SimpleNamespace(FLOAT="f32", HALF="f16", BF16="bf16"),
            ElementWiseOperation=SimpleNamespace(SUM="sum"),
            ActivationType=SimpleNamespace(GELU_TANH="gelu_tanh"),
        )
        self.networks: list[Network] = []
        self.memory: dict[int, Any] = {}
        self.runs: list[int] = []
        self.refuses = ""

    def Builder(self, logger: Any) -> Any:  # noqa: N802 - TensorRT's name
        return SimpleNamespace(
            create_network=self._network,
            create_builder_config=SimpleNamespace,
            build_serialized_network=lambda network, config: None if self.refuses == "build" else network,
        )

    def Runtime(self, logger: Any) -> Any:  # noqa: N802 - TensorRT's name
        return SimpleNamespace(deserialize_cuda_engine=self._engine)

    def _network(self, flags: int) -> Network:
        assert flags == 2, "strongly typed"
        self.networks.append(Network())
        return self.networks[-1]

    def _engine(self, network: Network) -> Any:
        return SimpleNamespace(create_execution_context=partial(self._context, network))

    def _context(self, network: Network) -> Any:
        addresses: dict[str, int] = {}

        def bind(name: str, address: int) -> bool:
            addresses[name] = address
            return name in network.inputs or name == network.out.name

        def execute(stream: int) -> bool:
            self.runs.append(stream)
            bound = {name: self.memory[address] for name, address in addresses.items()}
            bound["out"][...] = network.out.compute(bound)
            return self.refuses != "run"

        return SimpleNamespace(set_tensor_address=bind, execute_async_v3=execute)


@pytest.fixture
def tensorrt(monkeypatch: pytest.MonkeyPatch) -> Iterator[TensorRT]:
    made = TensorRT()

    def empty_like(like: Any) -> Any:
        out = np.empty_like(like)
        made.memory[out.data.ptr] = out
        return out

    stream = SimpleNamespace(get_current_stream=lambda: SimpleNamespace(ptr=STREAM))
    monkeypatch.setitem(sys.modules, "tensorrt", made)
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=stream, empty_like=empty_like))
    yield made
    for kept in (tensorrt_ops._bias_gelu, tensorrt_ops._logger, tensorrt_ops._runtime):
        kept.cache_clear()


def inputs(tensorrt: TensorRT, dtype: Any = np.float32) -> tuple[Any, Any]:
    rng = np.random.default_rng(5)
    made = array(rng.standard_normal((3, 8)), dtype), array(rng.standard_normal(8), dtype)
    tensorrt.memory |= {one.data.ptr: one for one in made}
    return made


@pytest.mark.parametrize(("dtype", "kind"), [(np.float32, "f32"), (np.float16, "f16"), (ml_dtypes.bfloat16, "bf16")])
def test_a_network_is_typed_by_its_arrays_and_reads_and_writes_them(tensorrt: TensorRT, dtype: Any, kind: str) -> None:
    x, bias = inputs(tensorrt, dtype)
    launch, out = tensorrt_ops.bias_gelu(x, bias, dtype="ignored")
    assert tensorrt.networks[0].inputs == {"x": (kind, (3, 8)), "bias": (kind, (1, 8))}
    assert (out.dtype, out.shape) == (x.dtype, x.shape)
    assert tensorrt.runs == [STREAM], "run once when built, on the stream that was CuPy's then"
    out[...] = 0
    x[0, 0] = 2
    launch()
    right = bias_gelu.reference(x.astype(np.float64), bias.astype(np.float64))
    np.testing.assert_allclose(out.astype(np.float64), right, rtol=2e-2, atol=2e-2)


def test_a_network_is_built_once_for_a_shape_and_executed_on_each_set(tensorrt: TensorRT) -> None:
    outs = [tensorrt_ops.bias_gelu(*inputs(tensorrt))[1] for _ in range(2)]
    assert len(tensorrt.networks) == 1
    assert outs[0].data.ptr != outs[1].data.ptr


@pytest.mark.parametrize(
    ("x", "bias", "said"),
    [
        (np.zeros((3, 8)), np.zeros(8), "float32, float16, bfloat16, not float64"),
        (np.zeros(8, np.float32), np.zeros(8, np.float32), "shape \\(8,\\); it must be a matrix"),
        (np.zeros((8, 3), np.float32).T, np.zeros(8, np.float32), "rows follow each other"),
        (np.zeros((3, 8), np.float32), np.zeros(3, np.float32), "must be float32 \\(8,\\)"),
        (np.zeros((3, 8), np.float32), np.zeros(8, np.float16), "bias is float16"),
    ],
)
def test_arrays_that_a_network_cannot_take_are_refused_before_tensorrt_is_asked(x: Any, bias: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        tensorrt_ops.bias_gelu(x, bias)


@pytest.mark.parametrize(("refuses", "said"), [("build", "could not build"), ("run", "did not enqueue")])
def test_what_tensorrt_refuses_is_an_error(tensorrt: TensorRT, refuses: str, said: str) -> None:
    tensorrt.refuses = refuses
    with pytest.raises(RuntimeError, match=said):
        tensorrt_ops.bias_gelu(*inputs(tensorrt))


@pytest.fixture
def vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    """vLLM's two operators by NumPy, with its order of arguments and its rounding."""

    def rms_norm(out: Any, x: Any, weight: Any, epsilon: float) -> None:
        wide = x.astype(np.float32)
        normed = wide / np.sqrt((wide * wide).mean(axis=-1, keepdims=True) + epsilon)
        out[...] = normed.astype(x.dtype) * weight

    def silu_and_mul(out: Any, joined: Any) -> None:
        gate, up = np.split(joined, 2, axis=-1)
        wide = gate.astype(np.float32)
        out[...] = (wide / (1 + np.exp(-wide))).astype(joined.dtype) * up

    custom = ModuleType("vllm._custom_ops")
    custom.rms_norm = rms_norm  # type: ignore[attr-defined]
    torch = SimpleNamespace(ops=SimpleNamespace(_C=SimpleNamespace(silu_and_mul=silu_and_mul)))
    monkeypatch.setitem(sys.modules, "vllm._custom_ops", custom)
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(vllm_ops, "on_current_stream", partial)


@pytest.mark.usefixtures("vllm")
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_vllm_s_operators_get_our_arrays_in_their_order(dtype: Any) -> None:
    rng = np.random.default_rng(6)
    allowed = 4 * float(np.finfo(dtype).eps)
    x, gamma = rng.standard_normal((5, 64)).astype(dtype), rng.uniform(0.5, 1.5, 64).astype(dtype)
    launch, out = vllm_ops.rmsnorm(x, gamma)
    launch()
    right = rmsnorm.reference(x.astype(np.float64), gamma.astype(np.float64))
    np.testing.assert_allclose(out.astype(np.float64), right, rtol=allowed, atol=allowed)

    y = rng.standard_normal(2 * vllm_ops.WIDTH).astype(dtype)
    z = rng.standard_normal(y.shape).astype(dtype)
    launch, out = vllm_ops.silu_mul(y, z)
    launch()
    assert out.shape == y.shape
    right = silu_mul.reference(y.astype(np.float64), z.astype(np.float64))
    np.testing.assert_allclose(out.astype(np.float64), right, rtol=allowed, atol=allowed)


def test_arrays_that_vllm_s_operators_cannot_take_are_refused() -> None:
    x = np.zeros(vllm_ops.WIDTH, np.float16)
    with pytest.raises(ValueError, match="gamma is float32"):
        vllm_ops.rmsnorm(x.reshape(1, -1), np.zeros(vllm_ops.WIDTH, np.float32))
    for left, right in ((x[1:], x[1:]), (x, np.zeros((2, vllm_ops.WIDTH), np.float16))):
        with pytest.raises(ValueError, match=f"a multiple of {vllm_ops.WIDTH} long"):
            vllm_ops.silu_mul(left, right)


SUITE = """
from kernels import bias_gelu, tensorrt_ops, vllm_ops
from perftrack.declare import benchmark, variant


@benchmark(
    variants={
        "unfused": bias_gelu.unfused,
        "tensorrt": variant(tensorrt_ops.bias_gelu, requires=["tensorrt"], tolerance=4),
        "vllm": variant(vllm_ops.rmsnorm, requires=["vllm"]),
    },
    reference=bias_gelu.reference,
    axes={"dtype": ["float32"], "rows": [4], "cols": [8]},
    traffic=bias_gelu.traffic,
)
def engines(rng, dtype, rows, cols):
    return rng.normal((rows, cols), dtype), rng.normal(cols, dtype)
"""


@pytest.mark.skipif(bool(find_spec("tensorrt") or find_spec("vllm")), reason="TensorRT or vLLM is installed")
def test_a_declared_variant_is_skipped_by_name_where_its_package_is_absent(tmp_path: Path) -> None:
    (tmp_path / "kernels").symlink_to(ROOT / "kernels")
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "engines.py").write_text(SUITE)
    found = collect_tree(tmp_path, ("bench",))
    assert found.problems == {}
    (case,) = [case for case in found.cases if case.backend == "cpu"]
    assert case.variants == ("unfused", "tensorrt", "vllm")
    (benchmark,) = Workspace(tmp_path).load("engines", "bench.engines")
    session = Session("cpu")
    for name in ("tensorrt", "vllm"):
        prepared = session.prepare(benchmark, case, name)
        assert (prepared.status, prepared.message) == (Status.SKIPPED, f"needs {name}, which is not installed")

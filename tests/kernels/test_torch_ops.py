"""The pieces that PyTorch variants share, with stand-ins for the two libraries that a GPU would need."""

import sys
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from kernels import torch_ops


class Torch(SimpleNamespace):
    """Tensors are NumPy arrays; remembers the streams that were current."""

    def __init__(self) -> None:
        super().__init__(bfloat16=ml_dtypes.bfloat16, from_dlpack=np.from_dlpack, compile=self._compile)
        self.jit = SimpleNamespace(script=lambda function: function)
        self.cuda = SimpleNamespace(ExternalStream=lambda pointer: ("stream", pointer), stream=self._stream)
        self.current: list[Any] = []
        self.options: dict[str, Any] = {}

    @contextmanager
    def _stream(self, stream: Any):
        self.current.append(stream)
        yield
        self.current.pop()

    def _compile(self, body: Any, **options: Any) -> Any:
        self.options = options
        return body


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Torch:
    made = Torch()
    stream = SimpleNamespace(get_current_stream=lambda: SimpleNamespace(ptr=7))
    monkeypatch.setitem(sys.modules, "torch", made)
    monkeypatch.setitem(sys.modules, "torch._inductor.config", SimpleNamespace(compile_threads=32))
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=stream))
    return made


@pytest.mark.parametrize("dtype", ["float32", "float16", ml_dtypes.bfloat16])
@pytest.mark.usefixtures("torch")
def test_a_tensor_shares_memory_and_keeps_the_dtype(dtype: Any) -> None:
    array = np.arange(6, dtype=dtype).reshape(2, 3)
    made = torch_ops.tensor(array)
    assert (made.dtype, made.shape) == (array.dtype, (2, 3))
    made[1, 2] = 40
    assert array[1, 2] == 40


def test_a_body_runs_on_the_stream_of_the_build_and_is_warm_before_it_is_timed(torch: Torch) -> None:
    seen: list[Any] = []

    def double(x: Any, out: Any) -> None:
        seen.append(list(torch.current))
        np.multiply(x, 2, out=out)

    x, out = np.ones(4, np.float32), np.zeros(4, np.float32)
    step = torch_ops.on_current_stream(double, x, out)
    assert seen == [[("stream", 7)]] * torch_ops.WARM_UPS
    x[:] = 5
    step()
    np.testing.assert_array_equal(out, [10] * 4)
    assert torch.current == [], "the caller's stream is current again"


def test_compiling_uses_fixed_shapes_and_no_processes(torch: Torch) -> None:
    assert torch_ops.compiled(len) is len
    assert torch.options == {"fullgraph": True, "dynamic": False}
    assert sys.modules["torch._inductor.config"].compile_threads == 1


@pytest.mark.usefixtures("torch")
def test_what_a_script_returns_is_copied_into_the_last_tensor() -> None:
    class Out:
        def copy_(self, values: Any) -> None:
            self.values = values

    out = Out()
    torch_ops.scripted(np.add)(2, 3, out)
    assert out.values == 5

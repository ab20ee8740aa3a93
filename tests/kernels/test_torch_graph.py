"""PyTorch functions without an output of the caller's, with stand-ins for the two libraries that a GPU would need."""

import sys
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from kernels import torch_graph, torch_ops


class Graph:
    def __init__(self) -> None:
        self.replayed_on: list[Any] = []


@pytest.fixture
def streams(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The streams that are current, while the stand-ins are in place."""
    current: list[Any] = []

    @contextmanager
    def on(stream: Any):
        current.append(stream)
        yield
        current.pop()

    class Replayed(Graph):
        def replay(self) -> None:
            self.replayed_on += current

    cuda = SimpleNamespace(
        ExternalStream=lambda pointer: ("stream", pointer),
        CUDAGraph=Replayed,
        stream=on,
        graph=on,
    )
    torch = SimpleNamespace(
        cuda=cuda, no_grad=nullcontext, bfloat16=ml_dtypes.bfloat16, int16=np.int16, from_dlpack=np.from_dlpack
    )
    stream = SimpleNamespace(get_current_stream=lambda: SimpleNamespace(ptr=7))
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=stream, from_dlpack=np.from_dlpack))
    return current


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_outputs_are_what_the_captured_call_made(streams: list[Any], dtype: Any) -> None:
    made: list[Any] = []

    def body(x: Any) -> Any:
        made.append((x * x, list(streams)))
        return made[-1][0]

    launch, out = torch_graph.captured(body, np.arange(4).astype(dtype))
    assert len(made) == torch_ops.WARM_UPS + 1
    assert made[0][1] == [("stream", 7)]
    captured, (_, graph) = made[-1]
    assert out.dtype == dtype
    np.testing.assert_array_equal(out, [0, 1, 4, 9])
    assert np.shares_memory(out.view(np.uint8), captured.view(np.uint8))
    launch()
    assert graph.replayed_on == [("stream", 7)]
    assert streams == [], "the caller's stream is current again"


@pytest.mark.usefixtures("streams")
def test_several_outputs_stay_several() -> None:
    _, (total, difference) = torch_graph.captured(lambda x, y: (x + y, x - y), np.ones(2), np.ones(2))
    assert (list(total), list(difference)) == ([2, 2], [0, 0])

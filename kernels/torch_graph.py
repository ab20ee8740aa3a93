"""PyTorch functions that make their own result, in variants that may not allocate: captured once, replayed.

`torch.nn.functional` offers no output of the caller's, and a copy into one would be timed as if it were the function's.
A captured graph writes its result into the same memory at every replay.
"""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from kernels import torch_ops
from kernels.launch import Launch, launch


def captured(body: Callable[..., Any], *arrays: Any) -> tuple[Launch, Any]:
    """Prepare `body(*tensors)` on the stream that is CuPy's now; what it returns, a tensor or several, are the outputs.

    It is called a few times before, so that it finds its algorithm and its buffers.
    """
    import cupy

    torch = import_module("torch")
    stream = torch.cuda.ExternalStream(cupy.cuda.get_current_stream().ptr)
    graph, call = torch.cuda.CUDAGraph(), partial(body, *map(torch_ops.tensor, arrays))
    with torch.no_grad(), torch.cuda.stream(stream):
        for _ in range(torch_ops.WARM_UPS):
            call()
        with torch.cuda.graph(graph):
            made = call()
    replay = partial(_on, torch.cuda.stream, stream, graph.replay, call)
    outputs: Any = tuple(_array(torch, one) for one in made) if isinstance(made, tuple) else _array(torch, made)
    return launch(replay), outputs


def _on(entered: Callable[[Any], Any], stream: Any, body: Callable[[], object], _kept: object) -> None:
    """`_kept` holds the tensors that the graph points at, which may be the caller's only for the moment."""
    with entered(stream):
        body()


def _array(torch: Any, tensor: Any) -> Any:
    """The tensor's memory as an array of CuPy, which keeps it; bfloat16 goes as 16-bit integers, as in torch_ops."""
    import cupy

    if tensor.dtype != torch.bfloat16:
        return cupy.from_dlpack(tensor)
    import ml_dtypes

    return cupy.from_dlpack(tensor.view(torch.int16)).view(ml_dtypes.bfloat16)

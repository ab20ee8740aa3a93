"""What the optional variants that need PyTorch share: no copy between the libraries, CuPy's stream, no late compiling.

Only functions declared with `requires=["torch"]` may call these; PyTorch is never imported before.
"""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from kernels.launch import Step

WARM_UPS = 3
"""Calls at build time: the first compiles (or profiles, in TorchScript), and the second may compile again."""


def tensor(array: Any) -> Any:
    """The same memory as a tensor; bfloat16 goes as 16-bit integers, which every version of both libraries knows."""
    torch = import_module("torch")
    if str(array.dtype) == "bfloat16":
        return torch.from_dlpack(array.view("int16")).view(torch.bfloat16)
    return torch.from_dlpack(array)


def compiled(body: Callable[..., object]) -> Any:
    """`torch.compile` for fixed shapes, in this process alone: a pool of compilers would outlive the build.

    Keep what it returns (`functools.cache`), or every build compiles again. `body` writes its result into a tensor
    that it is given, with `out.copy_(…)` last: the compiler stores there directly, and nothing is allocated.
    """
    torch = import_module("torch")
    inductor: Any = import_module("torch._inductor.config")
    inductor.compile_threads = 1
    return torch.compile(body, fullgraph=True, dynamic=False)


def scripted(function: Callable[..., Any]) -> Callable[..., None]:
    """TorchScript of `function(*inputs)`, as a body that copies the result into the last tensor it is given.

    Keep what it returns, as of `compiled`. Parameters of `function` without an annotation are tensors, `Any` is not.
    """
    script = import_module("torch").jit.script(function)

    def body(*tensors: Any) -> None:
        tensors[-1].copy_(script(*tensors[:-1]))

    return body


def on_current_stream(body: Callable[..., object], *arrays: Any, warm_ups: int = WARM_UPS) -> Step:
    """Prepare a call of `body(*tensors)` on the stream that is CuPy's now, and make it a few times.

    The timed body must write into one of the arrays. It should not allocate: PyTorch's allocator, which keeps what
    was freed, is not the one that the harness watches.
    """
    import cupy

    torch = import_module("torch")
    stream = torch.cuda.ExternalStream(cupy.cuda.get_current_stream().ptr)
    call = partial(_call, torch.cuda.stream, stream, partial(body, *map(tensor, arrays)))
    for _ in range(warm_ups):
        call()
    return call


def _call(entered: Callable[[Any], Any], stream: Any, body: Step) -> None:
    with entered(stream):
        body()

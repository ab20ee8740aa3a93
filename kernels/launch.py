"""What a build function returns to be timed: the prepared steps of one call, and the kernels in it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

Step = Callable[[], object]

KernelUse = tuple[Any, tuple[int, ...], tuple[int, ...], int]
"""Kernel, grid, block, bytes of dynamic shared memory."""


class KernelCall(NamedTuple):
    """One launch of one compiled kernel with its arguments bound."""

    kernel: Any
    grid: tuple[int, ...]
    block: tuple[int, ...]
    args: tuple[Any, ...]
    source: str
    """CUDA C++ and compiler options: what the kernel's identity is hashed from."""
    shared_bytes: int = 0
    """Dynamic shared memory of a block; the kernel must have been allowed it where it is more than 48 KiB."""

    @property
    def step(self) -> Step:
        """The launch, ready to be called."""
        shared = {"shared_mem": self.shared_bytes} if self.shared_bytes else {}
        return partial(self.kernel, self.grid, self.block, self.args, **shared)


@dataclass(frozen=True, slots=True)
class Launch:
    """Calling it runs the steps in order; it allocates nothing and does not wait for the device."""

    steps: tuple[Step, ...]
    kernels: tuple[KernelUse, ...]
    """The CUDA kernels of this repository among the steps, in launch order."""
    source: str
    """Their sources with compiler options, each once; empty where there are none."""

    def __call__(self) -> None:
        """Run the steps."""
        for step in self.steps:
            step()


def launch(*steps: KernelCall | Step) -> Launch:
    """Prepare a launch: kernel calls become bound callables, the rest is taken as it is."""
    calls = [step for step in steps if isinstance(step, KernelCall)]
    return Launch(
        steps=tuple(step.step if isinstance(step, KernelCall) else step for step in steps),
        kernels=tuple((call.kernel, call.grid, call.block, call.shared_bytes) for call in calls),
        source="\n".join(dict.fromkeys(call.source for call in calls)),
    )


def captured(made: Launch) -> Launch:
    """The same calls as one CUDA graph, captured on CuPy's current stream and replayed on the one that is current then.

    The stream must not be the default one, which CUDA does not capture.
    """
    import cupy

    stream = cupy.cuda.get_current_stream()
    made()  # a kernel that is compiled or loaded in a capture ends it
    stream.synchronize()
    stream.begin_capture()
    try:
        made()
    finally:
        graph = stream.end_capture()
    return Launch((partial(_replay, graph.launch, made),), made.kernels, made.source)


def _replay(graph: Step, _kept: Launch) -> None:
    """`_kept` holds the arrays that the graph points at."""
    graph()


def array_module(array: Any) -> Any:
    """`numpy` or `cupy`, whichever made `array`."""
    return import_module(type(array).__module__.partition(".")[0])


def row_statistics_dtype(array: Any) -> str:
    """The dtype in which sums over a row are kept: at least float32."""
    return "float64" if array.dtype == "float64" else "float32"

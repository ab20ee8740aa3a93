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
        steps=tuple(
            partial(step.kernel, step.grid, step.block, step.args) if isinstance(step, KernelCall) else step
            for step in steps
        ),
        kernels=tuple((call.kernel, call.grid, call.block, 0) for call in calls),
        source="\n".join(dict.fromkeys(call.source for call in calls)),
    )


def array_module(array: Any) -> Any:
    """`numpy` or `cupy`, whichever made `array`."""
    return import_module(type(array).__module__.partition(".")[0])


def row_statistics_dtype(array: Any) -> str:
    """The dtype in which sums over a row are kept: at least float32."""
    return "float64" if array.dtype == "float64" else "float32"

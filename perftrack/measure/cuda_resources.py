"""What the compiled kernels of a launch use, read from `launch.kernels`; unknown is None."""

import hashlib
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import cupy as cp

from perftrack.measure.cuda_text import tokens
from perftrack.model import Resources

T = TypeVar("T")


def resources_of(launch: Any) -> Resources:
    """Registers, local and shared memory, occupancy, launches and the identity of the compiled code."""
    listed = getattr(launch, "kernels", None)
    if not isinstance(listed, Sequence) or not listed:
        return Resources()
    kernels = list(listed)
    # a launch that also runs steps of other kinds (a library's product, say) tells so by having more `steps`
    steps = getattr(launch, "steps", kernels)
    complete = isinstance(steps, Sequence) and len(steps) == len(kernels)
    return Resources(
        registers=_largest(lambda item: int(item[0].num_regs), kernels),
        local_bytes=_largest(lambda item: int(item[0].local_size_bytes), kernels),
        shared_bytes=_largest(lambda item: int(item[0].shared_size_bytes) + int(item[3]), kernels),
        occupancy=_known(lambda: min(_occupancy(item) for item in kernels)),
        launches=len(kernels) if complete else None,
        code_digest=_known(lambda: _code_digest(launch, kernels)) if complete else None,
    )


def _known(question: Callable[[], T]) -> T | None:
    try:
        return question()
    except Exception:  # noqa: BLE001 - `kernels` is the tracked code's own list of whatever it likes
        return None


def _largest(read: Callable[[Any], int], kernels: list[Any]) -> int | None:
    return _known(lambda: max(read(item) for item in kernels))


def _occupancy(item: Any) -> float:
    kernel, _, block, shared = item
    threads = math.prod(block) if isinstance(block, Sequence) else int(block)
    resident = cp.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(kernel.kernel.ptr, threads, int(shared))
    return resident * threads / cp.cuda.Device().attributes["MaxThreadsPerMultiProcessor"]


def _code_digest(launch: Any, kernels: list[Any]) -> str | None:
    """Of the source's tokens, options, architecture, compiler and launch geometry; None where a source is hidden."""
    source = getattr(launch, "source", None)
    whole = hashlib.sha256(f"{cp.cuda.Device().compute_capability} {cp.cuda.nvrtc.getVersion()}".encode())
    for kernel, grid, block, shared in kernels:
        code = source if isinstance(source, str) else kernel.code
        if not isinstance(code, str):
            return None
        options = getattr(kernel, "options", ())
        whole.update(
            f"\0{tokens(code)}\0{options}\0{kernel.name}\0{tuple(grid)}\0{tuple(block)}\0{int(shared)}".encode()
        )
    return whole.hexdigest()

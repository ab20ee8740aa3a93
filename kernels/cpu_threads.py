"""Numba loops over a few threads, for the fused CPU versions.

A loop is compiled as serial code that releases the interpreter lock, and run on slices of the arrays in
parallel. Numba's own `parallel=True` runs no faster here and takes 1.5 s to compile where this takes 0.2 s,
which every fresh process pays.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from kernels.launch import Step

FAST_MATH = frozenset({"reassoc", "contract", "arcp", "nsz"})
"""Enough for vector sums; NaN and infinities keep their meaning."""

MOST_THREADS = 16
"""Handing out work takes some 20 µs a thread; memory is saturated before."""


def in_threads(
    loop: Callable[..., None], split: tuple[Any, ...], whole: tuple[Any, ...] = (), *, multiple: int = 1
) -> Step:
    """Compile `loop(start, *parts, *whole)` and prepare a call of it on every part of the arrays in `split`.

    The arrays are cut along the first axis, at multiples of `multiple`; `start` is the index of a part's begin.
    """
    compiled = compiled_loop(loop)
    compiled(0, *(array[:0] for array in split), *whole)
    length, count = len(split[0]), _threads()
    chunk = -(-length // (count * multiple)) * multiple
    calls = [
        partial(compiled, start, *(array[start : start + chunk] for array in split), *whole)
        for start in range(0, length, max(1, chunk))
    ]
    return _Parallel(calls[0], tuple(calls[1:])) if calls else lambda: None


@cache
def compiled_loop(loop: Callable[..., None]) -> Any:
    """The loop in machine code, compiled on the first call with arguments of new types."""
    import numba

    return numba.njit(nogil=True, fastmath=set(FAST_MATH))(loop)


@dataclass(frozen=True, slots=True)
class _Parallel:
    """One call for this thread and others for the pool; done when all are."""

    own: Step
    others: tuple[Step, ...]

    def __call__(self) -> None:
        """Run all parts and wait for them."""
        pending = [_pool().submit(call) for call in self.others]
        self.own()
        for one in pending:
            one.result()


@cache
def _threads() -> int:
    wanted = os.environ.get("NUMBA_NUM_THREADS") or len(os.sched_getaffinity(0))
    return max(1, min(MOST_THREADS, int(wanted)))


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(1, _threads() - 1), thread_name_prefix="kernels")

"""The CPU engine: NumPy arrays, the host's clock, calls in a plain loop."""

import os
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from perftrack.measure.engine import Block, Cost, Issuer, Launch, LaunchError, Loop, Mode, Rotation, State
from perftrack.measure.host import available_bytes, last_level_cache
from perftrack.model import Backend, Issue, Resources

_MIB = 1 << 20
_CANARY_BYTES = 8 * _MIB
_CANARY_COPIES = 8
_CEILING_REPEATS = 9
_SLICE = 1 << 14
"""Floats that a thread adds up at a time: what the second-level cache holds several of."""


class CpuEngine:
    """Times NumPy and Numba code by the host's clock."""

    backend: Backend = "cpu"
    xp: Any = np
    headroom = 2.0  # others may have had half of the memory's bandwidth while the ceiling was measured

    def __init__(self) -> None:
        self.cache_bytes = last_level_cache()
        self.rotation_bytes = min(4 * self.cache_bytes, 1024 * _MIB)
        self.busy_s = 0.0
        self._ceilings: dict[int, float] = {}
        self._canary_from = np.random.default_rng(0).standard_normal(_CANARY_BYTES // 8)
        self._canary_to = np.empty_like(self._canary_from)

    def active(self) -> AbstractContextManager[Any]:
        """Nothing to choose: there are no streams."""
        return nullcontext()

    def synchronize(self) -> None:
        """Everything has ended when it returns."""

    def forget(self) -> str:
        """A CPU's cache keeps nothing on request."""
        return ""

    def free_bytes(self) -> int:
        """Memory that new arrays may take."""
        return available_bytes()

    def held_bytes(self) -> int:
        """Main memory is shared with others, and what is free changes by itself."""
        return 0

    def release(self) -> None:
        """Freed arrays have gone back already."""

    def lacks(self, requirement: str) -> str:
        """A CPU has no compute capability."""
        return f"needs a GPU of {requirement}"

    def resources(self, launch: Launch) -> Resources:
        """Nothing is known of compiled CPU code."""
        del launch
        return Resources()

    def cost(self, rotation: Rotation) -> Cost:
        """The median of a few calls."""
        rotation.ready()
        times: list[float] = []
        for launch in (rotation.launches * 5)[:5]:
            start = time.perf_counter_ns()
            launch()
            times.append((time.perf_counter_ns() - start) * 1e-9)
        self.busy_s += sum(times)
        return Cost(statistics.median(times))

    def issuers(self, rotations: Sequence[Rotation], costs: Sequence[Cost], issue: Issue) -> tuple[Mode, list[Issuer]]:
        """Plain loops, whatever is asked for: a call has ended when it returns."""
        del issue
        return "loop", [Loop(rotation, cost) for rotation, cost in zip(rotations, costs, strict=True)]

    def time_block(
        self, entries: Sequence[tuple[Issuer, int]], canary_at: int | None, rests_s: Sequence[float] = ()
    ) -> Block:
        """Each entry between two readings of the clock; a CPU says nothing of a power limit that rests would help."""
        del rests_s
        elapsed: list[float] = []
        canary = 0.0
        for index, (issuer, times) in enumerate(entries):
            if index == canary_at:
                canary = self._canary()
            issuer.ready()
            try:
                start = time.perf_counter_ns()
                issuer.issue(times)
                elapsed.append((time.perf_counter_ns() - start) * 1e-9)
            except Exception as error:  # tracked code may raise anything
                raise LaunchError(index) from error
        self.busy_s += sum(elapsed)
        return Block(tuple(elapsed), canary)

    def _canary(self) -> float:
        """The best of a few copies: what the machine can do now, not what else it did in between."""
        best = float("inf")
        for _ in range(_CANARY_COPIES):
            start = time.perf_counter_ns()
            np.copyto(self._canary_to, self._canary_from)
            best = min(best, (time.perf_counter_ns() - start) * 1e-9)
        return best

    def state(self) -> State:
        """The clock of a CPU is not asked for."""
        return State()

    def intrusion(self) -> str:
        """A CPU is never one's own."""
        return ""

    def ceiling(self, reads: int, *, again: bool = False) -> float:
        """All cores copying, or adding `reads` arrays, the faster: their stores differ in what they read."""
        if again or reads not in self._ceilings:
            copy = self.ceiling(1) if reads != 1 else 0.0
            measured = max(copy, self._measure_ceiling(max(1, reads)))
            self._ceilings[reads] = max(measured, self._ceilings.get(reads, 0.0))
        return self._ceilings[reads]

    def _measure_ceiling(self, reads: int) -> float:
        room = self.free_bytes() // (2 * (reads + 1))
        size = min(4 * self.cache_bytes, 1024 * _MIB, room) // 8
        source = np.random.default_rng(1).random(size)
        inputs = [source, *(source.copy() for _ in range(reads - 1))]
        output = np.zeros(size)
        threads = len(os.sched_getaffinity(0))
        bounds = np.linspace(0, size, threads + 1).astype(int).tolist()
        work = _adder(inputs, output) if reads > 1 else _copier(source, output)
        with ThreadPoolExecutor(threads) as pool:
            best = float("inf")
            for _ in range(_CEILING_REPEATS):
                start = time.perf_counter_ns()
                list(pool.map(work, bounds[:-1], bounds[1:]))
                best = min(best, (time.perf_counter_ns() - start) * 1e-9)
                self.busy_s += best
        return (reads + 1) * size * 8 / best


def _copier(source: Any, output: Any) -> Callable[[int, int], None]:
    def copy(start: int, stop: int) -> None:
        np.copyto(output[start:stop], source[start:stop])

    return copy


def _adder(inputs: list[Any], output: Any) -> Callable[[int, int], None]:
    def add(start: int, stop: int) -> None:
        for low in range(start, stop, _SLICE):
            part = slice(low, min(low + _SLICE, stop))
            np.add(inputs[0][part], inputs[1][part], out=output[part])
            for more in inputs[2:]:
                np.add(output[part], more[part], out=output[part])

    return add

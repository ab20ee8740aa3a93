"""What the protocol needs from a backend, and the few values that pass between them."""

import itertools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from perftrack.model import Backend, Issue, Resources

Mode = Literal["graph", "backlog", "eager", "loop", "graph_rested", "backlog_rested"]
Launch = Callable[[], Any]


class DeviceLostError(Exception):
    """The device's context is dead: nothing more can be measured in this process."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class LaunchError(Exception):
    """The entry `index` of a block raised while it was being issued; the cause is its own exception."""

    def __init__(self, index: int) -> None:
        super().__init__(index)
        self.index = index


@dataclass(frozen=True, slots=True)
class Rotation:
    """One variant on one side: a launch for each set of data, called in turn."""

    launches: tuple[Launch, ...]
    ready: Callable[[], None]
    """Makes the modules of its tree the ones that imports find; called before each sample."""
    kernels_per_call: int = 1


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds per call, roughly: on the device, and on the host to issue it (None where that is the same)."""

    device_s: float
    host_s: float | None = None


class Issuer(Protocol):
    """A rotation ready to be timed: `issue(times)` makes `times` × `unit` calls."""

    unit: int
    ready: Callable[[], None]
    max_times: int

    def issue(self, times: int) -> None:
        """Issue the calls; on a GPU they are queued, not finished."""
        ...


class Loop:
    """Calls one launch after the other, going on with the next set where the last sample ended."""

    unit = 1

    def __init__(self, rotation: Rotation, cost: Cost, max_times: int = 1_000_000) -> None:
        self.ready = rotation.ready
        self.max_times = max_times
        self.cost = cost
        self._next = itertools.cycle(rotation.launches).__next__

    def issue(self, times: int) -> None:
        """Make `times` calls."""
        following = self._next
        for _ in range(times):
            following()()


class EagerLoop(Loop):
    """A loop that nothing is queued ahead of: the time that the host takes to issue calls is part of theirs."""


@dataclass(frozen=True, slots=True)
class Block:
    """One interleaved group of samples: seconds for each entry as a whole, and per canary copy."""

    elapsed_s: tuple[float, ...]
    canary_s: float
    starved: bool = False
    """The device waited for the host in at least one of the samples."""
    clocks_mhz: tuple[float | None, ...] = ()
    """The clock that each entry's sample ran at; empty, or None, where it cannot be told."""


@dataclass(frozen=True, slots=True)
class State:
    """What the device says of itself right after a block."""

    clock_mhz: float | None = None
    reasons: frozenset[str] = frozenset()
    """Why its clock is held down, e.g. `sw_thermal`."""


class Engine(Protocol):
    """A backend that can build, run and time; one for each process."""

    backend: Backend
    xp: Any
    """NumPy, or CuPy with its interface."""
    cache_bytes: int
    rotation_bytes: int
    """How much data in turn is enough that none of it is still cached."""
    busy_s: float
    """Seconds of timed or warm-up work on the device so far."""
    headroom: float
    """How much faster than the ceiling of its mix a kernel may be before its time is not believed."""

    def active(self) -> AbstractContextManager[Any]:
        """Inside, the tracked code's work goes to the stream that is timed."""
        ...

    def synchronize(self) -> None:
        """Wait for all work; DeviceLostError where the context is dead."""
        ...

    def forget(self) -> str:
        """Undo what an earlier case may have left in the device's cache; why that cannot be done, empty when it is."""
        ...

    def free_bytes(self) -> int:
        """Memory for further arrays."""
        ...

    def held_bytes(self) -> int:
        """Memory taken from the device, of arrays and of freed ones; 0 where that is not told apart."""
        ...

    def release(self) -> None:
        """Give the memory of freed arrays back."""
        ...

    def lacks(self, requirement: str) -> str:
        """Why a compute capability such as `sm_90` is not there; empty when it is."""
        ...

    def resources(self, launch: Launch) -> Resources:
        """What the kernels of a launch use, as far as it can be known."""
        ...

    def cost(self, rotation: Rotation) -> Cost:
        """Time a few calls, roughly."""
        ...

    def issuers(self, rotations: Sequence[Rotation], costs: Sequence[Cost], issue: Issue) -> tuple[Mode, list[Issuer]]:
        """Make all of them ready to be timed, in one mode, so that their times can be compared."""
        ...

    def time_block(
        self, entries: Sequence[tuple[Issuer, int]], canary_at: int | None, rests_s: Sequence[float] = ()
    ) -> Block:
        """Time `issue(times)` of each entry in turn, and the canary before entry `canary_at`.

        `rests_s`: how long the device idles before each entry, at least; nothing where it is empty.
        """
        ...

    def state(self) -> State:
        """Clock and the reasons for holding it down."""
        ...

    def intrusion(self) -> str:
        """What else works on the device since this process began, in words; empty where nothing is seen."""
        ...

    def ceiling(self, reads: int, *, again: bool = False) -> float:
        """Bytes per second of the best kernel that reads `reads` arrays and writes one; measured once.

        `reads` 0 is for work that mostly writes, 1 a copy; `again` measures once more and keeps the better.
        """
        ...

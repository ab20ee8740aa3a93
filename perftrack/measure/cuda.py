"""The CUDA engine: CuPy arrays, events on a stream that never waits for the host.

Calls are issued in one of three ways. `backlog`: a spin kernel goes first, so that the host gets ahead of the
device. `graph`: unrolled CUDA graphs, for calls that end before the host could issue the next. `eager`, where the
case asks for it: on an idle device, as a user's loop does.
"""

import math
import os
import statistics
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import cupy as cp

from perftrack.measure.backlog import (
    BLOCK_LEAD_S,
    LEAD_S,
    MAX_LEAD_S,
    lead_s,
    most_calls,
    needs_graph,
    starved,
    unrolled_calls,
)
from perftrack.measure.cuda_ceiling import measure_ceiling, random_words
from perftrack.measure.cuda_device import pci_bus_id
from perftrack.measure.cuda_kernels import Kernels
from perftrack.measure.cuda_l2 import forget_persisting
from perftrack.measure.cuda_resources import resources_of
from perftrack.measure.cuda_stamps import STAMP_S, Stamps
from perftrack.measure.engine import (
    Block,
    Cost,
    DeviceLostError,
    EagerLoop,
    Issuer,
    Launch,
    LaunchError,
    Loop,
    Mode,
    Rotation,
    State,
)
from perftrack.measure.nvml import Card, in_use_by, intruders
from perftrack.model import Backend, Issue, Resources

_MIB = 1 << 20
_ESTIMATES = 15
_ESTIMATE_S = 5e-3
_CANARY_BYTES = 256 * _MIB
_CANARY_S = 1.5e-3
_UNKNOWN_ERROR = 999
_OTHER_STREAM_LAUNCHES = 4096
"""Once a thousand kernels or so have run on the default stream, a kernel of a graph takes 0.18 µs longer for good (seen
on an H200 with driver 580; as many on the engine's own stream change nothing). Code that is tracked or its libraries
do that sooner or later, so it is done before the first case: else short kernels would depend on the cases before."""


class Graph:
    """A captured sequence of calls over the rotated sets; one replay makes `unit` of them."""

    def __init__(self, graph: Any, rotation: Rotation, calls: int, temporaries: Any) -> None:
        self._graph = graph
        self._kept = rotation, temporaries  # the arrays that the graph's kernels point at
        self.unit = calls
        self.max_times = 1_000_000
        self.ready = rotation.ready

    def issue(self, times: int) -> None:
        """Replay on the current stream."""
        for _ in range(times):
            self._graph.launch()


@dataclass(frozen=True, slots=True)
class _Queued:
    """One sample in the queue: its events, its head start (0: none), and when the host issued its ends."""

    issuer: Issuer
    times: int
    pair: tuple[Any, Any]
    lead_s: float
    first_s: float
    last_s: float


def _issue_in_turn(rotation: Rotation, calls: int) -> None:
    for index in range(calls):
        rotation.launches[index % len(rotation.launches)]()


def _lead(issuer: Issuer, times: int) -> float:
    if isinstance(issuer, EagerLoop):
        return 0.0
    return lead_s(issuer.cost, times) if isinstance(issuer, Loop) else 2 * LEAD_S


class CudaEngine:
    """Times CuPy code by events, on a stream of its own."""

    backend: Backend = "cuda"
    xp: Any = cp
    headroom = 1.05

    def __init__(self) -> None:
        self._card = Card.open(pci_bus_id())
        self._device = cp.cuda.Device(0)
        self._device.use()
        self._stream = cp.cuda.Stream(non_blocking=True)
        self.cache_bytes = int(self._device.attributes["L2CacheSize"])
        self.rotation_bytes = max(4 * self.cache_bytes, 256 * _MIB)
        self.busy_s = 0.0
        self._ceilings: dict[int, float] = {}
        self._events: list[tuple[Any, Any]] = []
        self._leads: dict[int, float] = {}
        self._block_lead_s = BLOCK_LEAD_S
        self._origin = cp.cuda.Event()
        self._first_processes = self._processes()
        with self.active():
            self._kernels = Kernels()
            self._stamps = Stamps(self._kernels)
            with cp.cuda.Stream.null:
                for _ in range(_OTHER_STREAM_LAUNCHES):
                    self._kernels.spin(0.0)
            self.synchronize()
            size = min(_CANARY_BYTES, self._device.mem_info[1] // 64)
            source, output = random_words(size), random_words(size)
            self._copy: Callable[[], None] = lambda: self._kernels.mix(1, source, output)
            self._time_calls(self._copy, 10)
            self._canary_calls = max(1, math.ceil(_CANARY_S / (self._time_calls(self._copy, 10) / 10)))

    @contextmanager
    def active(self) -> Generator[None]:
        """Work inside goes to the engine's stream, once all that came before has ended."""
        cp.cuda.runtime.deviceSynchronize()
        with self._stream:
            yield

    def synchronize(self) -> None:
        """Wait for the whole device, so that work on another stream cannot hide."""
        try:
            cp.cuda.runtime.deviceSynchronize()
        except cp.cuda.runtime.CUDARuntimeError as error:
            raise DeviceLostError(str(error), int(getattr(error, "status", 0)) or _UNKNOWN_ERROR) from error

    def forget(self) -> str:
        """See Engine: what a case may have asked the cache to keep."""
        return forget_persisting()

    def free_bytes(self) -> int:
        """The card's free memory and what the pool holds unused."""
        return int(self._device.mem_info[0]) + int(cp.get_default_memory_pool().free_bytes())

    def held_bytes(self) -> int:
        """What the pool has taken: its peak since the last release."""
        return int(cp.get_default_memory_pool().total_bytes())

    def release(self) -> None:
        """Give the pool's unused memory back."""
        self.synchronize()
        cp.get_default_memory_pool().free_all_blocks()

    def lacks(self, requirement: str) -> str:
        """Compare `sm_90` with this card's compute capability."""
        have, need = int(self._device.compute_capability), int(requirement.removeprefix("sm_"))
        return "" if have >= need else f"needs a GPU of {requirement} or newer, this is sm_{have}"

    def resources(self, launch: Launch) -> Resources:
        """Of the kernels that the launch lists."""
        return resources_of(launch)

    def state(self) -> State:
        """NVML's view, asked when a block has ended."""
        return State() if self._card is None else State(self._card.clock_mhz(), self._card.reasons())

    def intrusion(self) -> str:
        """Processes that were not there when this one had made its context."""
        others = intruders(self._first_processes, self._processes(), os.getpid())
        return in_use_by(others) if others else ""

    def _processes(self) -> frozenset[int]:
        return self._card.processes() if self._card is not None else frozenset[int]()

    def ceiling(self, reads: int, *, again: bool = False) -> float:
        """See Engine."""
        if again or reads not in self._ceilings:
            measured = measure_ceiling(self._kernels, reads, self._time_calls)
            if not reads:
                measured = max(measured, self.ceiling(1))
            self._ceilings[reads] = max(measured, self._ceilings.get(reads, 0.0))
            self.release()
        return self._ceilings[reads]

    def cost(self, rotation: Rotation) -> Cost:
        """Device and host seconds per call; the host's is the median of single calls on a queue with room."""
        rotation.ready()
        launches = (rotation.launches * _ESTIMATES)[:_ESTIMATES]
        start = time.perf_counter()
        launches[0]()
        self.synchronize()
        first = time.perf_counter() - start
        launches = launches[: max(1, min(_ESTIMATES, int(_ESTIMATE_S / first)))]
        begin, end = self._event_pair(0)
        self._kernels.spin(min(MAX_LEAD_S, LEAD_S + len(launches) * first))
        begin.record(self._stream)
        host: list[float] = []
        for launch in launches:
            start = time.perf_counter()
            launch()
            host.append(time.perf_counter() - start)
        end.record(self._stream)
        self.synchronize()
        device = cp.cuda.get_elapsed_time(begin, end) * 1e-3
        self.busy_s += device
        return Cost(max(device / len(launches), 1e-7), statistics.median(host))

    def issuers(self, rotations: Sequence[Rotation], costs: Sequence[Cost], issue: Issue) -> tuple[Mode, list[Issuer]]:
        """Graphs for all if one needs a graph and all can be captured, else loops for all."""
        self._leads.clear()
        self._block_lead_s = BLOCK_LEAD_S
        if issue == "eager":
            return "eager", [EagerLoop(rotation, cost) for rotation, cost in zip(rotations, costs, strict=True)]
        if any(needs_graph(cost) for cost in costs):
            graphs = self._graphs(rotations, costs)
            if graphs is not None:
                return "graph", graphs
        loops: list[Issuer] = [
            Loop(rotation, cost, most_calls(cost)) for rotation, cost in zip(rotations, costs, strict=True)
        ]
        return "backlog", loops

    def _graphs(self, rotations: Sequence[Rotation], costs: Sequence[Cost]) -> list[Issuer] | None:
        graphs: list[Issuer] = []
        for rotation, cost in zip(rotations, costs, strict=True):
            try:
                graphs.append(self._capture(rotation, unrolled_calls(rotation, cost)))
            except Exception:  # noqa: BLE001 - tracked code that cannot be captured fails in many ways
                self.synchronize()
                return None
        return graphs

    def _capture(self, rotation: Rotation, calls: int) -> Graph:
        """What a body allocates comes from a pool that only the graph uses: a replay writes there again."""
        rotation.ready()
        temporaries = cp.cuda.MemoryPool()
        with cp.cuda.using_allocator(temporaries.malloc):
            _issue_in_turn(rotation, calls)  # the pool then has all that the same calls will ask for
            self.synchronize()
            self._stream.begin_capture()
            try:
                _issue_in_turn(rotation, calls)
            except BaseException:
                with suppress(Exception):
                    self._stream.end_capture()
                raise
            graph = self._stream.end_capture()
        graph.upload()
        graph.launch()  # the first replay pays for setting up
        self.synchronize()
        return Graph(graph, rotation, calls, temporaries)

    def time_block(
        self, entries: Sequence[tuple[Issuer, int]], canary_at: int | None, rests_s: Sequence[float] = ()
    ) -> Block:
        """Queue all samples, each behind a spin and between two events, and wait once; eager ones one by one.

        Stamps lie around the events, so that what the events measure does not know of them. A rest is a longer spin,
        for which one thread of the whole device does next to nothing; eager entries do not rest.
        """
        queued: list[_Queued] = []
        canary: tuple[Any, Any] | None = None
        self._stamps.make_room(len(entries))
        self._origin.record(self._stream)
        origin_s = time.perf_counter()
        self._kernels.spin(self._block_lead_s)
        for index, (issuer, times) in enumerate(entries):
            if index == canary_at:
                canary = self._queue_canary(len(entries))
            issuer.ready()
            try:
                queued.append(self._queue(issuer, times, index, rests_s[index] if rests_s else 0.0))
            except Exception as error:  # tracked code may raise anything
                self.synchronize()
                raise LaunchError(index) from error
        self.synchronize()
        elapsed = tuple(cp.cuda.get_elapsed_time(*sample.pair) * 1e-3 for sample in queued)
        waited = [self._waited(sample, origin_s) for sample in queued]
        if any(waited):
            self._block_lead_s = min(MAX_LEAD_S, 2 * self._block_lead_s)
        canary_s = 0.0 if canary is None else cp.cuda.get_elapsed_time(*canary) * 1e-3 / self._canary_calls
        self.busy_s += sum(elapsed) + canary_s * self._canary_calls
        return Block(elapsed, canary_s, any(waited), self._stamps.clocks_mhz(len(entries)))

    def _queue(self, issuer: Issuer, times: int, index: int, rest_s: float) -> "_Queued":
        lead, pair = self._leads.get(id(issuer)) or _lead(issuer, times), self._event_pair(index)
        if lead:
            self._kernels.spin(max(lead + STAMP_S, rest_s))
            self._stamps.before(index)
        else:  # it begins on an idle device
            self._stamps.before(index)
            self.synchronize()
        pair[0].record(self._stream)
        issuer.issue(1)
        first = last = time.perf_counter()
        if times > 1:
            issuer.issue(times - 2)
            last = time.perf_counter()
            issuer.issue(1)
        pair[1].record(self._stream)
        self._stamps.after(index)
        return _Queued(issuer, times, pair, lead, first, last)

    def _waited(self, sample: "_Queued", origin_s: float) -> bool:
        """Whether the device waited for the host; the next spin before this issuer's samples is then twice as long."""
        if not sample.lead_s:  # it had no head start to lose
            return False
        begin, end = (origin_s + cp.cuda.get_elapsed_time(self._origin, event) * 1e-3 for event in sample.pair)
        waited = starved(first_s=sample.first_s, last_s=sample.last_s, begin_s=begin, end_s=end, times=sample.times)
        if waited:
            self._leads[id(sample.issuer)] = min(MAX_LEAD_S, 2 * sample.lead_s)
        return waited

    def _queue_canary(self, index: int) -> tuple[Any, Any]:
        pair = self._event_pair(index)
        self._kernels.spin(LEAD_S)
        pair[0].record(self._stream)
        for _ in range(self._canary_calls):
            self._copy()
        pair[1].record(self._stream)
        return pair

    def _time_calls(self, call: Callable[[], Any], calls: int) -> float:
        """Device seconds of `calls` calls of a kernel of the harness."""
        begin, end = self._event_pair(0)
        self._kernels.spin(4 * LEAD_S)
        begin.record(self._stream)
        for _ in range(calls):
            call()
        end.record(self._stream)
        self.synchronize()
        elapsed = cp.cuda.get_elapsed_time(begin, end) * 1e-3
        self.busy_s += elapsed
        return elapsed

    def _event_pair(self, index: int) -> tuple[Any, Any]:
        while len(self._events) <= index:
            self._events.append((cp.cuda.Event(), cp.cuda.Event()))
        return self._events[index]

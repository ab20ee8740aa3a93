"""A pool that only the dispatcher believes in: devices whose jobs go by on a simulated clock, no Ray, no processes.

What the coordinator itself costs can be put on that clock too (`Costs`): then it is the discrete-event model of
docs/scale.md, in which devices wait for a coordinator, and the coordinator for the command that stores.
"""

import heapq
import random
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from perftrack.model import (
    Case,
    Device,
    DeviceReport,
    Environment,
    Job,
    JobResult,
    Measurement,
    Method,
    Status,
    Traffic,
)
from perftrack.pool.child_process import Limits
from perftrack.pool.dispatch import Dispatcher, Plan
from perftrack.pool.inbox import Answer
from perftrack.pool.lease import Doing, Finished
from perftrack.pool.talk import Reply, Result

MEAN_S = 2.0
_CLASS = "Simulated-1G"
_PIPE_RESULTS = 16
"""So many results are in the pipe when the host has to wait for the command."""


class Costs(NamedTuple):
    """Seconds that go by on the simulated clock while somebody works."""

    start: float = 0.0
    """Of a lease, until its first job begins: the child's start."""
    answer: float = 0.0
    """Of one answer, until it is in the inbox."""
    act: float = 0.0
    """Of one answer, to act on it."""
    store: float = 0.0
    """Of one result, by the command."""


FREE = Costs()


class Place(NamedTuple):
    node_id: str
    node: str
    backend: str


class SimulatedDevice:
    """In the place of a `Worker`: its lease goes by on the simulated clock."""

    def __init__(self, clock: "SimulatedRay", number: int) -> None:
        self._clock = clock
        self.place = Place("node", "node", "cuda")
        self.report = report(number)
        self.usable, self.held = True, False
        self.uuid, self.device_class = self.report.device.uuid, self.report.device.device_class
        self.reply: Any = None
        self.lease: Any = None
        self.outstanding: dict[Any, Job] = {}
        self.disturbed: list[Job] = []
        self.doing: Doing | None = None
        self.leaving = self.away = self.starting = False
        self.heard_at = time.monotonic()
        self.busy_s = self._began_s = self.due_s = 0.0
        self._answers: list[Any] = []

    def fits(self, jobs: Any) -> bool:
        return self.device_class == jobs[0].device_class

    def give(self, lease: Any) -> None:
        self.lease, self.reply = lease, self
        self.outstanding = {(job.case.suite, job.case.key): job for job in lease.jobs}
        begins = [self._doing(job) for job in lease.jobs]
        ends = [self._finished(job) for job in lease.jobs]
        self._answers = [(begins[0],), *zip(ends, begins[1:], strict=False), (ends[-1],)][::-1]
        self._clock.add(self, self._clock.now_s + self._clock.costs.start)

    def answer(self) -> Any:
        """The answer at hand; the next one follows it by the time of the device, whenever this one is taken."""
        self.heard_at = time.monotonic()
        if not self._answers:
            return StopIteration()
        answer, seconds = self._answers.pop(), 0.0
        if isinstance(answer[-1], Doing):
            self._began_s, seconds = self.due_s, self._answers[-1][0].result.wall_s
        self.busy_s += seconds
        self._clock.add(self, self.due_s + seconds)
        return answer

    @property
    def at_hand(self) -> Job | None:
        return self.outstanding.get((self.doing.suite, self.doing.case_key)) if self.doing else None

    @property
    def spent_s(self) -> float:
        return self._clock.now_s - self._began_s

    def note(self, doing: Doing) -> None:
        self.doing = doing

    def idle(self) -> None:
        self.reply = self.lease = self.doing = None
        self.outstanding, self.disturbed = {}, []

    def _doing(self, job: Job) -> Doing:
        return Doing(suite=job.case.suite, case_key=job.case.key, what="time")

    def _finished(self, job: Job) -> Finished:
        return Finished(result=result(job, self.report, self._clock.seconds(job)))


class SimulatedRay:
    """An inbox by the simulated clock: what devices have said by now, or what is said next."""

    class exceptions:  # noqa: N801 - Ray's name
        class RayError(Exception): ...

        class RayTaskError(RayError): ...

    def __init__(self, costs: Costs) -> None:
        self.costs = costs
        self.now_s = self.busy_s = 0.0
        self.lags_s: list[float] = []
        """Of each event, from when it was said to when it is fetched."""
        self._stored_s = 0.0
        self._random = random.Random(7)  # noqa: S311 - chance, not a secret
        self._due: list[tuple[float, int, SimulatedDevice]] = []
        self._count = 0

    def seconds(self, job: Job) -> float:
        """What a job takes: about the same in each round."""
        return expected_s(job.case) * self._random.uniform(0.95, 1.05)

    def add(self, device: SimulatedDevice, at_s: float) -> None:
        device.due_s = at_s
        self._count += 1
        heapq.heappush(self._due, (at_s, self._count, device))

    def listen(self, workers: Sequence[Any]) -> None:
        """Every call is known."""

    def next(self, timeout_s: float) -> Answer:
        """What was said first, of all that has not been taken; what it costs goes by before anybody acts on it."""
        due_s, _, device = heapq.heappop(self._due)
        self.now_s = max(self.now_s, due_s)
        self._work(self.costs.answer + self.costs.act)
        self.lags_s.append(self.now_s - due_s)
        return Answer(device, device.reply, device.answer())

    def store(self) -> None:
        """A result goes to the command, for which the host waits where too many are on their way."""
        if self.costs.store:
            self._stored_s = max(self._stored_s, self.now_s) + self.costs.store
            self.now_s = max(self.now_s, self._stored_s - _PIPE_RESULTS * self.costs.store)

    def _work(self, seconds: float) -> None:
        self.now_s += seconds
        self.busy_s += seconds


class Unchanging:
    """A membership in which nobody comes or goes."""

    def look(self, *, now: bool = False) -> None:
        """There is nothing to see."""

    def waited_for(self) -> dict[Any, int]:
        """Nobody waits."""
        return {}


class Ran(NamedTuple):
    """How a simulated run went."""

    cpu_s: float
    wall_s: float
    """By the simulated clock."""
    idle: float
    """Share of the devices' time."""
    busy: float
    """Share of the coordinator's time."""
    lags_s: list[float]


def coordinate(jobs: Sequence[Job], devices: int, costs: Costs = FREE, told: Callable[[Reply], None] = id) -> Ran:
    """A run through the real dispatcher."""
    ray = SimulatedRay(costs)
    pool = [SimulatedDevice(ray, number) for number in range(devices)]
    encoder = msgspec.json.Encoder()

    def emit(reply: Reply) -> None:
        encoder.encode(reply)
        told(reply)
        if isinstance(reply, Result):
            ray.store()

    dispatcher = Dispatcher(
        ray,  # pyright: ignore - in the place of the module
        pool,
        Plan(suite_paths=(), methods={"cuda": Method()}, seed=0, limits=Limits()),
        inbox=ray,  # pyright: ignore - the same
        emit=emit,
        stopped=lambda: False,
        membership=Unchanging(),
        replace=lambda worker: None,
        recruit=lambda worker: None,
        ask_again=lambda worker: None,
    )
    began = time.process_time()
    dispatcher.run(jobs)
    cpu_s = time.process_time() - began
    idle = 1 - sum(device.busy_s for device in pool) / (devices * ray.now_s)
    return Ran(cpu_s, ray.now_s, idle, ray.busy_s / ray.now_s, ray.lags_s)


def plan(count: int, rounds: int, *, known: bool, mean_s: float = MEAN_S) -> list[Job]:
    """About `count` jobs; `known`: an earlier run has told how long each case takes."""
    cases = [case(number, mean_s) for number in range(count // rounds)]
    expected = {one.key: expected_s(one) if known else 0.0 for one in cases}
    return [
        Job(case=one, device_class=_CLASS, round=1 + number, expected_s=expected[one.key])
        for number in range(rounds)
        for one in cases
    ]


def expected_s(one: Case) -> float:
    """What a case takes on a device."""
    mean_s = float(one.params["mean_s"])
    return random.Random(one.key).uniform(0.5, 1.5) * mean_s  # noqa: S311 - chance, not a secret


def report(number: int) -> DeviceReport:
    device = Device(
        uuid=f"GPU-{number:04}",
        name="Simulated",
        backend="cuda",
        device_class=_CLASS,
        node="node",
        memory_bytes=1 << 30,
    )
    return DeviceReport(device=device, environment=Environment(entries={"cupy": "0"}))


def case(number: int, mean_s: float = MEAN_S) -> Case:
    return Case(
        suite=f"suite{number % 20}",
        benchmark="op",
        key=f"op[n={number}]",
        backend="cuda",
        params={"n": number, "mean_s": mean_s},
        variants=("unfused", "fused"),
        traffic=Traffic(read_bytes=1, write_bytes=1),
        min_effect=0.02,
    )


def result(job: Job, device: DeviceReport, seconds: float) -> JobResult:
    samples = tuple(1e-4 + 1e-9 * index for index in range(50))
    blocks = tuple(index // 2 for index in range(50))
    measurements = tuple(
        Measurement(side="head", variant=name, status=Status.OK, samples_s=samples, blocks=blocks, calls_per_sample=9)
        for name in job.case.variants
    )
    return JobResult(
        suite=job.case.suite,
        case_key=job.case.key,
        device_class=job.device_class,
        round=job.round,
        attempt=job.attempt,
        status=Status.OK,
        device_uuid=device.device.uuid,
        environment=device.environment,
        measurements=measurements,
        canary_s=(1e-4,) * 25,
        wall_s=seconds,
    )

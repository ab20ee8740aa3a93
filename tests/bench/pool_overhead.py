"""What the coordinator costs for each job: `python tests/bench/pool_overhead.py [JOBS …]`, part of `make bench-pool`.

The real dispatcher with simulated devices: 64 of them, each job a number of seconds of a simulated clock (2 s ± 50 %),
no Ray, no processes. So what is counted is the coordinator's own work alone (process CPU time), and how long devices
stand idle for reasons of scheduling. Behind it the client's part: results that are decoded, and stored in SQLite.
"""

import heapq
import random
import sys
import time
import tracemalloc
from tempfile import TemporaryDirectory
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
    Revision,
    Run,
    RunOptions,
    Status,
    Traffic,
)
from perftrack.pool.child_process import Limits
from perftrack.pool.dispatch import Dispatcher, Plan
from perftrack.pool.lease import Doing, Finished
from perftrack.pool.talk import Reply, Result
from perftrack.store import Store

DEVICES, ROUNDS, MEAN_S = 64, 5, 2.0
STORED = 2000
"""Jobs that are also put into a database; each costs the same."""


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
        self.busy_s = 0.0
        self._events: list[Any] = []

    def fits(self, jobs: Any) -> bool:
        return self.device_class == jobs[0].device_class

    def give(self, lease: Any) -> None:
        self.lease, self.reply = lease, self
        self.outstanding = {(job.case.suite, job.case.key): job for job in lease.jobs}
        self._events = [event for job in reversed(lease.jobs) for event in (self._finished(job), self._doing(job))]
        self._clock.add(self, 0.0)

    def next_reply(self) -> Any:
        self.heard_at = time.monotonic()
        if not self._events:
            raise StopIteration
        event = self._events.pop()
        seconds = self._events[-1].result.wall_s if isinstance(event, Doing) else 0.0
        self.busy_s += seconds
        self._clock.add(self, seconds)
        return event

    def idle(self) -> None:
        self.reply = self.lease = self.doing = None
        self.outstanding, self.disturbed = {}, []

    def _doing(self, job: Job) -> Doing:
        return Doing(suite=job.case.suite, case_key=job.case.key, what="time")

    def _finished(self, job: Job) -> Finished:
        return Finished(result=result(job, self.report, self._clock.random.uniform(0.5, 1.5) * MEAN_S))


class SimulatedRay:
    """`ray.wait` by the simulated clock: the device whose next event comes first."""

    class exceptions:  # noqa: N801 - Ray's name
        class RayError(Exception): ...

        class RayTaskError(RayError): ...

    def __init__(self) -> None:
        self.random = random.Random(7)  # noqa: S311 - chance, not a secret
        self.now_s = 0.0
        self._due: list[tuple[float, int, SimulatedDevice]] = []
        self._count = 0

    def add(self, device: SimulatedDevice, seconds: float) -> None:
        self._count += 1
        heapq.heappush(self._due, (self.now_s + seconds, self._count, device))

    def wait(self, _: Any, **_options: Any) -> tuple[list[Any], list[Any]]:
        self.now_s, _number, device = heapq.heappop(self._due)
        return [device], []


class Unchanging:
    """A membership in which nobody comes or goes."""

    def look(self, *, now: bool = False) -> None:
        """There is nothing to see."""

    def waited_for(self) -> dict[Any, int]:
        """Nobody waits."""
        return {}


def report(number: int) -> DeviceReport:
    device = Device(
        uuid=f"GPU-{number:04}",
        name="Simulated",
        backend="cuda",
        device_class="Simulated-1G",
        node="node",
        memory_bytes=1 << 30,
    )
    return DeviceReport(device=device, environment=Environment(entries={"cupy": "0"}))


def case(number: int) -> Case:
    return Case(
        suite=f"suite{number % 20}",
        benchmark="op",
        key=f"op[n={number}]",
        backend="cuda",
        params={"n": number},
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


def coordinate(count: int) -> None:
    """A sweep of `count` jobs through the dispatcher."""
    ray = SimulatedRay()
    devices = [SimulatedDevice(ray, number) for number in range(DEVICES)]
    cases = [case(number) for number in range(count // ROUNDS)]
    jobs = [Job(case=one, device_class="Simulated-1G", round=1 + number) for number in range(ROUNDS) for one in cases]
    encoder, told = msgspec.json.Encoder(), [0]

    def emit(reply: Reply) -> None:
        told[0] += isinstance(reply, Result)
        encoder.encode(reply)

    plan = Plan(suite_paths=(), methods={"cuda": Method()}, seed=0, limits=Limits())
    dispatcher = Dispatcher(
        ray,  # pyright: ignore - in the place of the module
        devices,
        plan,
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
    idle = 1 - sum(device.busy_s for device in devices) / (DEVICES * ray.now_s)
    say(f"{told[0]:>7} jobs: dispatch {cpu_s / count * 1e3:.3f} ms CPU a job, devices idle {idle:.1%}")


def memory(count: int) -> None:
    """What is kept of each job after it has ended, beyond the plan."""
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    coordinate(count)
    after, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    say(f"{count:>7} jobs: {(after - before) / count:.0f} bytes a job left at the end, {peak / count:.0f} at the peak")


def store(count: int) -> None:
    """The client's part: decode what the host says and store it, each job in its own transaction."""
    devices = [report(number) for number in range(DEVICES)]
    cases = [case(number) for number in range(count // ROUNDS)]
    jobs = [Job(case=one, device_class="Simulated-1G", round=1 + number) for number in range(ROUNDS) for one in cases]
    lines = [
        msgspec.json.encode(Result(result=result(job, devices[number % DEVICES], MEAN_S)))
        for number, job in enumerate(jobs)
    ]
    head = Revision(sha="0" * 40, tree="1" * 40, dirty=False, parent=None, position=0, committed_us=0, subject="")
    options = RunOptions(methods={"cuda": Method()})
    run = Run(uid="0" * 32, repo="r", head=head, base=None, base_note="", options=options, started_us=1)
    decoder = msgspec.json.Decoder(Reply)
    with TemporaryDirectory() as folder, Store.open(f"{folder}/perf.db") as opened:
        opened.begin_run(run)
        began = time.process_time()
        opened.declare(cases)
        for number, line in enumerate(lines):
            reply = decoder.decode(line)
            opened.add_job(run.uid, jobs[number].case, reply.result, devices[number % DEVICES].device)
        cpu_s = time.process_time() - began
    say(f"{count:>7} jobs: decode and store {cpu_s / count * 1e3:.3f} ms CPU a job")


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    for wanted in [int(word) for word in sys.argv[1:]] or [1_000, 10_000, 100_000]:
        coordinate(wanted)
    memory(20_000)
    store(STORED)

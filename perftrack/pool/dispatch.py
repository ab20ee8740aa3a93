"""The loop of the pool host: leases to Cards, their events to the client, repeats where blame says so.

Ray never repeats a measurement: attempts, strikes and re-queueing are here, and who is to blame is in `blame`.
"""

import time
from collections.abc import Callable, Iterable
from itertools import groupby
from types import ModuleType

import msgspec

from perftrack.model import Backend, DeviceReport, Job, JobResult, Method, Status
from perftrack.pool.blame import DEVICE_ERRORS, Ending, History, Party, classify, decide, describe
from perftrack.pool.child_process import Limits
from perftrack.pool.lease import CardEvent, Doing, Finished, Lease, Lost, split
from perftrack.pool.talk import Drained, Note, Progress, Reply, Result
from perftrack.pool.worker import Worker

_WAIT_S = 0.5
"""How long one look at the Cards may take: also how late a stop is noticed."""

_GRACE_S = 15.0
"""A Card enforces all limits itself; one that is silent for this much longer is ended."""


class Portion(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs of one class and round that wait for a Card."""

    jobs: tuple[Job, ...]
    avoid: str = ""
    """UUID of the device where they failed: another one is better, if there is one."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What all leases of a run have in common."""

    suite_paths: tuple[str, ...]
    methods: dict[Backend, Method]
    seed: int
    limits: Limits


class Dispatcher:
    """Runs jobs on workers until each has ended for good."""

    def __init__(
        self,
        ray: ModuleType,
        workers: list[Worker],
        plan: Plan,
        *,
        emit: Callable[[Reply], None],
        stopped: Callable[[], bool],
        replace: Callable[[Worker], None],
    ) -> None:
        self._ray = ray
        self._workers = workers
        self._plan = plan
        self._emit = emit
        self._stopped = stopped
        self._replace = replace
        self._waiting: list[Portion] = []
        self._histories: dict[tuple[str, str, str, int], History] = {}

    def run(self, jobs: Iterable[Job]) -> None:
        """Do all jobs; every attempt is emitted as a Result, the end as Drained."""
        self._waiting = [portion for group in _rounds(jobs) for portion in self._spread(group)]
        while not self._stopped():
            self._give_work()
            busy = {worker.reply: worker for worker in self._workers if worker.reply is not None}
            if not busy:
                break
            ready, _ = self._ray.wait(list(busy), num_returns=1, timeout=_WAIT_S)
            for reply in ready:
                self._hear(busy[reply])
            self._end_silent()
        else:
            return
        self._give_up()
        self._emit(Drained())

    def _spread(self, jobs: tuple[Job, ...]) -> list[Portion]:
        cards = sum(_fits(worker, jobs) for worker in self._workers)
        return [Portion(jobs=chunk) for chunk in split(jobs, max(1, cards))]

    def _give_work(self) -> None:
        for worker in self._workers:
            if worker.usable and worker.reply is None and (portion := self._pick(worker)):
                self._waiting.remove(portion)
                worker.give(self._lease(portion.jobs, worker))

    def _pick(self, worker: Worker) -> Portion | None:
        mine = [portion for portion in self._waiting if _fits(worker, portion.jobs)]
        for portion in mine:
            others = any(_fits(other, portion.jobs) for other in self._workers if other is not worker)
            if portion.avoid != _uuid(worker) or not others:
                return portion
        return None

    def _lease(self, jobs: tuple[Job, ...], worker: Worker) -> Lease:
        backend = jobs[0].case.backend
        return Lease(
            backend=backend,
            suite_paths=self._plan.suite_paths,
            method=self._plan.methods.get(backend, Method()),
            seed=self._plan.seed,
            round=jobs[0].round,
            jobs=jobs,
            device_uuid=_uuid(worker),
        )

    def _hear(self, worker: Worker) -> None:
        try:
            reply = worker.next_reply()
        except StopIteration:
            self._end_lease(worker)
        except self._ray.exceptions.RayTaskError as error:
            self._end_lease(worker, Ending(kind="start", said=str(error.cause or error)))
        except self._ray.exceptions.RayError as error:
            self._lose(worker, error)
        else:
            if worker.lease is None:
                self._welcome(worker, reply)
            else:
                self._take(worker, reply)

    def _welcome(self, worker: Worker, report: DeviceReport) -> None:
        """A replaced Card has named its device."""
        worker.idle()
        worker.report = report
        if report.problem:
            self._emit(Note(text=f"{report.device.device_class} on {report.device.node} is left out: {report.problem}"))

    def _take(self, worker: Worker, event: CardEvent) -> None:
        match event:
            case Doing():
                worker.doing = event
                self._emit(
                    Progress(
                        device_class=_class(worker),
                        device_uuid=_uuid(worker),
                        case_key=event.case_key,
                        what=event.what,
                    )
                )
            case Finished(result=result):
                worker.doing = None
                job = worker.outstanding.pop((result.suite, result.case_key))
                self._finish(worker, job, result, event.cuda_error)
            case Lost():
                worker.doing = None
                for job in event.jobs:
                    worker.outstanding.pop((job.case.suite, job.case.key), None)
                self._blame(worker, event)

    def _finish(self, worker: Worker, job: Job, result: JobResult, cuda_error: int) -> None:
        self._emit(Result(result=result))
        if result.status not in {Status.FAILED, Status.INFRA}:
            return
        kind = "result" if result.status is Status.FAILED else "machine"
        ending = Ending(kind=kind, cuda_error=cuda_error, said=result.message, phase="time")
        if decide(ending, self._history(job)).again:
            self._again(worker, [job], alone=True)
        if cuda_error in DEVICE_ERRORS:
            self._hold(worker, result.message)

    def _blame(self, worker: Worker, lost: Lost) -> None:
        again: list[Job] = []
        party = classify(lost.ending).party
        for job in lost.jobs:
            decision = decide(lost.ending, self._history(job))
            self._emit(Result(result=self._attempt(worker, job, decision.status, lost)))
            if decision.again:
                again.append(job)
        self._again(worker, again, alone=party is Party.KERNEL or lost.ending.kind == "ray")
        if party is Party.DEVICE:
            self._hold(worker, lost.ending.said)

    def _again(self, worker: Worker, jobs: list[Job], *, alone: bool) -> None:
        repeats = tuple(msgspec.structs.replace(job, attempt=job.attempt + 1) for job in jobs)
        for part in split(repeats, len(repeats) if alone else 1):
            self._waiting.append(Portion(jobs=part, avoid=_uuid(worker)))

    def _attempt(self, worker: Worker, job: Job, status: Status, lost: Lost) -> JobResult:
        report = worker.report
        return JobResult(
            suite=job.case.suite,
            case_key=job.case.key,
            device_class=job.device_class,
            round=job.round,
            attempt=job.attempt,
            status=status,
            message=describe(lost.ending),
            device_uuid=_uuid(worker),
            environment=report.environment if report else None,
            seed=self._plan.seed,
            started_us=lost.started_us,
            wall_s=lost.wall_s,
        )

    def _hold(self, worker: Worker, why: str) -> None:
        worker.held = True
        self._emit(Note(text=f"device {_uuid(worker)} ({_class(worker)}) is not used any more: {why}"))

    def _end_lease(self, worker: Worker, ending: Ending | None = None) -> None:
        left = tuple(worker.outstanding.values())
        starting = worker.lease is None
        worker.idle()
        if starting:  # a replaced Card could not name its device
            self._hold(worker, ending.said if ending else "it does not answer")
        elif left:
            ending = ending or Ending(kind="start", said="the worker ended before its jobs")
            self._blame(worker, _lost(left, ending))

    def _lose(self, worker: Worker, error: Exception) -> None:
        """The Card is gone. Only the job that was running can have to do with it; the others just go on.

        Its last words may be lost with it: then nobody knows which job was running, and each is tried alone.
        """
        doing, left, starting = worker.doing, dict(worker.outstanding), worker.lease is None
        ending = Ending(
            kind="ray",
            ray_error=type(error).__name__,
            phase=doing.what if doing else "",
            said=(str(error).splitlines() or [""])[0],
            init_failed=bool(getattr(error, "actor_init_failed", False)),
        )
        worker.idle()
        key = (doing.suite, doing.case_key) if doing else next(iter(left)) if len(left) == 1 else None
        running = left.pop(key, None) if key else None
        rest = tuple(left.values())
        if running is not None:
            self._blame(worker, _lost((running,), msgspec.structs.replace(ending, suspect=True)))
            self._waiting += [Portion(jobs=rest)] if rest else []
        elif rest:
            self._blame(worker, _lost(rest, ending))
        if starting:
            self._hold(worker, ending.said)
            return
        self._emit(Note(text=f"the worker of {_class(worker)} was lost ({ending.ray_error}); a new one takes over"))
        self._replace(worker)

    def _end_silent(self) -> None:
        limit_s = self._plan.limits.longest_silence_s + _GRACE_S
        for worker in self._workers:
            if worker.reply is not None and time.monotonic() - worker.heard_at > limit_s:
                worker.heard_at = time.monotonic()
                worker.kill()

    def _give_up(self) -> None:
        """No Card is left for what still waits."""
        for job in (job for portion in self._waiting for job in portion.jobs):
            text = f"no usable device of class {job.device_class} is left"
            result = JobResult(
                suite=job.case.suite,
                case_key=job.case.key,
                device_class=job.device_class,
                round=job.round,
                attempt=job.attempt,
                status=Status.INFRA,
                message=text,
                started_us=time.time_ns() // 1000,
            )
            self._emit(Result(result=result))
        self._waiting = []

    def _history(self, job: Job) -> History:
        return self._histories.setdefault(job.identity, History())


def _rounds(jobs: Iterable[Job]) -> list[tuple[Job, ...]]:
    """Jobs of one device class, backend and round, in the order of the rounds."""

    def key(job: Job) -> tuple[int, str, str]:
        return job.round, job.device_class, job.case.backend

    return [tuple(group) for _, group in groupby(sorted(jobs, key=key), key=key)]


def _lost(jobs: tuple[Job, ...], ending: Ending) -> Lost:
    return Lost(jobs=jobs, ending=ending, started_us=time.time_ns() // 1000, wall_s=0.0)


def _fits(worker: Worker, jobs: tuple[Job, ...]) -> bool:
    return worker.usable and _class(worker) == jobs[0].device_class


def _class(worker: Worker) -> str:
    return worker.report.device.device_class if worker.report else ""


def _uuid(worker: Worker) -> str:
    return worker.report.device.uuid if worker.report else ""

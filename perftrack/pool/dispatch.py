"""The loop of the pool host: leases to Cards, their events to the client, repeats where blame says so.

Ray never repeats a measurement: attempts, strikes and re-queueing are here, and who is to blame is in `blame`.
"""

import time
from collections.abc import Callable, Iterable
from types import ModuleType

import msgspec

from perftrack.model import Backend, Job, JobResult, Method, Status
from perftrack.pool.blame import DEVICE_ERRORS, Ending, History, Party, classify, decide, describe
from perftrack.pool.child_process import Limits
from perftrack.pool.giving_way import changes
from perftrack.pool.health import OFF, Canaries
from perftrack.pool.inbox import Answer, Inbox
from perftrack.pool.lease import CardEvent, Doing, Finished, Lease, Lost, Named
from perftrack.pool.membership import Membership
from perftrack.pool.talk import Drained, Joined, Note, Progress, Reply, Result
from perftrack.pool.waiting import Waiting
from perftrack.pool.worker import Worker

_WAIT_S = 0.5
"""How long one look at the Cards may take: also how late a stop is noticed."""

_GRACE_S = 15.0
"""A Card enforces all limits itself; one that is silent for this much longer is ended."""

_MANY = 3
"""Fewer disturbed cases than this say nothing about a device: each may be the case's own doing."""


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
        inbox: Inbox,
        emit: Callable[[Reply], None],
        stopped: Callable[[], bool],
        membership: Membership,
        replace: Callable[[Worker], None],
        recruit: Callable[[Worker], None],
        ask_again: Callable[[Worker], None],
    ) -> None:
        self._ray = ray
        self._inbox = inbox
        self._workers = workers
        self._plan = plan
        self._emit = emit
        self._stopped = stopped
        self._membership = membership
        self._replace = replace
        self._recruit = recruit
        self._ask_again = ask_again
        self._unfit = {worker.uuid for worker in workers if worker.report and worker.report.problem}
        """UUIDs of devices that are not used, or not any more; that has been said."""
        self._checked_s = 0.0
        self._waiting = Waiting()
        self._histories: dict[tuple[str, str, str, int], History] = {}
        self._canaries = Canaries()

    def run(self, jobs: Iterable[Job]) -> None:
        """Do all jobs; every attempt is emitted as a Result, the end as Drained."""
        self._waiting.add(jobs)
        while not self._stopped():
            self._look_around()
            self._give_work()
            if not any(map(self._counts_on, self._workers)) and not self._waits_for_return():
                break
            self._inbox.listen(self._workers)
            if answer := self._inbox.next(_WAIT_S):
                self._hear(answer)
            self._end_silent()
        else:
            return
        self._give_up()
        self._emit(Drained())

    def _look_around(self, *, now: bool = False) -> None:
        """Give up nodes that are gone, and let new ones in."""
        seen = self._membership.look(now=now)
        if seen is None:
            return
        living, fresh = seen
        for worker in [each for each in self._workers if each.place.node_id not in living]:
            if worker.lease is None:  # else its lease ends by itself and says which job was running
                self._part(worker)
        for place in fresh:
            worker = self._membership.recruit(place)
            self._recruit(worker)
            self._workers.append(worker)
        self._give_way()

    def _counts_on(self, worker: Worker) -> bool:
        """Whether its answer is worth waiting for: of one that starts, only as long as there is work for it."""
        return worker.reply is not None and not worker.away and (worker.lease is not None or bool(self._waiting))

    def _waits_for_return(self) -> bool:
        """Whether there is work for devices that were given away."""
        return bool(self._waiting) and any(worker.away for worker in self._workers)

    def _give_way(self) -> None:
        """Devices go to submissions that wait for them, and are asked for again once nobody waits."""
        found = changes(self._workers, self._membership.waited_for())
        for worker in found.park:
            self._park(worker)
        for worker in found.ask_again:
            self._ask_again(worker)
        if self._workers and all(
            worker.away for worker in self._workers
        ):  # a sign of life, at which a run can be stopped
            self._emit(Progress(device_class="", device_uuid="", case_key="for a submission to end", what="waits"))

    def _park(self, worker: Worker) -> None:
        """Give its device away; what it had not finished goes to others, or waits."""
        self._look_again(worker)
        rest = tuple(worker.outstanding.values())
        if worker.usable:
            self._emit(Note(text=f"device {worker.uuid} ({worker.device_class}) gives way to a submission"))
        worker.park()
        self._waiting.back(rest)

    def _part(self, worker: Worker) -> None:
        """Its node is gone."""
        worker.idle()
        self._workers.remove(worker)
        what = f"device {worker.uuid} ({worker.device_class})" if worker.uuid else "what it had"
        self._emit(Note(text=f"node {worker.place.node} is gone, and with it {what}"))

    def _give_work(self) -> None:
        if not self._waiting:
            return
        idle = [worker for worker in self._workers if worker.reply is None and worker.usable]
        usable = {worker.uuid: worker for worker in self._workers if worker.usable} if idle else {}
        for worker in idle:
            if jobs := self._waiting.take(worker, usable):
                worker.give(self._lease(jobs, worker))

    def _lease(self, jobs: tuple[Job, ...], worker: Worker) -> Lease:
        backend = jobs[0].case.backend
        return Lease(
            backend=backend,
            suite_paths=self._plan.suite_paths,
            method=self._plan.methods.get(backend, Method()),
            seed=self._plan.seed,
            round=jobs[0].round,
            jobs=jobs,
            device_uuid=worker.uuid,
        )

    def _hear(self, answer: Answer) -> None:
        worker = answer.worker
        try:
            said = answer.get()
        except StopIteration:
            self._end_lease(worker)
        except self._ray.exceptions.RayTaskError as error:
            self._end_lease(worker, Ending(kind="start", said=str(error.cause or error)))
        except self._ray.exceptions.RayError as error:
            self._lose(worker, error)
        else:
            if worker.lease is None:
                self._welcome(worker, said)
                return
            for event in said:
                if answer.call is worker.reply:  # else it gave way meanwhile
                    self._take(worker, event)

    def _welcome(self, worker: Worker, named: Named) -> None:
        """A new or replaced Card has named its device."""
        worker.idle()
        report = named.report
        if report.problem:  # it keeps its device, which would be handed out again
            worker.named = named
            device = report.device
            if device.uuid not in self._unfit:
                self._emit(Note(text=f"{device.device_class} on {device.node} is left out: {report.problem}"))
            self._unfit.add(device.uuid)
            return
        others = [other for other in self._workers if other is not worker]
        objection = self._membership.objection(report, others)
        if objection is None:
            worker.named, worker.held = named, report.device.uuid in self._unfit
            if self._membership.is_new(report):
                self._emit(Joined(report=report))
            return
        self._workers.remove(worker)
        worker.kill()
        if objection:
            self._emit(Note(text=objection))

    def _take(self, worker: Worker, event: CardEvent) -> None:
        match event:
            case Doing():
                if event.case_key:
                    worker.note(event)
                self._emit(
                    Progress(
                        device_class=worker.device_class,
                        device_uuid=worker.uuid,
                        case_key=event.case_key or event.suite,
                        what=event.what,
                    )
                )
            case Finished(result=result):
                worker.doing = None
                job = worker.outstanding.pop((result.suite, result.case_key))
                self._waiting.learn(job, result)
                self._finish(worker, job, result, event.cuda_error)
                if worker.leaving:
                    self._park(worker)
            case Lost():
                worker.doing = None
                for job in event.jobs:
                    worker.outstanding.pop((job.case.suite, job.case.key), None)
                self._blame(worker, event)

    def _finish(self, worker: Worker, job: Job, result: JobResult, cuda_error: int) -> None:
        self._emit(Result(result=result))
        off = self._canaries.off(result, job.case.backend)
        if result.status is Status.UNSTABLE or (off and result.status is Status.OK):
            worker.disturbed.append(job)
        if result.status not in {Status.FAILED, Status.INFRA}:
            return
        kind = "result" if result.status is Status.FAILED else "machine"
        ending = Ending(kind=kind, cuda_error=cuda_error, said=result.message, phase="time")
        if decide(ending, self._history(job)).again:
            self._waiting.again([job], avoid=worker.uuid, alone=True)
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
        alone = party is Party.KERNEL or lost.ending.kind == "ray"
        self._waiting.again(again, avoid=worker.uuid, alone=alone)
        if party is Party.DEVICE:
            self._hold(worker, lost.ending.said)

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
            device_uuid=worker.uuid,
            environment=report.environment if report else None,
            seed=self._plan.seed,
            started_us=lost.started_us,
            wall_s=lost.wall_s,
        )

    def _hold(self, worker: Worker, why: str) -> None:
        worker.held = True
        if not worker.uuid:  # it has never named its device
            self._emit(Note(text=f"a {worker.place.backend} device of node {worker.place.node} is left out: {why}"))
            return
        self._unfit.add(worker.uuid)
        self._emit(Note(text=f"device {worker.uuid} ({worker.device_class}) is not used any more: {why}"))

    def _end_lease(self, worker: Worker, ending: Ending | None = None) -> None:
        left = tuple(worker.outstanding.values())
        starting = worker.lease is None
        self._look_again(worker)
        worker.idle()
        if starting:  # a replaced Card could not name its device
            self._hold(worker, ending.said if ending else "it does not answer")
        elif left:
            ending = ending or Ending(kind="start", said="the worker ended before its jobs")
            self._blame(worker, _lost(left, ending))

    def _look_again(self, worker: Worker) -> None:
        """Jobs in which the device was disturbed are repeated once, elsewhere if possible.

        A device that is disturbed most of the time is not used any more, as long as there is another one.
        """
        disturbed = [job for job in worker.disturbed if job.attempt == 1]
        if not disturbed:
            return
        self._waiting.again(disturbed, avoid=worker.uuid, alone=False)
        of = len(worker.lease.jobs) if worker.lease else 0
        others = any(other.fits(disturbed) for other in self._workers if other is not worker)
        limit = f"{100 * OFF[disturbed[0].case.backend]:g} %"
        text = (
            f"{len(disturbed)} of {of} cases were disturbed (clock, power, other work on the device, "
            f"or a canary more than {limit} slower than on another one of its class)"
        )
        if others and len(disturbed) >= _MANY and len(disturbed) > of / 2:
            self._hold(worker, f"{text}; they are measured again on another one")
        else:
            where = "on another one" if others else "once more"
            self._emit(Note(text=f"device {worker.uuid} ({worker.device_class}): {text} and are measured {where}"))

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
        self._look_again(worker)
        worker.idle()
        key = (doing.suite, doing.case_key) if doing else next(iter(left)) if len(left) == 1 else None
        running = left.pop(key, None) if key else None
        rest = tuple(left.values())
        if running is not None:
            self._blame(worker, _lost((running,), msgspec.structs.replace(ending, suspect=True)))
            self._waiting.back(rest)
        elif rest:
            self._blame(worker, _lost(rest, ending))
        self._look_around(now=True)
        if worker not in self._workers:
            return
        if starting:
            self._hold(worker, ending.said)
            return
        whose = f"device {worker.uuid} ({worker.device_class})"
        self._emit(Note(text=f"the worker of {whose} was lost ({ending.ray_error}); a new one takes over"))
        self._replace(worker)

    def _end_silent(self) -> None:
        now_s = time.monotonic()
        if now_s - self._checked_s < _WAIT_S:
            return
        self._checked_s = now_s
        limit_s = self._plan.limits.longest_silence_s + _GRACE_S
        for worker in self._workers:
            if worker.reply is not None and not worker.away and now_s - worker.heard_at > limit_s:
                worker.heard_at = now_s
                worker.kill()

    def _give_up(self) -> None:
        """No Card is left for what still waits."""
        for job in self._waiting.give_up():
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

    def _history(self, job: Job) -> History:
        return self._histories.setdefault(job.identity, History())


def _lost(jobs: tuple[Job, ...], ending: Ending) -> Lost:
    return Lost(jobs=jobs, ending=ending, started_us=time.time_ns() // 1000, wall_s=0.0)

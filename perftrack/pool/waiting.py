"""What no device has yet: rounds that are not dealt, portions that are, and repeats."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

import msgspec

from perftrack.model import Job, JobResult, Status
from perftrack.pool.spread import spread
from perftrack.pool.worker import Worker

_CALL_S = 0.7
"""What one variant on one side takes, roughly, of a case that nobody has measured yet."""

_MOST_SPENT = 0.9
"""This share of what the job at hand is expected to take counts as gone, however long it has been going on."""

_Case = tuple[str, str, str]
"""(suite, case key, device class)."""


class Portion(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs of one class and round, for one lease."""

    jobs: tuple[Job, ...]
    device: str = ""
    """UUID of the device that they are dealt to; another takes them only where it can no longer be used."""
    avoid: str = ""
    """UUID of the device where they failed: another one is better, if there is one."""


class Waiting:
    """Knows what is to be done next by whom; a round is dealt when the first device is free for it."""

    def __init__(self) -> None:
        self._rounds: list[tuple[Job, ...]] = []
        self._portions: list[Portion] = []
        self._costs_s: dict[_Case, float] = {}
        self._homes: dict[_Case, str] = {}

    def __bool__(self) -> bool:
        return bool(self._rounds or self._portions)

    def add(self, jobs: Iterable[Job]) -> None:
        """Plan jobs, round by round."""
        self._rounds += _rounds(jobs)

    def take(self, worker: Worker, usable: Mapping[str, Worker]) -> tuple[Job, ...]:
        """What the idle `worker` does next, one of the `usable` by UUID; nothing where there is nothing for it."""
        found = self._portion(worker, usable)
        if found is None and self._deal(worker, usable.values()):
            found = self._portion(worker, usable)
        if found is None:
            return ()
        self._portions.remove(found)
        return found.jobs

    def again(self, jobs: Sequence[Job], *, avoid: str, alone: bool) -> None:
        """Repeat jobs, as a further attempt, elsewhere if possible; each `alone` or all in one process."""
        repeats = tuple(msgspec.structs.replace(job, attempt=job.attempt + 1) for job in jobs)
        parts = [(job,) for job in repeats] if alone else [repeats] if repeats else []
        self._portions += [Portion(jobs=part, avoid=avoid) for part in parts]

    def back(self, jobs: tuple[Job, ...]) -> None:
        """Jobs that were given out and not begun."""
        if jobs:
            self._portions.append(Portion(jobs=jobs))

    def learn(self, job: Job, result: JobResult) -> None:
        """How long the case takes, and where it was measured."""
        if result.status is Status.OK:
            self._homes[_case(job)] = result.device_uuid
            # the first of a process also pays for what the others find done, so the shortest tells most
            self._costs_s[_case(job)] = min(result.wall_s, self._costs_s.get(_case(job), result.wall_s))

    def give_up(self) -> Iterator[Job]:
        """Everything, which is then no longer waited for."""
        left = [*self._rounds, *(portion.jobs for portion in self._portions)]
        self._rounds, self._portions = [], []
        for jobs in left:
            yield from jobs

    def _portion(self, worker: Worker, usable: Mapping[str, Worker]) -> Portion | None:
        for portion in self._portions:
            dealt_to = usable.get(portion.device)
            if dealt_to is not None and dealt_to is not worker and dealt_to.fits(portion.jobs):
                continue
            if worker.fits(portion.jobs) and (portion.avoid != worker.uuid or not _others(worker, usable)):
                return portion
        return None

    def _deal(self, worker: Worker, workers: Iterable[Worker]) -> bool:
        """Spread the first round that `worker` can help with."""
        jobs = next((jobs for jobs in self._rounds if worker.fits(jobs)), None)
        if jobs is None:
            return False
        self._rounds.remove(jobs)
        busy_s = {other.uuid: self._busy_s(other) for other in workers if other.fits(jobs)}
        for portion in self._portions:
            if portion.device in busy_s:
                busy_s[portion.device] += sum(map(self._cost_s, portion.jobs))
        dealt = spread(jobs, busy_s, cost_s=self._cost_s, home=lambda job: self._homes.get(_case(job), ""))
        self._portions += [Portion(jobs=mine, device=uuid) for uuid, mine in dealt.items() if mine]
        return True

    def _busy_s(self, worker: Worker) -> float:
        """With what it has been given; a job that takes longer than expected is never as good as done."""
        job = worker.at_hand
        spent_s = min(worker.spent_s, _MOST_SPENT * self._cost_s(job)) if job else 0.0
        return sum(map(self._cost_s, worker.outstanding.values())) - spent_s

    def _cost_s(self, job: Job) -> float:
        expected_s = job.expected_s or _CALL_S * len(job.sides) * len(job.case.variants)
        return self._costs_s.get(_case(job), expected_s)


def _others(worker: Worker, usable: Mapping[str, Worker]) -> bool:
    return any(each is not worker and each.device_class == worker.device_class for each in usable.values())


def _case(job: Job) -> _Case:
    return (job.case.suite, job.case.key, job.device_class)


def _rounds(jobs: Iterable[Job]) -> list[tuple[Job, ...]]:
    """Jobs of one device class, backend and round, in the order of the rounds."""

    def key(job: Job) -> tuple[int, str, str]:
        return job.round, job.device_class, job.case.backend

    return [tuple(group) for _, group in groupby(sorted(jobs, key=key), key=key)]

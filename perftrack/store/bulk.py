"""Whole batches of finished jobs in one transaction each: what another tool measured, by the thousand.

Everything is harmless to repeat: rows that are there stay, and an attempt with other content is an error.
Nothing is remembered from one batch to the next, so that a long import needs no more memory than a short one.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

import sqlalchemy as sa

from perftrack.errors import StoreError
from perftrack.judge.value import Summary
from perftrack.model import Device, JobResult, Resources
from perftrack.store import measured, pack, rows
from perftrack.store.columns import is_one_of
from perftrack.store.dimensions import Dimensions, insert_new, insert_tuples
from perftrack.store.door import Door
from perftrack.store.result_rows import Answer, ResultRows, result_rows
from perftrack.store.schema import job_attempt, measurement, run, sample
from perftrack.store.value import FinishedJob
from perftrack.store.write import StoredHeader, payload_digest

_KEY = ("run_id", "case_id", "device_class_id", "round", "attempt")
_Key = tuple[int, ...]
T = TypeVar("T")
_IGNORED = "ON CONFLICT DO NOTHING"


def add(door: Door, header: StoredHeader, jobs: Sequence[FinishedJob]) -> int:
    """Store the jobs of one run; how many attempts were new.

    Their readers have checked them value by value; what the tables refuse is a StoreError.
    """
    return _Batch(door, header, jobs).write()


def finish(door: Door, number: int, *, finished_us: int, problems: Sequence[str]) -> None:
    """Say that a run's jobs are all there."""
    change = {"state": "complete", "finished_us": finished_us, "problems": pack.json_text(list(problems))}
    statement = sa.update(run).where(run.c.id == number).values(change)
    door.write(lambda connection: connection.execute(statement))


class _Batch:
    def __init__(self, door: Door, header: StoredHeader, jobs: Sequence[FinishedJob]) -> None:
        self._door = door
        self._header = header
        self._dimensions = Dimensions(door)
        self._known: dict[int, Any] = {}
        """Row numbers by the identity of what `jobs` keeps alive: devices, environments and methods are few."""
        self._cases = self._dimensions.cases((job.case.suite, job.case.key) for job in jobs)
        self._attempts = {
            self._key(job, one, card): (job, one, card, payload_digest(one))
            for job in jobs
            for one, card in job.attempts
        }
        there = door.read(self._stored)
        self._refuse_conflicts(there)
        # an attempt and its job's answers are written in one transaction: what is there is there whole
        self._new = sorted(self._attempts.keys() - there.keys())
        self._jobs = [job for job in jobs if any(self._key(job, *each) not in there for each in job.attempts)]

    def write(self) -> int:
        if not self._new:
            return 0
        attempts = [self._attempt_row(key) for key in self._new]
        results = self._results()
        used = self._resources  # here, since it may write, and inside a transaction no other can begin

        def work(connection: sa.Connection) -> int:
            numbers = insert_new(connection, job_attempt, _KEY, attempts)
            if len(numbers) < len(attempts):  # another writer was faster
                self._refuse_conflicts(self._stored(connection))
            fresh = [(numbers[key], self._attempts[key][1]) for key in self._new if key in numbers]
            measurements = measured.measurement_rows(fresh, used)
            insert_tuples(connection, measurement, measured.MEASUREMENT, measurements, tail=_IGNORED)
            insert_tuples(connection, sample, measured.SAMPLE, measured.sample_rows(fresh), tail=_IGNORED)
            results.new(connection).insert(connection)
            return len(numbers)

        return self._door.write(work)

    @cached_property
    def _declarations(self) -> dict[int, int]:
        """Number of the declaration of each job's case."""
        digests = {id(job.case): job.case.digest for job in self._jobs}
        found = self._dimensions.declarations(job.case for job in self._jobs)
        return {case: found[text][1] for case, text in digests.items()}

    @cached_property
    def _resources(self) -> dict[Resources, int]:
        used = {one.resources for job in self._jobs for one in (*_measured(job), *_summaries(job))}
        return self._dimensions.resources(used)

    def _key(self, job: FinishedJob, one: JobResult, card: Device) -> _Key:
        case_id = self._cases[job.case.suite, job.case.key]
        return (self._header.id, case_id, self._device(card)[0], one.round, one.attempt)

    def _number(self, of: T, find: Callable[[T], Any]) -> Any:
        if id(of) not in self._known:
            self._known[id(of)] = find(of)
        return self._known[id(of)]

    def _device(self, card: Device) -> tuple[int, int]:
        """Numbers of the class and of the device."""
        return self._number(card, self._dimensions.device)

    def _attempt_row(self, key: _Key) -> dict[str, Any]:
        job, one, card, payload = self._attempts[key]
        return rows.job_row(one) | {
            **dict(zip(_KEY, key, strict=True)),
            "declaration_id": self._declarations[id(job.case)],
            "device_id": self._device(card)[1],
            "environment_id": self._number(one.environment, self._dimensions.environment),
            "method_id": self._number(job.answers[0][1], self._dimensions.method),
            "payload_digest": payload,
        }

    def _results(self) -> ResultRows:
        answers: list[Answer] = []
        for job in self._jobs:
            attempt, card = job.attempts[0]
            class_id, device_id = self._device(card)
            for one, method in job.answers:
                series = {
                    "case_id": self._cases[job.case.suite, job.case.key],
                    "device_class_id": class_id,
                    "variant": one.variant,
                    "baseline": job.case.baseline,
                    "method_id": self._number(method, self._dimensions.method),
                }
                answers.append(
                    Answer(
                        summary=one,
                        series=series,
                        revision_id=self._header.head_id,
                        declaration_id=self._declarations[id(job.case)],
                        device_id=device_id,
                        environment_id=self._number(attempt.environment, self._dimensions.environment),
                        traffic=job.case.traffic,
                        peak_bytes_per_s=card.peak_bytes_per_s,
                    )
                )
        return result_rows(self._dimensions, self._header.id, answers)

    def _stored(self, connection: sa.Connection) -> dict[_Key, tuple[int, str]]:
        """Number and digest of the attempts that are there, by key."""
        cases = sorted(set(self._cases.values()))
        question = sa.select(
            job_attempt.c.id, job_attempt.c.payload_digest, *(job_attempt.c[name] for name in _KEY)
        ).where(job_attempt.c.run_id == self._header.id, is_one_of(job_attempt.c.case_id, cases))
        found = {tuple(row)[2:]: (row.id, row.payload_digest) for row in connection.execute(question)}
        return {key: value for key, value in found.items() if key in self._attempts}

    def _refuse_conflicts(self, there: Mapping[_Key, tuple[int, str]]) -> None:
        for key, (_, stored) in there.items():
            _, one, _, payload = self._attempts[key]
            if payload != stored:
                raise StoreError(
                    f"{one.suite} {one.case_key} on {one.device_class} is stored already with other content of this run"
                )


def _measured(job: FinishedJob) -> list[Any]:
    return [each for one, _ in job.attempts for each in one.measurements]


def _summaries(job: FinishedJob) -> list[Summary]:
    return [one for one, _ in job.answers]

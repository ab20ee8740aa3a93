"""Whole batches of finished jobs in one transaction each: what another tool measured, by the thousand.

Everything is harmless to repeat: rows that are there stay, and an attempt with other content is an error.
Nothing is remembered from one batch to the next, so that a long import needs no more memory than a short one.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import sqlalchemy as sa

from perftrack.errors import StoreError
from perftrack.judge.value import Summary
from perftrack.model import Device, JobResult, Method
from perftrack.store import pack, rows
from perftrack.store.dimensions import Dimensions, insert
from perftrack.store.door import Door
from perftrack.store.schema import job_attempt, measurement, result, run, sample
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
        self._jobs = jobs
        self._dimensions = Dimensions(door)
        self._known: dict[int, Any] = {}
        """Row numbers by the identity of what `jobs` keeps alive: devices, environments and methods are few."""
        self._digests = {id(job.case): job.case.digest for job in jobs}
        self._declarations = self._dimensions.declarations(job.case for job in jobs)
        used = {one.resources for job in jobs for one in (*_measured(job), *_summaries(job))}
        self._resources = self._dimensions.resources(used)

    def write(self) -> int:
        attempts: dict[_Key, tuple[dict[str, Any], JobResult]] = {}
        for job in self._jobs:
            for one, card in job.attempts:
                row = self._attempt_row(job, one, card)
                attempts[tuple(row[name] for name in _KEY)] = (row, one)
        results = sorted(self._results(), key=lambda row: (row["series_id"], row["revision_id"], row["side"]))

        def work(connection: sa.Connection) -> int:
            there = self._stored(connection, attempts)
            _refuse_conflicts(attempts, there)
            new = [attempts[key][0] for key in sorted(attempts) if key not in there]
            insert(connection, job_attempt, new, tail=_IGNORED)
            numbers = {key: number for key, (number, _) in self._stored(connection, attempts).items()}
            fresh = [(numbers[key], one) for key, (_, one) in sorted(attempts.items()) if key not in there]
            insert(connection, measurement, self._measurements(fresh), tail=_IGNORED)
            insert(connection, sample, _samples(fresh), tail=_IGNORED)
            insert(connection, result, results, tail=_IGNORED)
            return len(new)

        return self._door.write(work)

    def _number(self, of: T, find: Callable[[T], Any]) -> Any:
        if id(of) not in self._known:
            self._known[id(of)] = find(of)
        return self._known[id(of)]

    def _case(self, job: FinishedJob) -> tuple[int, int]:
        """Numbers of the case and of its declaration."""
        return self._declarations[self._digests[id(job.case)]]

    def _device(self, card: Device) -> tuple[int, int]:
        """Numbers of the class and of the device."""
        return self._number(card, self._dimensions.device)

    def _attempt_row(self, job: FinishedJob, one: JobResult, card: Device) -> dict[str, Any]:
        case_id, declaration_id = self._case(job)
        device_class_id, device_id = self._device(card)
        return rows.job_row(one) | {
            "run_id": self._header.id,
            "case_id": case_id,
            "device_class_id": device_class_id,
            "declaration_id": declaration_id,
            "device_id": device_id,
            "environment_id": self._number(one.environment, self._dimensions.environment),
            "method_id": self._number(job.answers[0][1], self._dimensions.method),
            "payload_digest": payload_digest(one),
        }

    def _results(self) -> list[dict[str, Any]]:
        keyed = [(one, job, self._series_key(job, one, method)) for job in self._jobs for one, method in job.answers]
        series = self._dimensions.series([key for _, _, key in keyed])
        return [
            {
                "series_id": series[tuple(key.values())],
                "revision_id": self._header.head_id,
                "run_id": self._header.id,
                "side": one.side,
                "declaration_id": self._case(job)[1],
                "device_id": self._device(job.attempts[0][1])[1],
                "environment_id": self._number(job.attempts[0][0].environment, self._dimensions.environment),
                "resources_id": self._resources[one.resources],
                **rows.summary_row(one),
            }
            for one, job, key in keyed
        ]

    def _series_key(self, job: FinishedJob, one: Summary, method: Method) -> dict[str, Any]:
        return {
            "case_id": self._case(job)[0],
            "device_class_id": self._device(job.attempts[0][1])[0],
            "variant": one.variant,
            "baseline": job.case.baseline,
            "method_id": self._number(method, self._dimensions.method),
        }

    def _stored(self, connection: sa.Connection, wanted: Mapping[_Key, Any]) -> dict[_Key, tuple[int, str]]:
        """Number and digest of the attempts that are there, by key."""
        cases = sorted({key[1] for key in wanted})
        question = sa.select(
            job_attempt.c.id, job_attempt.c.payload_digest, *(job_attempt.c[name] for name in _KEY)
        ).where(job_attempt.c.run_id == self._header.id, job_attempt.c.case_id.in_(cases))
        found = {tuple(row)[2:]: (row.id, row.payload_digest) for row in connection.execute(question)}
        return {key: value for key, value in found.items() if key in wanted}

    def _measurements(self, attempts: Sequence[tuple[int, JobResult]]) -> list[dict[str, Any]]:
        return [
            {
                "job_attempt_id": number,
                **rows.measurement_row(measured, ordinal),
                "resources_id": self._resources[measured.resources],
            }
            for number, one in attempts
            for ordinal, measured in enumerate(one.measurements)
        ]


def _measured(job: FinishedJob) -> list[Any]:
    return [measured for one, _ in job.attempts for measured in one.measurements]


def _summaries(job: FinishedJob) -> list[Summary]:
    return [one for one, _ in job.answers]


def _samples(attempts: Sequence[tuple[int, JobResult]]) -> list[dict[str, Any]]:
    return [
        {"job_attempt_id": number, **packed}
        for number, one in attempts
        for measured in one.measurements
        if (packed := rows.sample_row(measured))
    ]


def _refuse_conflicts(
    attempts: Mapping[_Key, tuple[dict[str, Any], JobResult]], there: Mapping[_Key, tuple[int, str]]
) -> None:
    for key, (_, digest) in there.items():
        row, one = attempts[key]
        if row["payload_digest"] != digest:
            raise StoreError(
                f"{one.suite} {one.case_key} on {one.device_class} is stored already with other content of this run"
            )

"""Whole batches of finished jobs in one transaction each: what another tool measured, by the thousand.

Everything is harmless to repeat: rows that are there stay, and an attempt with other content is an error.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import sqlalchemy as sa

from perftrack.errors import StoreError
from perftrack.model import Device, JobResult, Resources
from perftrack.store import measured, pack, rows
from perftrack.store.dimensions import Dimensions, SeriesKey, insert_new
from perftrack.store.door import Door
from perftrack.store.inserting import insert_tuples
from perftrack.store.result_rows import Answer, ResultRows, result_rows
from perftrack.store.schema import job_attempt, measurement, run, sample
from perftrack.store.value import FinishedJob
from perftrack.store.write import StoredHeader, payload_digest

_KEY = ("run_id", "case_id", "device_class_id", "round", "attempt")
_Key = tuple[int, ...]
T = TypeVar("T")
N = TypeVar("N")
_IGNORED = "ON CONFLICT DO NOTHING"


def add(door: Door, dimensions: Dimensions, header: StoredHeader, jobs: Sequence[FinishedJob]) -> int:
    """Store the jobs of one run; how many attempts were new.

    Their readers have checked them value by value; what the tables refuse is a StoreError.
    """
    return _Batch(door, dimensions, header, jobs).write()


def finish(door: Door, number: int, *, finished_us: int, problems: Sequence[str]) -> None:
    """Say that a run's jobs are all there."""
    change = {"state": "complete", "finished_us": finished_us, "problems": pack.json_text(list(problems))}
    statement = sa.update(run).where(run.c.id == number).values(change)
    door.write(lambda connection: connection.execute(statement))


class _Attempt(NamedTuple):
    job: FinishedJob
    result: JobResult
    card: Device
    digest: str


class _Batch:
    def __init__(self, door: Door, dimensions: Dimensions, header: StoredHeader, jobs: Sequence[FinishedJob]) -> None:
        self._door = door
        self._header = header
        self._dimensions = dimensions
        self._cases = dimensions.cases((job.case.suite, job.case.key) for job in jobs)
        self._devices = _numbers((card for job in jobs for _, card in job.attempts), dimensions.device)
        """Numbers of the class and of the device."""
        self._attempts = {
            self._key(job, one, card): _Attempt(job, one, card, payload_digest(one))
            for job in jobs
            for one, card in job.attempts
        }
        there = door.read(self._stored)
        self._refuse_conflicts(there)
        # an attempt and its job's answers are written in one transaction: what is there is there whole
        self._new = sorted(self._attempts.keys() - there.keys())
        new = {id(self._attempts[key].job) for key in self._new}
        self._jobs = [job for job in jobs if id(job) in new]

    def write(self) -> int:
        if not self._new:
            return 0
        # here, since they may write, and inside a transaction no other can begin
        names, attempts = self._attempt_rows()
        results = self._results()
        used = self._resources

        def work(connection: sa.Connection) -> int:
            numbers = insert_new(connection, job_attempt, names, attempts, key=len(_KEY))
            if len(numbers) < len(attempts):  # another writer was faster
                self._refuse_conflicts(self._stored(connection))
            fresh = [(numbers[key], self._attempts[key].result) for key in self._new if key in numbers]
            measurements = measured.measurement_rows(fresh, used)
            insert_tuples(connection, measurement, measured.MEASUREMENT, measurements, tail=_IGNORED)
            insert_tuples(connection, sample, measured.SAMPLE, measured.sample_rows(fresh), tail=_IGNORED)
            results.new(connection).insert(connection)
            return len(numbers)

        return self._door.write(work)

    @cached_property
    def _declarations(self) -> dict[int, int]:
        """Number of the declaration of each job's case."""
        numbers = self._dimensions.declarations([job.case for job in self._jobs])
        return {id(job.case): number for job, (_, number) in zip(self._jobs, numbers, strict=True)}

    @property
    def _resources(self) -> dict[Resources, int]:
        return self._dimensions.resources(
            one.resources for key in self._new for one in self._attempts[key].result.measurements
        )

    def _key(self, job: FinishedJob, one: JobResult, card: Device) -> _Key:
        case_id = self._cases[job.case.suite, job.case.key]
        return (self._header.id, case_id, self._devices[id(card)][0], one.round, one.attempt)

    @cached_property
    def _environments(self) -> dict[int, int | None]:
        used = (one.environment for job in self._jobs for one, _ in job.attempts)
        return _numbers(used, self._dimensions.environment)

    @cached_property
    def _methods(self) -> dict[int, int]:
        return _numbers((used for job in self._jobs for _, used in job.answers), self._dimensions.method)

    def _attempt_rows(self) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        """Names of columns, and rows by key."""
        new = [self._attempts[key] for key in self._new]
        columns = {
            **dict(zip(_KEY, zip(*self._new, strict=True), strict=True)),
            "declaration_id": [self._declarations[id(of.job.case)] for of in new],
            "device_id": [self._devices[id(of.card)][1] for of in new],
            "environment_id": [self._environments[id(of.result.environment)] for of in new],
            "method_id": [self._methods[id(of.job.answers[0][1])] for of in new],
            "payload_digest": [of.digest for of in new],
        }
        # the key, of which some are fields of the attempt too, comes first
        columns |= {name: of for name, of in rows.job_columns([of.result for of in new]).items() if name not in columns}
        return tuple(columns), list(zip(*columns.values(), strict=True))

    def _results(self) -> ResultRows:
        answers: list[Answer] = []
        for job in self._jobs:
            attempt, card = job.attempts[0]
            class_id, device_id = self._devices[id(card)]
            case_id, declaration_id = self._cases[job.case.suite, job.case.key], self._declarations[id(job.case)]
            environment_id = self._environments[id(attempt.environment)]
            answers += [
                Answer(
                    one,
                    SeriesKey(case_id, class_id, one.variant, job.case.baseline, self._methods[id(method)]),
                    self._header.head_id,
                    declaration_id,
                    device_id,
                    environment_id,
                    job.case.traffic,
                    card.peak_bytes_per_s,
                )
                for one, method in job.answers
            ]
        return result_rows(self._dimensions, self._header.id, answers)

    def _stored(self, connection: sa.Connection) -> dict[_Key, tuple[int, str]]:
        """Number and digest of the attempts that are there, by key."""
        cases = ", ".join(map(str, sorted(set(self._cases.values())))) or "NULL"
        # as text: SQLAlchemy takes longer to write this statement than the database to answer it
        text = (
            f"SELECT {', '.join(_KEY)}, id, payload_digest FROM job_attempt "  # noqa: S608 (our own names, and numbers)
            f"WHERE run_id = {self._header.id} AND case_id IN ({cases})"
        )
        found = {tuple(key): (number, stored) for *key, number, stored in connection.exec_driver_sql(text)}
        return {key: value for key, value in found.items() if key in self._attempts}

    def _refuse_conflicts(self, there: Mapping[_Key, tuple[int, str]]) -> None:
        for key, (_, stored) in there.items():
            one, digest = self._attempts[key].result, self._attempts[key].digest
            if digest != stored:
                raise StoreError(
                    f"{one.suite} {one.case_key} on {one.device_class} is stored already with other content of this run"
                )


def _numbers(values: Iterable[T], find: Callable[[T], N]) -> dict[int, N]:
    """What `find` says of each, by its identity: there are many of few, and the jobs keep them alive."""
    return {at: find(one) for at, one in {id(one): one for one in values}.items()}

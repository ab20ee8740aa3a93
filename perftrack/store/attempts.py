"""What was measured in a run: its attempts, whole, and which of them count."""

from collections.abc import Iterator

import sqlalchemy as sa

from perftrack.model import Environment, JobResult, Measurement, Status
from perftrack.store import read, rows
from perftrack.store.columns import is_one_of
from perftrack.store.schema import (
    device_class,
    environment,
    job_attempt,
    kernel_case,
    measurement,
    resources,
    sample,
    suite,
)

Identity = tuple[str, str, str, int]
"""Suite, case key, device class and round of a job."""


def winners(connection: sa.Connection, run_id: int) -> dict[int, Identity]:
    """The attempt that counts for each job of a run: the last one that is not the machine's failure."""
    return {number: identity for identity, (number, *_) in _winning(connection, run_id).items()}


def done(connection: sa.Connection, run_id: int) -> set[Identity]:
    """Jobs that need no further attempt. A first failure without any measurement is only strike one."""
    measured = set(
        connection.scalars(
            sa.select(measurement.c.job_attempt_id)
            .join(job_attempt, measurement.c.job_attempt_id == job_attempt.c.id)
            .where(job_attempt.c.run_id == run_id)
            .distinct()
        )
    )
    return {
        identity
        for identity, (number, attempt, status) in _winning(connection, run_id).items()
        if status != Status.FAILED or attempt >= 2 or number in measured
    }


def last(connection: sa.Connection, run_id: int) -> dict[Identity, int]:
    """The number of the last attempt of each job of a run."""
    return {identity: attempt for identity, _, attempt, _ in _rows(connection, job_attempt.c.run_id == run_id)}


def _winning(connection: sa.Connection, run_id: int) -> dict[Identity, tuple[int, int, str]]:
    by_the_code = (job_attempt.c.run_id == run_id, job_attempt.c.status != Status.INFRA.value)
    found = _rows(connection, *by_the_code)
    return {identity: (number, attempt, status) for identity, number, attempt, status in found}


def _rows(connection: sa.Connection, *where: sa.ColumnElement[bool]) -> Iterator[tuple[Identity, int, int, str]]:
    """Identity, row number, attempt and status, the attempts of a job in their order."""
    question = (
        sa.select(
            suite.c.name,
            kernel_case.c.key,
            device_class.c.name,
            job_attempt.c.round,
            job_attempt.c.id,
            job_attempt.c.attempt,
            job_attempt.c.status,
        )
        .join_from(job_attempt, kernel_case, job_attempt.c.case_id == kernel_case.c.id)
        .join(suite, kernel_case.c.suite_id == suite.c.id)
        .join(device_class, job_attempt.c.device_class_id == device_class.c.id)
        .where(*where)
        .order_by(job_attempt.c.attempt)
    )
    for name, key, class_name, number_of_round, number, attempt, status in connection.execute(question):
        yield (name, key, class_name, number_of_round), number, attempt, status


def jobs(connection: sa.Connection, run_id: int) -> list[JobResult]:
    """The winning attempts of a run, whole, by suite, case, device class and round."""
    return [attempt for attempt, counts in attempts(connection, run_id) if counts]


def attempts(connection: sa.Connection, run_id: int) -> list[tuple[JobResult, bool]]:
    """Every attempt of a run, whole, and whether it counts, by suite, case, device class, round and number."""
    return [(result, counts) for _, result, counts in numbered(connection, run_id)]


def numbered(connection: sa.Connection, run_id: int) -> list[tuple[int, JobResult, bool]]:
    """The same, each after the number of its row."""
    won = winners(connection, run_id)
    measured = _measurements(connection, run_id)
    environments: dict[str, Environment] = {}
    made: list[tuple[int, JobResult, bool]] = []
    question = (
        sa.select(
            *read.columns(job_attempt),
            suite.c.name.label("suite"),
            kernel_case.c.key.label("case_key"),
            device_class.c.name.label("device_class"),
            environment.c.entries,
        )
        .join_from(job_attempt, kernel_case, job_attempt.c.case_id == kernel_case.c.id)
        .join(suite, kernel_case.c.suite_id == suite.c.id)
        .join(device_class, job_attempt.c.device_class_id == device_class.c.id)
        .join(environment, job_attempt.c.environment_id == environment.c.id, isouter=True)
        .where(job_attempt.c.run_id == run_id)
    )
    for row in read.mappings(connection, question):
        entries = row["entries"]
        if entries is not None and entries not in environments:
            environments[entries] = rows.environment(entries)
        result = rows.job(row, environments.get(entries or ""), tuple(measured.get(row["id"], ())))
        made.append((row["id"], result, row["id"] in won))
    return sorted(made, key=lambda one: (*_identity(one[1]), one[1].attempt))


def _identity(result: JobResult) -> Identity:
    return (result.suite, result.case_key, result.device_class, result.round)


def _measurements(connection: sa.Connection, run_id: int) -> dict[int, list[Measurement]]:
    """By attempt, in the order they were given."""
    same = sa.and_(*(measurement.c[name] == sample.c[name] for name in ("job_attempt_id", "side", "variant")))
    question = (
        sa.select(*read.columns(measurement), sample.c.samples_s, sample.c.blocks)
        .join(job_attempt, measurement.c.job_attempt_id == job_attempt.c.id)
        .join(sample, same, isouter=True)
        .where(job_attempt.c.run_id == run_id)
        .order_by(measurement.c.job_attempt_id, measurement.c.ordinal)
    )
    found = read.mappings(connection, question)
    numbers = list({row["resources_id"] for row in found})
    used = {
        row["id"]: rows.resources(row)
        for row in read.mappings(connection, sa.select(resources).where(is_one_of(resources.c.id, numbers)))
    }
    made: dict[int, list[Measurement]] = {}
    for row in found:
        made.setdefault(row["job_attempt_id"], []).append(rows.measurement(row, used[row["resources_id"]]))
    return made

"""What jobs cost: how long a case will keep a device busy, and how long each device was in a run."""

import sqlalchemy as sa

from perftrack.model import Status
from perftrack.store.schema import device_class, job_attempt, kernel_case, measurement, revision, run, suite

_RUNS = 5

Costs = dict[tuple[str, str, str], float]
"""(suite, case key, device class) → seconds of a job for each side, everything included."""


def busy(connection: sa.Connection, run_id: int) -> dict[str, tuple[int, float]]:
    """Device UUID → attempts of a run and their seconds, by UUID. A lost node does not say which device it was."""
    question = (
        sa.select(job_attempt.c.device_uuid, sa.func.count(), sa.func.sum(job_attempt.c.wall_s))
        .where(job_attempt.c.run_id == run_id, job_attempt.c.device_uuid != "")
        .group_by(job_attempt.c.device_uuid)
        .order_by(job_attempt.c.device_uuid)
    )
    return {uuid: (count, float(wall_s)) for uuid, count, wall_s in connection.execute(question)}


def costs(connection: sa.Connection, repo: str) -> Costs:
    """The least that each case of `repo` took in its newest runs: the first case of a process also pays for others."""
    newest = (
        sa.select(run.c.id)
        .join(revision, run.c.head_id == revision.c.id)
        # other tools' runs, which were imported, do not say what a job takes here
        .where(revision.c.repo == repo, sa.exists().where(job_attempt.c.run_id == run.c.id, job_attempt.c.wall_s > 0))
        .order_by(run.c.started_us.desc())
        .limit(_RUNS)
    )
    numbers = list(connection.scalars(newest))
    measured = (
        sa.select(job_attempt.c.id, sa.func.count(measurement.c.side.distinct()).label("sides"))
        .join(measurement, measurement.c.job_attempt_id == job_attempt.c.id)
        .where(job_attempt.c.run_id.in_(numbers), job_attempt.c.status == Status.OK.value)
        .group_by(job_attempt.c.id)
        .subquery()
    )
    question = (
        sa.select(
            suite.c.name,
            kernel_case.c.key,
            device_class.c.name,
            sa.func.min(job_attempt.c.wall_s / measured.c.sides),
        )
        .join_from(measured, job_attempt, measured.c.id == job_attempt.c.id)
        .join(kernel_case, job_attempt.c.case_id == kernel_case.c.id)
        .join(suite, kernel_case.c.suite_id == suite.c.id)
        .join(device_class, job_attempt.c.device_class_id == device_class.c.id)
        .group_by(suite.c.name, kernel_case.c.key, device_class.c.name)
    )
    return {(name, key, device): float(cost) for name, key, device, cost in connection.execute(question)}

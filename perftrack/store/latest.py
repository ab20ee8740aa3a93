"""The newest value of every variant on one device class, with what its declaration says of its work."""

from collections.abc import Mapping
from typing import Any

import msgspec
import sqlalchemy as sa

from perftrack.judge.value import Summary
from perftrack.model import Scalar, Traffic
from perftrack.store import aliases, read, rows
from perftrack.store.columns import is_one_of
from perftrack.store.schema import declaration, device_class, job_attempt, result, run, run_side, series

RUNS = 60
"""Runs that are looked through: what was measured before them is history."""


class Latest(msgspec.Struct, frozen=True, kw_only=True):
    """One variant of one case as it was last measured."""

    benchmark: str
    params: dict[str, Scalar]
    traffic: Traffic
    baseline: str
    variants: tuple[str, ...]
    """As declared, the baseline first."""
    run_uid: str
    revision: str
    """Label of the run's head."""
    summary: Summary


_VALUES = read.SUMMARIES.add_columns(
    declaration.c.benchmark, declaration.c.params, declaration.c.variants, declaration.c.traffic
)


def newest_class(connection: sa.Connection) -> str | None:
    """The device class that the newest run with a job used first."""
    has_a_job = sa.select(job_attempt.c.id).where(job_attempt.c.run_id == run.c.id).exists()
    newest = sa.select(run.c.id).where(has_a_job).order_by(run.c.started_us.desc(), run.c.id.desc()).limit(1)
    first = sa.select(sa.func.min(job_attempt.c.id)).where(job_attempt.c.run_id == newest.scalar_subquery())
    used = (
        sa.select(device_class.c.name)
        .join_from(job_attempt, device_class, job_attempt.c.device_class_id == device_class.c.id)
        .where(job_attempt.c.id == first.scalar_subquery())
    )
    return connection.execute(used).scalar()


def latest(connection: sa.Connection, name: str) -> list[Latest]:
    """Of the heads of the newest runs that used the device class; by suite, case and variant, under today's names.

    What the newest run did not measure is taken from the one before, and so on.
    """
    number = read.device_class_names(connection).get(name)
    if number is None:
        return []
    waiting = set(connection.scalars(sa.select(series.c.id).where(series.c.device_class_id == number)))
    names = aliases.names(connection)
    found: dict[tuple[str, str, str], Latest] = {}
    for run_id in list(connection.scalars(_runs(number))):
        if not waiting:
            break
        # the table's key begins with the series: a look at each that is missing, whatever else the run measured
        mine = sa.and_(
            is_one_of(result.c.series_id, sorted(waiting)),
            result.c.run_side_id.in_(
                sa.select(run_side.c.id).where(run_side.c.run_id == run_id, run_side.c.side == "head")
            ),
        )
        new = set(connection.scalars(sa.select(result.c.series_id).where(mine)))
        waiting -= new
        for row in read.mappings(connection, _VALUES.where(mine)) if new else ():
            today = names.get((row["suite"], row["case_key"])) or row["case_key"]
            # by another method it may have been measured later
            found.setdefault((row["suite"], today, row["variant"]), _latest({**row, "case_key": today}))
    return [found[key] for key in sorted(found)]


def _runs(number: int) -> sa.Select[int]:
    used = (
        sa.select(job_attempt.c.id)
        .where(job_attempt.c.run_id == run.c.id, job_attempt.c.device_class_id == number)
        .exists()
    )
    newest = run.c.started_us.desc(), run.c.id.desc()
    return sa.select(run.c.id).where(used).order_by(*newest).limit(RUNS)


def _latest(row: Mapping[str, Any]) -> Latest:
    return Latest(
        benchmark=row["benchmark"],
        params=msgspec.json.decode(row["params"], type=dict[str, Scalar]),
        traffic=msgspec.json.decode(row["traffic"], type=Traffic),
        baseline=row["baseline"],
        variants=msgspec.json.decode(row["variants"], type=tuple[str, ...]),
        run_uid=row["run_uid"],
        revision=rows.revision(read.part(row, "revision__"), None).label,
        summary=rows.summary(row),
    )

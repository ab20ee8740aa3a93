"""How far one run is, from the attempts that are stored: what is done, by which card, and what went wrong."""

from collections.abc import Mapping
from typing import Any

import msgspec
import sqlalchemy as sa

from perftrack.errors import UsageError
from perftrack.model import Run, Status
from perftrack.store import attempts, read
from perftrack.store.schema import device, device_class, job_attempt, kernel_case, suite


class CardProgress(msgspec.Struct, frozen=True, kw_only=True):
    """What one card has done of a run."""

    device_class: str
    uuid: str
    node: str
    jobs: int
    busy_s: float
    last_us: int
    """When its newest attempt ended."""


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt that did not end well; another may have done the job since."""

    suite: str
    case: str
    device_class: str
    round: int
    attempt: int
    status: Status
    message: str
    at_us: int


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """Of one run."""

    done: int
    """Jobs (case, device class, round) that need no further attempt."""
    cards: tuple[CardProgress, ...]
    """By device class and UUID."""
    troubles: tuple[Trouble, ...]
    """The newest first."""


_ENDED_US = job_attempt.c.started_us + sa.cast(job_attempt.c.wall_s * 1_000_000, sa.BigInteger)


def progress(connection: sa.Connection, uid: str) -> tuple[Run, Progress]:
    """One run and how far it is; UsageError where there is none."""
    found = read.run_row(connection, uid)
    if found is None:
        raise UsageError(f"there is no run {uid}")
    number, run = found
    mine = job_attempt.c.run_id == number
    return run, Progress(
        done=len(attempts.done(connection, number)),
        cards=tuple(CardProgress(**row) for row in read.mappings(connection, _cards(mine))),
        troubles=tuple(_trouble(row) for row in read.mappings(connection, _troubles(mine))),
    )


def _trouble(row: Mapping[str, Any]) -> Trouble:
    return Trouble(**{**row, "status": Status(row["status"])})  # pyright: ignore[reportArgumentType]


def _cards(mine: sa.ColumnElement[bool]) -> sa.Select[*tuple[Any, ...]]:
    return (
        sa.select(
            device_class.c.name.label("device_class"),
            job_attempt.c.device_uuid.label("uuid"),
            sa.func.max(device.c.node).label("node"),
            sa.func.count().label("jobs"),
            sa.func.sum(job_attempt.c.wall_s).label("busy_s"),
            sa.func.max(_ENDED_US).label("last_us"),
        )
        .join_from(job_attempt, device, job_attempt.c.device_id == device.c.id)
        .join(device_class, job_attempt.c.device_class_id == device_class.c.id)
        .where(mine)
        .group_by(device_class.c.name, job_attempt.c.device_uuid)
        .order_by(device_class.c.name, job_attempt.c.device_uuid)
    )


def _troubles(mine: sa.ColumnElement[bool]) -> sa.Select[*tuple[Any, ...]]:
    return (
        sa.select(
            suite.c.name.label("suite"),
            kernel_case.c.key.label("case"),
            device_class.c.name.label("device_class"),
            job_attempt.c.round,
            job_attempt.c.attempt,
            job_attempt.c.status,
            job_attempt.c.message,
            _ENDED_US.label("at_us"),
        )
        .join_from(job_attempt, kernel_case, job_attempt.c.case_id == kernel_case.c.id)
        .join(suite, kernel_case.c.suite_id == suite.c.id)
        .join(device_class, job_attempt.c.device_class_id == device_class.c.id)
        .where(mine, job_attempt.c.status != Status.OK.value)
        .order_by(job_attempt.c.id.desc())
    )

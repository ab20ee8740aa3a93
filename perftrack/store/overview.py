"""What lists need of many runs and series at once: counts and names, never whole runs."""

from collections.abc import Sequence

import msgspec
import sqlalchemy as sa

from perftrack.judge.value import FLAKY
from perftrack.model import Status
from perftrack.store import aliases, read, wide
from perftrack.store.schema import device_class, finding, job_attempt, kernel_case, result, run, run_side, series, suite
from perftrack.store.value import StoredSummary

_FAULTS = (Status.WRONG.value, Status.FAILED.value, Status.INVALID.value)


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """How many candidates of one run have one verdict on one device class."""

    run_uid: str
    device_class: str
    verdict: str
    """Of a run without a base, the status of the measurement."""
    red: bool
    """They fail the run, but for what people said of them."""
    flaky: bool = False
    """They failed or were wrong in some rounds and leave the run without a verdict."""
    count: int


class SeriesName(msgspec.Struct, frozen=True, kw_only=True):
    """One variant of one case on one device class, by whatever methods it was measured."""

    suite: str
    case: str
    device_class: str
    variant: str
    baseline: str
    ids: tuple[int, ...]
    """Row numbers of its series."""


def statuses(connection: sa.Connection, uids: Sequence[str]) -> list[tuple[str, str, str]]:
    """(run, device class, status) of the results of heads, baselines' too, of the runs `uids`, each once."""
    question = (
        sa.select(run.c.uid, device_class.c.name, wide.STATUS)
        .distinct()
        .join_from(run, run_side, run_side.c.run_id == run.c.id)
        .join(result, result.c.run_side_id == run_side.c.id)
        .join(series, result.c.series_id == series.c.id)
        .join(device_class, series.c.device_class_id == device_class.c.id)
        .where(run.c.uid.in_(uids), run_side.c.side == "head")
    )
    return [(uid, name, status) for uid, name, status in connection.execute(question)]


def tallies(connection: sa.Connection, uids: Sequence[str]) -> list[Tally]:
    """Of the findings of the runs `uids`; of a run without a base, of its measurements."""
    red = sa.or_(
        sa.and_(finding.c.verdict == "slower", finding.c.confirmed == 1),
        sa.and_(finding.c.newly == 1, finding.c.verdict.in_(("failed", "wrong"))),
    )
    flaky = sa.and_(finding.c.verdict == "ambiguous", finding.c.message.startswith(FLAKY))
    compared = (
        sa.select(
            run.c.uid,
            device_class.c.name,
            finding.c.verdict,
            sa.case((red, 1), else_=0).label("red"),
            sa.case((flaky, 1), else_=0).label("flaky"),
            sa.func.count(),
        )
        .join_from(finding, run, finding.c.run_id == run.c.id)
        .join(device_class, finding.c.device_class_id == device_class.c.id)
        .where(run.c.uid.in_(uids))
        .group_by(run.c.uid, device_class.c.name, finding.c.verdict, "red", "flaky")
    )
    fault = sa.case((result.c.fault.in_(_FAULTS), 1), else_=0).label("fault")
    alone = (
        sa.select(run.c.uid, device_class.c.name, wide.STATUS.label("status"), fault, sa.literal(0), sa.func.count())
        .join_from(run, run_side, run_side.c.run_id == run.c.id)
        .join(result, result.c.run_side_id == run_side.c.id)
        .join(series, result.c.series_id == series.c.id)
        .join(device_class, series.c.device_class_id == device_class.c.id)
        .where(run.c.uid.in_(uids), run.c.base_id.is_(None), run_side.c.side == "head")
        .where(series.c.variant != series.c.baseline)
        .group_by(run.c.uid, device_class.c.name, "status", "fault")
    )
    rows = [*connection.execute(compared), *connection.execute(alone)]
    return [
        Tally(run_uid=uid, device_class=name, verdict=verdict, red=bool(is_red), flaky=bool(is_flaky), count=count)
        for uid, name, verdict, is_red, is_flaky, count in rows
    ]


class Lost(msgspec.Struct, frozen=True, kw_only=True):
    """A case of which a run has nothing on a device class, since the machine lost every attempt."""

    run_uid: str
    suite: str
    case: str
    device_class: str
    message: str
    """Of one of the attempts."""


def lost(connection: sa.Connection, uids: Sequence[str]) -> list[Lost]:
    """Of the runs `uids`, by suite and case."""
    kept = sa.func.sum(sa.case((job_attempt.c.status != Status.INFRA.value, 1), else_=0))
    question = (
        sa.select(
            run.c.uid.label("run_uid"),
            suite.c.name.label("suite"),
            kernel_case.c.key.label("case"),
            device_class.c.name.label("device_class"),
            sa.func.max(job_attempt.c.message).label("message"),
        )
        .join_from(job_attempt, run, job_attempt.c.run_id == run.c.id)
        .join(kernel_case, job_attempt.c.case_id == kernel_case.c.id)
        .join(suite, kernel_case.c.suite_id == suite.c.id)
        .join(device_class, job_attempt.c.device_class_id == device_class.c.id)
        .where(run.c.uid.in_(uids))
        .group_by(run.c.uid, suite.c.name, kernel_case.c.key, device_class.c.name)
        .having(kept == 0)
        .order_by(suite.c.name, kernel_case.c.key)
    )
    return [Lost(**row) for row in read.mappings(connection, question)]


def series_names(connection: sa.Connection) -> list[SeriesName]:
    """Every series, those of several methods as one; by suite, case, device class and variant."""
    question = (
        sa.select(
            suite.c.name, kernel_case.c.key, device_class.c.name, series.c.variant, series.c.baseline, series.c.id
        )
        .join_from(series, kernel_case, series.c.case_id == kernel_case.c.id)
        .join(suite, kernel_case.c.suite_id == suite.c.id)
        .join(device_class, series.c.device_class_id == device_class.c.id)
        .order_by(suite.c.name, kernel_case.c.key, device_class.c.name, series.c.variant, series.c.id)
    )
    found: dict[tuple[str, str, str, str], tuple[str, list[int]]] = {}
    for suite_name, key, class_name, variant, baseline, number in connection.execute(question):
        ids = found.setdefault((suite_name, key, class_name, variant), (baseline, []))[1]
        ids.append(number)
    return [
        SeriesName(suite=name, case=key, device_class=device, variant=variant, baseline=baseline, ids=tuple(ids))
        for (name, key, device, variant), (baseline, ids) in found.items()
    ]


def places(connection: sa.Connection, key: str) -> list[tuple[str, str]]:
    """Suite and device class of every candidate's series of the cases shown under a key, each once, in order."""
    question = (
        sa.select(suite.c.name, device_class.c.name)
        .join_from(series, kernel_case, series.c.case_id == kernel_case.c.id)
        .join(suite, kernel_case.c.suite_id == suite.c.id)
        .join(device_class, series.c.device_class_id == device_class.c.id)
        .where(series.c.case_id.in_(aliases.of_key(connection, key)), series.c.variant != series.c.baseline)
        .distinct()
    )
    return sorted((name, class_name) for name, class_name in connection.execute(question))


def points(connection: sa.Connection, numbers: Sequence[int], *, runs: int) -> list[StoredSummary]:
    """Summaries of the series with these row numbers, of the heads of the newest `runs`; in topological order."""
    newest = sa.select(run.c.head_id).order_by(run.c.started_us.desc(), run.c.id.desc()).limit(runs).subquery()
    return read.summaries(
        connection,
        result.c.series_id.in_(numbers),
        result.c.run_side_id.in_(
            sa.select(run_side.c.id).where(
                run_side.c.revision_id.in_(sa.select(newest.c.head_id)), run_side.c.side == "head"
            )
        ),
    )

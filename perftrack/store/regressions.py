"""Regressions in the database: what runs saw of them, what people said, and the way there and back."""

from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa

from perftrack.judge.life import CaseId, Kind, Mark, Regression, Sighting, State
from perftrack.judge.sightings import Seen
from perftrack.model import Verdict
from perftrack.store import aliases, pack, read, rows
from perftrack.store.inserting import insert
from perftrack.store.schema import (
    device_class,
    finding,
    kernel_case,
    mark,
    regression,
    result,
    revision,
    run,
    run_side,
    series,
    setting,
    sighting,
    suite,
)

_AT_ONCE = 1000
"""Keys of cases: a statement takes no more than 65,535 words of PostgreSQL."""

_found = revision.alias("found")
_base = revision.alias("base")
_head = revision.alias("head")

_REGRESSIONS = (
    sa.select(
        *regression.c,
        device_class.c.name.label("device_class"),
        *read.prefixed(_found, "found__"),
        *read.prefixed(_base, "base__"),
    )
    .join_from(regression, device_class, regression.c.device_class_id == device_class.c.id)
    .join(_found, regression.c.found_id == _found.c.id)
    .join(_base, regression.c.base_id == _base.c.id, isouter=True)
    .order_by(regression.c.id)
)


def _of_base(column: sa.Column[int]) -> sa.ScalarSelect[int]:
    """A reference that the base's result in the run of a sighting has; by keys, since the tables are the largest."""
    return (
        sa.select(column)
        .join_from(series, result, result.c.series_id == series.c.id)
        .join(setting, result.c.setting_id == setting.c.id)
        .join(run_side, result.c.run_side_id == run_side.c.id)
        .where(
            series.c.case_id == sighting.c.case_id,
            series.c.device_class_id == regression.c.device_class_id,
            series.c.variant == sighting.c.variant,
            run_side.c.run_id == run.c.id,
            run_side.c.side == "base",
            result.c.time_s.is_not(None),
        )
        .limit(1)
        .scalar_subquery()
    )


_SIGHTINGS = aliases.beside(
    sa.select(
        *(column for column in finding.c if column.name not in {"run_id", "case_id", "device_class_id"}),
        sighting.c.regression_id,
        sighting.c.gone,
        sighting.c.level,
        suite.c.name.label("suite"),
        kernel_case.c.key.label("case_key"),
        aliases.KEY.label("today"),
        device_class.c.name.label("device_class"),
        run.c.uid.label("run_uid"),
        run.c.started_us.label("at_us"),
        *read.prefixed(_head, "head__"),
        _of_base(setting.c.environment_id).label("environment_id"),
        _of_base(series.c.method_id).label("method_id"),
    )
    .join_from(sighting, regression, sighting.c.regression_id == regression.c.id)
    .join(
        finding,
        sa.and_(
            finding.c.run_id == sighting.c.run_id,
            finding.c.case_id == sighting.c.case_id,
            finding.c.device_class_id == regression.c.device_class_id,
            finding.c.variant == sighting.c.variant,
        ),
    )
    .join(kernel_case, sighting.c.case_id == kernel_case.c.id)
    .join(suite, kernel_case.c.suite_id == suite.c.id)
    .join(device_class, regression.c.device_class_id == device_class.c.id)
    .join(run, sighting.c.run_id == run.c.id)
    .join(_head, run.c.head_id == _head.c.id)
)

_MARKS = aliases.beside(
    sa.select(
        *(column for column in mark.c if column.name != "case_id"),
        suite.c.name.label("suite"),
        aliases.KEY.label("case_key"),
    )
    .join_from(mark, kernel_case, mark.c.case_id == kernel_case.c.id)
    .join(suite, kernel_case.c.suite_id == suite.c.id)
    .order_by(mark.c.at_us)
)


def regressions(connection: sa.Connection, *, repo: str | None = None, run_uid: str | None = None) -> list[Regression]:
    """All of them, the oldest first; of one repository, or those of which one run says something.

    Cases and marks have the names of today. That a run no longer had a case that was renamed says nothing.
    """
    question = _REGRESSIONS
    if repo is not None:
        question = question.where(_found.c.repo == repo)
    if run_uid is not None:
        seen = sa.select(sighting.c.regression_id).join(run, sighting.c.run_id == run.c.id).where(run.c.uid == run_uid)
        question = question.where(regression.c.id.in_(seen))
    numbers = question.with_only_columns(regression.c.id).order_by(None)
    sightings: dict[int, list[Sighting]] = {}
    for row in read.mappings(connection, _SIGHTINGS.where(sighting.c.regression_id.in_(numbers))):
        one = _sighting(row)
        if not (one.gone and one.today and one.finding.verdict is Verdict.REMOVED):
            sightings.setdefault(row["regression_id"], []).append(one)
    marks: dict[int, list[Mark]] = {}
    for row in read.mappings(connection, _MARKS.where(mark.c.regression_id.in_(numbers))):
        marks.setdefault(row["regression_id"], []).append(_mark(row))
    return [
        _regression(row, sorted(sightings.get(row["id"], ()), key=_order), marks.get(row["id"], ()))
        for row in read.mappings(connection, question)
    ]


def segments(connection: sa.Connection, run_uid: str) -> dict[tuple[CaseId, str], tuple[int, int]]:
    """Environment and method of the head's side of each (case, device class) that a run has timed."""
    question = (
        sa.select(
            suite.c.name,
            kernel_case.c.key,
            series.c.variant,
            device_class.c.name,
            setting.c.environment_id,
            series.c.method_id,
        )
        .join_from(run, run_side, run_side.c.run_id == run.c.id)
        .join(result, result.c.run_side_id == run_side.c.id)
        .join(setting, result.c.setting_id == setting.c.id)
        .join(series, result.c.series_id == series.c.id)
        .join(kernel_case, series.c.case_id == kernel_case.c.id)
        .join(suite, kernel_case.c.suite_id == suite.c.id)
        .join(device_class, series.c.device_class_id == device_class.c.id)
        .where(run.c.uid == run_uid, run_side.c.side == "head", result.c.time_s.is_not(None))
        .where(setting.c.environment_id.is_not(None))
    )
    return {
        (CaseId(name, key, variant), class_name): (environment_id, method_id)
        for name, key, variant, class_name, environment_id, method_id in connection.execute(question)
    }


def remember(connection: sa.Connection, run_uid: str, seen: Sequence[Seen], *, moved: Iterable[int]) -> None:
    """Replace what the run `run_uid` said of regressions by `seen`; the regressions `moved` are its head's from now on.

    Harmless to repeat: a regression is known by commit, device class and kind.
    """
    header = connection.execute(
        sa.select(run.c.id, run.c.head_id, run.c.base_id, run.c.finished_us, run.c.started_us).where(
            run.c.uid == run_uid
        )
    ).one()
    connection.execute(sa.delete(sighting).where(sighting.c.run_id == header.id))
    for number in moved:
        connection.execute(sa.update(regression).where(regression.c.id == number).values(found_id=header.head_id))
    classes = read.device_class_names(connection)
    begun = {(classes[one.device_class], one.kind) for one in seen if one.regression_id is None}
    fixed = {"found_id": header.head_id, "base_id": header.base_id, "found_us": header.finished_us or header.started_us}
    new = [{"device_class_id": number, "kind": kind.value, **fixed} for number, kind in sorted(begun, key=_worst_first)]
    insert(connection, regression, new, tail="ON CONFLICT DO NOTHING")
    question = sa.select(regression).where(regression.c.found_id == header.head_id)
    here = {(row.device_class_id, row.kind): row.id for row in connection.execute(question)}
    cases = case_numbers(connection, [one.case for one in seen])
    said = [
        {
            "run_id": header.id,
            "regression_id": one.regression_id or here[classes[one.device_class], one.kind.value],
            "case_id": cases[one.case.suite, one.case.case_key],
            "variant": one.case.variant,
            "gone": int(one.gone),
            "level": None if one.level is None else float(one.level),
        }
        for one in seen
    ]
    insert(connection, sighting, said, tail="ON CONFLICT DO NOTHING")


def add_marks(connection: sa.Connection, number: int, marks: Sequence[Mark]) -> None:
    """Store what a person said of the cases of one regression."""
    cases = case_numbers(connection, [one.case for one in marks])
    said = [
        {
            "regression_id": number,
            "case_id": cases[one.case.suite, one.case.case_key],
            "variant": one.case.variant,
            "at_us": one.at_us,
            "state": one.state.value,
            "reason": pack.plain(one.reason),
            "author": pack.plain(one.author),
            "until_us": one.until_us,
            "level": None if one.level is None else float(one.level),
        }
        for one in marks
    ]
    insert(connection, mark, said, tail="ON CONFLICT DO NOTHING")


def case_numbers(connection: sa.Connection, cases: Iterable[CaseId]) -> dict[tuple[str, str], int]:
    """Row numbers of stored cases, by suite and key."""
    keys = list({one.case_key for one in cases})
    question = sa.select(suite.c.name, kernel_case.c.key, kernel_case.c.id).join(
        suite, kernel_case.c.suite_id == suite.c.id
    )
    found: dict[tuple[str, str], int] = {}
    for start in range(0, len(keys), _AT_ONCE):
        some = question.where(kernel_case.c.key.in_(keys[start : start + _AT_ONCE]))
        found |= {(name, key): number for name, key, number in connection.execute(some)}
    return found


def _regression(row: rows.Row, sightings: Sequence[Sighting], marks: Sequence[Mark]) -> Regression:
    found = read.part(row, "found__")
    base = read.part(row, "base__") if row["base_id"] is not None else None
    return Regression(
        id=row["id"],
        repo=found["repo"],
        found=rows.revision(found, None),
        base=rows.revision(base, None) if base else None,
        device_class=row["device_class"],
        kind=Kind(row["kind"]),
        found_us=row["found_us"],
        sightings=tuple(sightings),
        marks=tuple(marks),
    )


def _sighting(row: rows.Row) -> Sighting:
    known = row["environment_id"] is not None
    return Sighting(
        run_uid=row["run_uid"],
        head=rows.revision(read.part(row, "head__"), None),
        at_us=row["at_us"],
        gone=bool(row["gone"]),
        level=row["level"],
        finding=rows.finding(row),
        segment=(row["environment_id"], row["method_id"]) if known else None,
        today="" if row["today"] == row["case_key"] else row["today"],
    )


def _worst_first(begun: tuple[int, Kind]) -> tuple[int, int]:
    return (begun[0], list(Kind).index(begun[1]))


def _order(one: Sighting) -> tuple[Any, ...]:
    return (one.order, one.run_uid, one.case)


def _mark(row: rows.Row) -> Mark:
    return Mark(
        case=CaseId(row["suite"], row["case_key"], row["variant"]),
        state=State(row["state"]),
        reason=row["reason"],
        author=row["author"],
        at_us=row["at_us"],
        until_us=row["until_us"],
        level=row["level"],
    )

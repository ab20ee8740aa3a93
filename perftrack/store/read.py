"""What comes out of the store: the structs that went in, and lists of what there is."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from perftrack.judge.value import Finding
from perftrack.model import Environment, Issue, Run
from perftrack.store import aliases, rows, steps, wide
from perftrack.store.columns import is_one_of
from perftrack.store.schema import (
    declaration,
    device,
    device_class,
    environment,
    finding,
    job_attempt,
    kernel_case,
    method,
    resources,
    result,
    revision,
    run,
    run_side,
    series,
    setting,
    suite,
)
from perftrack.store.value import DeviceUse, RunEntry, StoredRevision, StoredRun, StoredSummary

_head = revision.alias("head")
_base = revision.alias("base")


def columns(table: sa.FromClause, *without: str) -> list[Any]:
    """Columns of a table, but for some."""
    return [column for column in table.c if column.name not in without]


def prefixed(table: sa.FromClause, prefix: str) -> list[Any]:
    """All columns under other names, so that several revisions fit into one row."""
    return [column.label(f"{prefix}{column.name}") for column in table.c]


def part(row: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """What `prefixed` has put into the row, under its own names."""
    return {name.removeprefix(prefix): row[name] for name in row if name.startswith(prefix)}


def mappings(connection: sa.Connection, question: sa.Select[*tuple[Any, ...]]) -> Sequence[Mapping[str, Any]]:
    """Rows by column name."""
    names = [column.name for column in question.selected_columns]
    return [dict(zip(names, row, strict=True)) for row in connection.execute(question)]


_RUNS = (
    sa.select(*columns(run), *prefixed(_head, "head__"), *prefixed(_base, "base__"))
    .join_from(run, _head, run.c.head_id == _head.c.id)
    .join(_base, run.c.base_id == _base.c.id, isouter=True)
)


def _run(row: Mapping[str, Any]) -> Run:
    head = part(row, "head__")
    base = part(row, "base__") if row["base_id"] is not None else None
    return rows.run(
        row,
        head["repo"],
        rows.revision(head, row["head_branch"]),
        rows.revision(base, row["base_branch"]) if base else None,
    )


def run_row(connection: sa.Connection, uid: str) -> tuple[int, Run] | None:
    """The number and the run; None where there is none."""
    found = mappings(connection, _RUNS.where(run.c.uid == uid))
    return (found[0]["id"], _run(found[0])) if found else None


def newest_runs(connection: sa.Connection, *, repo: str | None, prefix: str = "", last: int | None = None) -> list[str]:
    """Uids, the newest first; of those that began together, as one submission, the one that asked for the others."""
    question = sa.select(run.c.uid).order_by(run.c.started_us.desc(), run.c.id).limit(last)
    if prefix:
        question = question.where(run.c.uid.startswith(prefix, autoescape=True))
    if repo is not None:
        question = question.join(_head, run.c.head_id == _head.c.id).where(_head.c.repo == repo)
    return list(connection.scalars(question))


def stored_run(connection: sa.Connection, number: int, of: Run) -> StoredRun:
    """Everything of a run but its samples."""
    jobs = (
        sa.select(job_attempt.c.declaration_id, job_attempt.c.device_id, method.c.document)
        .join_from(job_attempt, method, job_attempt.c.method_id == method.c.id)
        .where(job_attempt.c.run_id == number)
        .distinct()
    )
    used = list(connection.execute(jobs))
    issues: dict[int, Issue] = {row.declaration_id: rows.method(row.document).issue for row in used}
    cases = mappings(connection, _CASES.where(is_one_of(declaration.c.id, list(issues))))
    devices = mappings(connection, _DEVICES.where(is_one_of(device.c.id, list({row.device_id for row in used}))))
    points = summaries(connection, of_run(connection, number))
    return StoredRun(
        run=of,
        cases=[rows.case(row, issues[row["id"]]) for row in cases],
        devices=[rows.device(row) for row in devices],
        summaries=[point.summary for point in sorted(points, key=_case_order)],
        findings=findings(connection, number),
    )


def of_run(connection: sa.Connection, number: int) -> sa.ColumnElement[bool]:
    """The results of one run."""
    return _of_sides(connection, run_side.c.run_id == number)


def of_revisions(connection: sa.Connection, numbers: Sequence[int]) -> sa.ColumnElement[bool]:
    """The results of revisions, by whatever run."""
    return _of_sides(connection, run_side.c.revision_id.in_(numbers))


def _of_sides(connection: sa.Connection, condition: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
    """As numbers: of a question inside of so many joins PostgreSQL makes one to all results."""
    return is_one_of(result.c.run_side_id, list(connection.scalars(sa.select(run_side.c.id).where(condition))))


_CASES = (
    sa.select(*columns(declaration), suite.c.name.label("suite"), kernel_case.c.key)
    .join_from(declaration, kernel_case, declaration.c.case_id == kernel_case.c.id)
    .join(suite, kernel_case.c.suite_id == suite.c.id)
    .order_by(suite.c.name, kernel_case.c.key, declaration.c.id)
)

_DEVICES = (
    sa.select(*columns(device), device_class.c.name.label("device_class"))
    .join_from(device, device_class, device.c.device_class_id == device_class.c.id)
    .order_by(device_class.c.name, device.c.uuid, device.c.id)
)


def findings(connection: sa.Connection, run_id: int, *, today: bool = False) -> list[Finding]:
    """All findings of one run, by suite, case, device class and variant; `today` as for `summaries`."""
    shown = aliases.KEY if today else kernel_case.c.key
    question = (
        sa.select(
            *columns(finding, "run_id", "case_id", "device_class_id"),
            suite.c.name.label("suite"),
            shown.label("case_key"),
            device_class.c.name.label("device_class"),
        )
        .join_from(finding, kernel_case, finding.c.case_id == kernel_case.c.id)
        .join(suite, kernel_case.c.suite_id == suite.c.id)
        .join(device_class, finding.c.device_class_id == device_class.c.id)
        .where(finding.c.run_id == run_id)
    )
    question = aliases.beside(question) if today else question
    found = [rows.finding(row) for row in mappings(connection, question)]
    return sorted(found, key=lambda one: (one.suite, one.case_key, one.device_class, one.variant))


SUMMARIES = steps.beside(
    wide.beside(
        sa.select(
            *wide.columns(),
            *(column.label(name) for name, column in steps.VECTORISATION.items()),
            *columns(resources, "id", "digest"),
            *prefixed(revision, "revision__"),
            suite.c.name.label("suite"),
            kernel_case.c.key.label("case_key"),
            device_class.c.name.label("device_class"),
            series.c.variant,
            series.c.baseline,
            method.c.digest.label("method_digest"),
            declaration.c.min_effect,
            device.c.uuid.label("device_uuid"),
            environment.c.digest.label("environment_digest"),
            run.c.uid.label("run_uid"),
            run.c.started_us.label("measured_us"),
            run.c.head_branch,
            run.c.base_branch,
        )
        .join_from(result, series, result.c.series_id == series.c.id)
        .join(kernel_case, series.c.case_id == kernel_case.c.id)
        .join(suite, kernel_case.c.suite_id == suite.c.id)
        .join(device_class, series.c.device_class_id == device_class.c.id)
        .join(method, series.c.method_id == method.c.id)
        .join(run_side, result.c.run_side_id == run_side.c.id)
        .join(revision, run_side.c.revision_id == revision.c.id)
        .join(run, run_side.c.run_id == run.c.id)
        .join(setting, result.c.setting_id == setting.c.id)
        .join(resources, setting.c.resources_id == resources.c.id)
        .join(declaration, setting.c.declaration_id == declaration.c.id)
        .join(device, setting.c.device_id == device.c.id, isouter=True)
        .join(environment, setting.c.environment_id == environment.c.id, isouter=True)
    )
)


def summaries(connection: sa.Connection, *where: sa.ColumnElement[bool], today: bool = False) -> list[StoredSummary]:
    """Stored summaries in topological order, then by run, suite, case, device class, variant and side.

    `today`: renamed cases have their names of today, not those of their run.
    """
    names = aliases.names(connection) if today else {}
    revisions_met: dict[tuple[int, str | None], StoredRevision] = {}
    found = [_summary(row, names, revisions_met) for row in mappings(connection, SUMMARIES.where(*where))]
    return sorted(found, key=_summary_order)


def of_newest(last: int, *where: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
    """Restricts a question to the newest rows, in topological order, of each series among those that `where` takes."""
    newest_first = (
        revision.c.position.is_(None).desc(),
        revision.c.position.desc(),
        revision.c.committed_us.desc(),
        revision.c.id.desc(),
        run.c.started_us.desc(),
        run.c.uid.desc(),
        run_side.c.side,
    )
    key = (result.c.series_id, result.c.run_side_id)
    place = sa.func.row_number().over(partition_by=result.c.series_id, order_by=newest_first)
    placed = (
        sa.select(*key, place.label("place"))
        .join_from(result, series, result.c.series_id == series.c.id)
        .join(kernel_case, series.c.case_id == kernel_case.c.id)
        .join(suite, kernel_case.c.suite_id == suite.c.id)
        .join(device_class, series.c.device_class_id == device_class.c.id)
        .join(run_side, result.c.run_side_id == run_side.c.id)
        .join(revision, run_side.c.revision_id == revision.c.id)
        .join(run, run_side.c.run_id == run.c.id)
        .where(*where)
        .subquery()
    )
    newest = sa.select(*(placed.c[column.name] for column in key)).where(placed.c.place <= last)
    return sa.tuple_(*key).in_(newest)


def _summary(
    row: Mapping[str, Any],
    names: Mapping[tuple[str, str], str],
    met: dict[tuple[int, str | None], StoredRevision],
) -> StoredSummary:
    """`met` are revisions that were made already: thousands of rows may be of one."""
    branch = row["head_branch"] if row["side"] == "head" else row["base_branch"]
    key = (row["revision__id"], branch)
    if key not in met:
        met[key] = _stored_revision(part(row, "revision__"), branch)
    return StoredSummary(
        revision=met[key],
        run_uid=row["run_uid"],
        measured_us=row["measured_us"],
        baseline=row["baseline"],
        method_digest=row["method_digest"],
        min_effect=row["min_effect"],
        summary=rows.summary({**row, "case_key": names.get((row["suite"], row["case_key"]), row["case_key"])}),
    )


def _summary_order(point: StoredSummary) -> tuple[Any, ...]:
    return (*point.revision.order, point.measured_us, point.run_uid, *_case_order(point))


def _case_order(point: StoredSummary) -> tuple[Any, ...]:
    """Head before base, as everywhere."""
    one = point.summary
    return (one.suite, one.case_key, one.device_class, one.variant, one.side != "head")


def _stored_revision(row: Mapping[str, Any], branch: str | None = None) -> StoredRevision:
    return StoredRevision(id=row["id"], repo=row["repo"], revision=rows.revision(row, branch))


def revisions(connection: sa.Connection, repo: str | None, prefix: str) -> list[StoredRevision]:
    """Those whose commit, or whose dirty tree, begins so; in topological order."""
    matches = revision.c.sha.startswith(prefix, autoescape=True) | (
        (revision.c.dirty == 1) & revision.c.tree.startswith(prefix, autoescape=True)
    )
    question = sa.select(revision).where(matches)
    if repo is not None:
        question = question.where(revision.c.repo == repo)
    return sorted((_stored_revision(row) for row in mappings(connection, question)), key=lambda one: one.order)


def revisions_of(connection: sa.Connection, numbers: sa.Select[*tuple[Any, ...]]) -> list[StoredRevision]:
    """Those whose row numbers a query gives; in topological order."""
    found = mappings(connection, sa.select(revision).where(revision.c.id.in_(numbers)))
    return sorted((_stored_revision(row) for row in found), key=lambda one: one.order)


def device_class_names(connection: sa.Connection) -> dict[str, int]:
    """Every stored device class."""
    return {name: number for number, name in connection.execute(sa.select(device_class.c.id, device_class.c.name))}


def device_uses(connection: sa.Connection) -> list[DeviceUse]:
    """Every device of the newest description, by class, UUID."""
    counted = sa.select(job_attempt.c.device_id, sa.func.count().label("jobs")).group_by(job_attempt.c.device_id)
    jobs = {row.device_id: row.jobs for row in connection.execute(counted)}
    # the index has each device's attempts in their order: their newest is its last entry
    mine = sa.select(job_attempt.c.id).where(job_attempt.c.device_id == device.c.id).order_by(job_attempt.c.id.desc())
    told = mine.where(job_attempt.c.environment_id.is_not(None)).limit(1).correlate(device).scalar_subquery()
    newest = (
        sa.select(device.c.id, told.label("told_id"), job_attempt.c.started_us)
        .join_from(device, job_attempt, job_attempt.c.id == mine.limit(1).correlate(device).scalar_subquery())
        .where(is_one_of(device.c.id, list(jobs)))
    )
    last = {row.id: row for row in connection.execute(newest)}
    environments = _environments_of(connection, [row.told_id for row in last.values()])
    return [
        DeviceUse(
            device=rows.device(row),
            jobs=jobs[row["id"]],
            last_us=last[row["id"]].started_us,
            environment=environments.get(last[row["id"]].told_id),
        )
        for row in mappings(connection, _DEVICES)
        if row["id"] in last
    ]


def _environments_of(connection: sa.Connection, attempts: Iterable[int | None]) -> dict[int, Environment]:
    question = (
        sa.select(job_attempt.c.id, environment.c.entries)
        .join(environment, job_attempt.c.environment_id == environment.c.id)
        .where(is_one_of(job_attempt.c.id, [number for number in attempts if number is not None]))
    )
    return {number: rows.environment(entries) for number, entries in connection.execute(question)}


def run_count(connection: sa.Connection) -> int:
    """How many runs there are."""
    return connection.execute(sa.select(sa.func.count()).select_from(run)).scalar_one()


def run_entries(
    connection: sa.Connection, *, repo: str | None, last: int | None, head: int | None = None, skip: int = 0
) -> list[RunEntry]:
    """The newest runs, the newest first, but for the first `skip`; of one repository, of one head."""
    question = _RUNS.order_by(run.c.started_us.desc(), run.c.id.desc()).limit(last).offset(skip)
    if repo is not None:
        question = question.where(_head.c.repo == repo)
    if head is not None:
        question = question.where(run.c.head_id == head)
    found = mappings(connection, question)
    numbers = [row["id"] for row in found]
    counts = sa.select(job_attempt.c.run_id, sa.func.count()).group_by(job_attempt.c.run_id)
    attempts = {row[0]: row[1] for row in connection.execute(counts.where(is_one_of(job_attempt.c.run_id, numbers)))}
    verdicts: dict[int, dict[str, int]] = {}
    tally = sa.select(finding.c.run_id, finding.c.verdict, sa.func.count()).group_by(
        finding.c.run_id, finding.c.verdict
    )
    for number, verdict, count in connection.execute(tally.where(is_one_of(finding.c.run_id, numbers))):
        verdicts.setdefault(number, {})[verdict] = count
    return [
        RunEntry(run=_run(row), jobs=attempts.get(row["id"], 0), verdicts=verdicts.get(row["id"], {})) for row in found
    ]

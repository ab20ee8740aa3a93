"""Which results are asked for: filters to conditions on the key of `result` alone, all of them numbers of rows."""

from collections.abc import Sequence
from typing import Any, TypedDict

import sqlalchemy as sa

from perftrack.store import aliases, glob
from perftrack.store.columns import is_among, is_one_of
from perftrack.store.schema import device_class, kernel_case, result, revision, run, run_side, series, suite
from perftrack.store.store import Store
from perftrack.store.written import RESULTS, ROWS, conditions, filled

Where = list[sa.ColumnElement[bool]]

BRANCH = sa.case((run_side.c.side == "head", run.c.head_branch), else_=run.c.base_branch)
"""That which a side of a run was measured on."""

_AT_ONCE = 256
"""Places in the history that are looked through first for revisions with a result; the next step takes twice that."""

_MANY_SIDES = 16
_BY_SERIES = result.c.series_id.in_(sa.select(series.c.id))
"""Always so. By it SQLite goes from series to series, each of which lies together, where it would look up one result
after the other: for many sides a quarter of the time.
"""


class Filters(TypedDict, total=False):
    """Which results; None, or left out, is all. The first five take patterns with * and ?."""

    case: str | None
    suite: str | None
    device: str | None
    """Device class."""
    variant: str | None
    branch: str | None
    since: str | None
    """First digits of a commit, which is included."""
    last: int | None
    """So many of the newest commits that have a result among the selected."""
    repo: str | None
    run: str | None
    """First digits of a run's id, or `latest`."""


def where(store: Store, filters: Filters) -> Where:
    """The conditions; UsageError where a commit or a run is unknown."""
    return among(store, filters, chosen_series(store, filters))


def among(store: Store, filters: Filters, chosen: Sequence[int] | None) -> Where:
    """The same where the series are known that the filters leave."""
    of_series: Where = [] if chosen is None else [is_one_of(result.c.series_id, chosen)]
    found = [*of_series, *_of_runs(store, filters)]
    since, last, repo = filters.get("since"), filters.get("last"), filters.get("repo")
    if since is not None or last is not None or repo is not None:
        sides, there = _sides_of_revisions(store, found, since=since, last=last, repo=repo)
        found += _of_numbers(sides, there)
        if chosen is None and _MANY_SIDES <= len(sides) < there and store.dialect.name == "sqlite":
            found.append(_BY_SERIES)
    return found


def chosen_series(store: Store, filters: Filters) -> list[int] | None:
    """Numbers of the series that the filters leave; None where that is all of them."""
    conditions: Where = []
    if (case := filters.get("case")) is not None:
        conditions.append(is_one_of(series.c.case_id, store.read(lambda connection: aliases.numbers(connection, case))))
    for name, column, there in (
        ("suite", suite.c.name, sa.select(suite.c.name)),
        ("device", device_class.c.name, sa.select(device_class.c.name)),
        ("variant", series.c.variant, sa.select(series.c.variant).distinct()),
    ):
        if (pattern := filters.get(name)) is not None:
            conditions.append(column.in_(_names(store, there, str(pattern))))
    if not conditions:
        return None
    question = _SERIES.where(*conditions)
    return store.read(lambda connection: list(connection.scalars(question)))


_SERIES = (
    sa.select(series.c.id)
    .join(kernel_case, series.c.case_id == kernel_case.c.id)
    .join(suite, kernel_case.c.suite_id == suite.c.id)
    .join(device_class, series.c.device_class_id == device_class.c.id)
)


def _names(store: Store, there: sa.Select[*tuple[Any, ...]] | sa.CompoundSelect[Any], pattern: str) -> list[str]:
    if not {"*", "?"} & set(pattern):
        return [pattern]
    return glob.matching(pattern, store.read(lambda connection: [name for name in connection.scalars(there) if name]))


def _of_runs(store: Store, filters: Filters) -> Where:
    conditions: Where = []
    if (pattern := filters.get("branch")) is not None:
        branches = sa.union(sa.select(run.c.head_branch), sa.select(run.c.base_branch))
        names = _names(store, branches, str(pattern))
        conditions += _of_sides(store, BRANCH.in_(names))
    if (text := filters.get("run")) is not None:
        uid = store.find_run(text)
        number = store.read(lambda connection: connection.execute(sa.select(run.c.id).where(run.c.uid == uid))).scalar()
        conditions += _of_sides(store, run_side.c.run_id == number)
    return conditions


def _of_sides(store: Store, condition: sa.ColumnElement[bool]) -> Where:
    """The results of the sides of runs that fit: no condition where all do."""
    return _of_numbers(*_sides(store, condition))


def _sides(store: Store, condition: sa.ColumnElement[bool]) -> tuple[list[int], int]:
    """Those that fit, and how many there are of all."""
    question = sa.select(run_side.c.id, _ALL_SIDES).join(run, run_side.c.run_id == run.c.id).where(condition)
    rows = store.read(lambda connection: connection.execute(question).all())
    return [row[0] for row in rows], rows[0][1] if rows else 0


def _of_numbers(sides: Sequence[int], there: int) -> Where:
    """The results of these sides, of so many that are there."""
    return [] if sides and len(sides) == there else [is_among(result.c.run_side_id, sorted(sides))]


def of_revisions(store: Store, numbers: Sequence[int]) -> Where:
    """The results of revisions."""
    return _of_sides(store, is_one_of(run_side.c.revision_id, numbers))


def _sides_of_revisions(
    store: Store, chosen: Where, *, since: str | None, last: int | None, repo: str | None
) -> tuple[list[int], int]:
    """The sides of these revisions, and how many sides there are of all."""
    asked: Where = [] if repo is None else [revision.c.repo == repo]
    if since is not None:
        first = store.find_revision(repo, since).order
        asked.append(sa.tuple_(*_ORDER) >= sa.tuple_(int(first[0]), *first[1:]))
    if last is not None:
        found, there = newest_sides(store, chosen, asked, last)
        return [side for sides in found.values() for side in sides], there
    return _sides(store, run_side.c.revision_id.in_(sa.select(revision.c.id).where(*asked)))


_ORDER = (
    sa.case((revision.c.position.is_(None), 1), else_=0),
    sa.func.coalesce(revision.c.position, 0),
    revision.c.committed_us,
    revision.c.id,
)
"""Topological, as `StoredRevision.order` has it."""
_NEWEST_FIRST = [part.desc() for part in _ORDER]

_SIDES_WITH_RESULTS = (
    sa.select(run_side.c.revision_id, run_side.c.id)
    .join(revision, run_side.c.revision_id == revision.c.id)
    .where(ROWS, sa.exists().where(result.c.run_side_id == run_side.c.id, RESULTS))
    .order_by(*_NEWEST_FIRST)
)

_ALL_SIDES = sa.select(sa.func.count()).select_from(run_side).scalar_subquery()
_EXTENT = sa.select(sa.select(sa.func.max(revision.c.position)).where(ROWS).scalar_subquery(), _ALL_SIDES)


def newest_sides(store: Store, chosen: Where, asked: Where, last: int) -> tuple[dict[int, list[int]], int]:
    """Of the last revisions that have a result among the chosen: their sides with one; and how many sides there are.

    The newest revision comes first. Positions are looked through from the greatest on, so that nobody has to sort all.
    """
    of_all, with_results = conditions(store.dialect, asked), conditions(store.dialect, chosen)
    extent = filled(store.dialect, _EXTENT, of_all)
    greatest, there = store.read(lambda connection: connection.exec_driver_sql(extent).one())
    found: dict[int, list[int]] = {}
    or_unknown = " OR revision.position IS NULL"
    upper, size = -1 if greatest is None else greatest, max(last, _AT_ONCE)
    while True:
        placed = f"(revision.position BETWEEN {upper - size + 1} AND {upper}{or_unknown})"
        text = filled(store.dialect, _SIDES_WITH_RESULTS, f"{of_all} AND {placed}", with_results)
        for number, side in store.read(lambda connection, text=text: connection.exec_driver_sql(text).all()):
            if number in found or len(found) < last:
                found.setdefault(number, []).append(side)
        upper, size, or_unknown = upper - size, 2 * size, ""
        if len(found) >= last or upper < 0:
            return found, there

"""Which results are asked for: filters to conditions on the key of `result` alone, all of them numbers of rows."""

from collections.abc import Iterable, Sequence
from typing import Any, TypedDict

import sqlalchemy as sa

from perftrack.store import aliases, glob
from perftrack.store.columns import is_one_of
from perftrack.store.schema import device_class, kernel_case, result, revision, run, run_side, series, suite
from perftrack.store.store import Store

Where = list[sa.ColumnElement[bool]]

BRANCH = sa.case((run_side.c.side == "head", run.c.head_branch), else_=run.c.base_branch)
"""That which a side of a run was measured on."""

_AT_ONCE = 256
"""Newest revisions that are asked first whether they have a result; the next step takes twice as many."""


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
    found = [*_of_series(store, filters), *_of_runs(store, filters)]
    since, last, repo = filters.get("since"), filters.get("last"), filters.get("repo")
    if since is not None or last is not None or repo is not None:
        found += _of_revisions(store, found, since=since, last=last, repo=repo)
    return found


def _of_series(store: Store, filters: Filters) -> Where:
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
        return []
    question = (
        sa.select(series.c.id)
        .join(kernel_case, series.c.case_id == kernel_case.c.id)
        .join(suite, kernel_case.c.suite_id == suite.c.id)
        .join(device_class, series.c.device_class_id == device_class.c.id)
        .where(*conditions)
    )
    return [is_one_of(result.c.series_id, store.read(lambda connection: list(connection.scalars(question))))]


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
    all_of_them = sa.select(sa.func.count()).select_from(run_side).scalar_subquery()
    question = sa.select(run_side.c.id, all_of_them).join(run, run_side.c.run_id == run.c.id).where(condition)
    rows = store.read(lambda connection: connection.execute(question).all())
    numbers = sorted(row[0] for row in rows)
    if not rows or rows[0][1] != len(rows):
        return [_among(result.c.run_side_id, numbers)]
    return []


def _among(column: sa.Column[int], numbers: Sequence[int]) -> sa.ColumnElement[bool]:
    """One of these, in order: a range but for its holes where most are in it, which is read in one go."""
    if numbers and numbers[-1] - numbers[0] < 2 * len(numbers):
        holes = sorted(set(range(numbers[0], numbers[-1])).difference(numbers))
        within = column.between(sa.literal_column(str(numbers[0])), sa.literal_column(str(numbers[-1])))
        return sa.and_(within, ~is_one_of(column, holes)) if holes else within
    return is_one_of(column, numbers)


def of_revisions(store: Store, numbers: Sequence[int]) -> Where:
    """The results of revisions."""
    return _of_sides(store, is_one_of(run_side.c.revision_id, numbers))


def _of_revisions(store: Store, chosen: Where, *, since: str | None, last: int | None, repo: str | None) -> Where:
    asked: Where = [] if repo is None else [revision.c.repo == repo]
    if since is not None:
        first = store.find_revision(repo, since).order
        asked.append(sa.tuple_(*_ORDER) >= sa.tuple_(int(first[0]), *first[1:]))
    if last is not None:
        return _of_sides(store, is_one_of(run_side.c.revision_id, _newest(store, chosen, asked, last)))
    return _of_sides(store, run_side.c.revision_id.in_(sa.select(revision.c.id).where(*asked)))


_ORDER = (
    sa.case((revision.c.position.is_(None), 1), else_=0),
    sa.func.coalesce(revision.c.position, 0),
    revision.c.committed_us,
    revision.c.id,
)
"""Topological, as `StoredRevision.order` has it."""


def newest_revisions(store: Store, asked: Where, *, skip: int, count: int) -> list[int]:
    """The newest first, but for some of them."""
    question = sa.select(revision.c.id).where(*asked).order_by(*(part.desc() for part in _ORDER))
    return store.read(lambda connection: list(connection.scalars(question.offset(skip).limit(count))))


def _newest(store: Store, chosen: Where, asked: Where, last: int) -> list[int]:
    """The last of these revisions that have a result among the chosen: the newest are asked first."""
    found: list[int] = []
    start, size = 0, max(last, _AT_ONCE)
    while len(found) < last:
        some = newest_revisions(store, asked, skip=start, count=size)
        there = set(_with_results(store, chosen, some))
        found += [number for number in some if number in there]
        if len(some) < size:
            break
        start, size = start + size, 2 * size
    return found[:last]


def _with_results(store: Store, chosen: Where, numbers: Sequence[int]) -> Iterable[int]:
    has_one = sa.exists().where(result.c.run_side_id == run_side.c.id, *chosen)
    question = sa.select(run_side.c.revision_id).where(is_one_of(run_side.c.revision_id, numbers), has_one)
    return store.read(lambda connection: list(connection.scalars(question)))

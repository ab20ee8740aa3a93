"""Which results are asked for: filters to conditions on the table `result` alone, all of them numbers of rows."""

from collections.abc import Iterable, Sequence
from typing import Any, TypedDict

import sqlalchemy as sa

from perftrack.store import aliases, glob, read
from perftrack.store.columns import is_one_of
from perftrack.store.schema import device_class, kernel_case, result, revision, run, series, suite
from perftrack.store.store import Store

Where = list[sa.ColumnElement[bool]]

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
        heads, head_ids = _runs_of(store, run.c.head_branch.in_(names), run.c.head_id)
        bases, base_ids = _runs_of(store, run.c.base_branch.in_(names), run.c.base_id)
        of_head = sa.and_(result.c.side == "head", is_one_of(result.c.run_id, heads))
        of_base = sa.and_(result.c.side == "base", is_one_of(result.c.run_id, bases))
        conditions += [of_head | of_base, is_one_of(result.c.revision_id, sorted({*head_ids, *base_ids}))]
    if (text := filters.get("run")) is not None:
        uid = store.find_run(text)
        number = store.read(lambda connection: connection.execute(sa.select(run.c.id).where(run.c.uid == uid))).scalar()
        conditions += [result.c.run_id == number, read.of_run(number or 0)]
    return conditions


def _runs_of(
    store: Store, condition: sa.ColumnElement[bool], revision_id: sa.Column[int]
) -> tuple[list[int], list[int]]:
    """Numbers of runs and of their revisions."""
    question = sa.select(run.c.id, revision_id).where(condition, revision_id.is_not(None))
    found = store.read(lambda connection: connection.execute(question).all())
    return [row[0] for row in found], [row[1] for row in found]


def _of_revisions(store: Store, chosen: Where, *, since: str | None, last: int | None, repo: str | None) -> Where:
    known = in_order(store)
    numbers = [number for number, of, _ in known if repo in {None, of}]
    if since is not None:
        first = store.find_revision(repo, since).order
        later = {number for number, _, order in known if order >= first}
        numbers = [number for number in numbers if number in later]
    if last is not None:
        numbers = _newest(store, chosen, numbers, last)
    return [] if len(numbers) == len(known) else [is_one_of(result.c.revision_id, numbers)]


def in_order(store: Store) -> list[tuple[int, str, tuple[bool, int, int, int]]]:
    """Number, repository and place of every revision, in topological order."""
    question = sa.select(revision.c.id, revision.c.repo, revision.c.position, revision.c.committed_us)
    rows = store.read(lambda connection: connection.execute(question).all())
    placed = [(row[0], row[1], (row[2] is None, row[2] or 0, row[3], row[0])) for row in rows]
    return sorted(placed, key=lambda one: one[2])


def _newest(store: Store, chosen: Where, numbers: Sequence[int], last: int) -> list[int]:
    """The last of these revisions that have a result among the chosen: the newest are asked first."""
    found: list[int] = []
    end, size = len(numbers), max(last, _AT_ONCE)
    while end > 0 and len(found) < last:
        some = numbers[max(0, end - size) : end]
        there = set(_with_results(store, chosen, some))
        found = [number for number in some if number in there] + found
        end, size = end - len(some), 2 * size
    return found[-last:] if last > 0 else []


def _with_results(store: Store, chosen: Where, numbers: Sequence[int]) -> Iterable[int]:
    has_one = sa.exists().where(result.c.revision_id == revision.c.id, *chosen)
    question = sa.select(revision.c.id).where(is_one_of(revision.c.id, numbers), has_one)
    return store.read(lambda connection: list(connection.scalars(question)))

"""The small tables that hold every text once: row numbers by natural key.

First the cache, then SELECT, and only for what is missing INSERT … ON CONFLICT DO NOTHING in sorted order
(writers that overlap would deadlock otherwise, and an insert that does nothing still burns a number on
PostgreSQL), then SELECT again. This is a transaction of its own: what it leaves behind when the caller's
fails is harmless, and what it found is safe to remember.
"""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import sqlalchemy as sa

from perftrack.model import Case, Device, Environment, Method, Resources, Revision, digest
from perftrack.store import pack, rows
from perftrack.store.door import Door
from perftrack.store.inserting import insert_statement
from perftrack.store.narrow import EXTENT, SETTING
from perftrack.store.schema import (
    declaration,
    device,
    device_class,
    environment,
    extent,
    kernel_case,
    method,
    resources,
    revision,
    run_side,
    series,
    setting,
    suite,
)

Key = tuple[Any, ...]
_CHUNK = 500
"""Keys, or rows, in one statement: a dozen columns of them stay well below the 32 766 values that SQLite can bind."""
_REMEMBERED = 20_000
"""Rows a table: what has more is forgotten before the next look-up, so that a long import needs no more memory."""


class SeriesKey(NamedTuple):
    """What a series is known by."""

    case_id: int
    device_class_id: int
    variant: str
    baseline: str
    method_id: int

    @property
    def of_baseline(self) -> "SeriesKey":
        """That of the baseline variant beside it."""
        return SeriesKey(self.case_id, self.device_class_id, self.baseline, self.baseline, self.method_id)


def insert_new(
    connection: sa.Connection, table: sa.Table, names: Sequence[str], values: Sequence[Key], *, key: int
) -> dict[Key, int]:
    """INSERT rows, but for those that are there by their key, the first `key` columns; the numbers of the new ones."""
    if not values:
        return {}
    if connection.dialect.name == "sqlite":
        return _insert_numbered(connection, table, names, values, key)
    marks = f"({', '.join(['%s'] * len(names))})"
    into = f"INSERT INTO {table.name} ({', '.join(names)}) VALUES"
    tail = f"ON CONFLICT DO NOTHING RETURNING id, {', '.join(names[:key])}"
    found: dict[Key, int] = {}
    for start in range(0, len(values), _CHUNK):
        some = values[start : start + _CHUNK]
        bound = tuple(itertools.chain.from_iterable(some))
        for number, *each in connection.exec_driver_sql(f"{into} {', '.join([marks] * len(some))} {tail}", bound):
            found[tuple(each)] = number
    return found


def _insert_numbered(
    connection: sa.Connection, table: sa.Table, names: Sequence[str], values: Sequence[Key], key: int
) -> dict[Key, int]:
    """Nobody else writes to the file now: the next numbers are known, and no row need be asked for its own."""
    next_one = f"SELECT coalesce(max(id), 0) + 1 FROM {table.name}"  # noqa: S608 (our own names)
    first = connection.exec_driver_sql(next_one).scalar_one()
    statement = insert_statement(connection, table, ("id", *names), "ON CONFLICT DO NOTHING")
    given = [(number, *row) for number, row in enumerate(values, first)]
    made = connection.exec_driver_sql(statement, given).rowcount
    numbers = {row[:key]: number for number, row in enumerate(values, first)}
    if made == len(values):
        return numbers
    there = _select(connection, table, names[:key], list(numbers))
    return {each: number for each, number in numbers.items() if there[each] == number}


class Dimensions:
    """Row numbers by natural key, remembered as long as a table has not too many."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._known: defaultdict[str, dict[Key, int]] = defaultdict(dict)
        """By table."""
        self._settings: dict[Key, int] = {}
        """By what is in a row instead of its digest."""

    def suites(self, names: Iterable[str]) -> dict[str, int]:
        """By name."""
        return self._named(suite, names)

    def device_classes(self, names: Iterable[str]) -> dict[str, int]:
        """By name."""
        return self._named(device_class, names)

    def cases(self, keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], int]:
        """By suite and case key."""
        wanted = set(keys)
        suites = self.suites({name for name, _ in wanted})
        found = self._find(kernel_case, ("suite_id", "key"), 2, ((suites[name], key) for name, key in wanted))
        return {(name, key): found[suites[name], key] for name, key in wanted}

    def declarations(self, cases: Sequence[Case]) -> list[tuple[int, int]]:
        """Of each case, as a tree declares it, in its place: the numbers of its identity and of this declaration."""
        numbers = self.cases((case.suite, case.key) for case in cases)
        digests = [case.digest for case in cases]
        identities = [numbers[case.suite, case.key] for case in cases]
        told = rows.case_columns(cases)
        wanted = zip(digests, identities, *told.values(), strict=True)
        found = self._find(declaration, ("digest", "case_id", *told), 1, wanted)
        return [(case_id, found[text,]) for case_id, text in zip(identities, digests, strict=True)]

    def device(self, card: Device) -> tuple[int, int]:
        """The numbers of its class and of itself."""
        class_id = self.device_classes([card.device_class])[card.device_class]
        return class_id, self._one(device, digest(card), {"device_class_id": class_id, **rows.device_row(card)})

    def environment(self, of: Environment | None) -> int | None:
        """None for none."""
        return None if of is None else self._one(environment, of.digest, {"entries": pack.json_text(of.entries)})

    def method(self, used: Method) -> int:
        """By its digest."""
        return self._one(method, used.digest, {"name": used.name, "document": pack.json_text(used)})

    def resources(self, used: Iterable[Resources]) -> dict[Resources, int]:
        """Equal compiled code has one number."""
        digests = {one: digest(one) for one in set(used)}
        told = rows.columns(list(digests), frozenset())
        found = self._find(resources, ("digest", *told), 1, zip(digests.values(), *told.values(), strict=True))
        return {one: found[text,] for one, text in digests.items()}

    def revision(self, repo: str, of: Revision) -> int:
        """What a shallow clone could not know of it is filled in by a later one."""
        row = {"repo": repo, **rows.revision_row(of)}
        key = ("repo", "sha", "tree", "dirty")
        number = self._find_row(revision, key, row)
        later = {name: row[name] for name in ("position", "parent_sha") if row[name] is not None}
        unknown = [revision.c[name].is_(None) for name in later]
        if unknown:
            filled = {name: sa.func.coalesce(revision.c[name], value) for name, value in later.items()}
            change = sa.update(revision).where(revision.c.id == number, sa.or_(*unknown)).values(filled)
            self._door.write(lambda connection: connection.execute(change))
        return number

    def series(self, wanted: Iterable[SeriesKey]) -> Mapping[Key, int]:
        """Of at least these, by key."""
        return self._find(series, SeriesKey._fields, len(SeriesKey._fields), wanted)

    def run_sides(self, run_id: int, revisions: Mapping[str, int]) -> dict[str, int]:
        """By side; each is of one revision."""
        wanted = ((run_id, side, number) for side, number in revisions.items())
        found = self._find(run_side, ("run_id", "side", "revision_id"), 2, wanted)
        return {side: found[run_id, side] for side in revisions}

    def settings(self, wanted: Sequence[Key]) -> list[int]:
        """Of each in its place, which has the columns `narrow.SETTING`."""
        known = self._settings = self._settings if len(self._settings) < _REMEMBERED else {}
        new = {each: digest(dict(zip(SETTING, each, strict=True))) for each in set(wanted) if each not in known}
        found = self._find(setting, ("digest", *SETTING), 1, ((text, *each) for each, text in new.items()))
        known |= {each: found[text,] for each, text in new.items()}
        return [known[each] for each in wanted]

    def extents(self, wanted: Sequence[Key]) -> list[int]:
        """Of each in its place, which has the columns `narrow.EXTENT`."""
        found = self._find(extent, EXTENT, len(EXTENT), wanted)
        return [found[each] for each in wanted]

    def _named(self, table: sa.Table, names: Iterable[str]) -> dict[str, int]:
        wanted = set(names)
        found = self._find(table, ("name",), 1, ((name,) for name in wanted))
        return {name: found[name,] for name in wanted}

    def _one(self, table: sa.Table, text: str, values: Mapping[str, Any]) -> int:
        return self._find_row(table, ("digest",), {"digest": text, **values})

    def _find_row(self, table: sa.Table, key: tuple[str, ...], row: Mapping[str, Any]) -> int:
        """Of one row, which has the columns of its key among others."""
        ordered = {**{name: row[name] for name in key}, **row}
        values = tuple(ordered.values())
        return self._find(table, tuple(ordered), len(key), [values])[values[: len(key)]]

    def _find(self, table: sa.Table, names: Sequence[str], key: int, wanted: Iterable[Key]) -> dict[Key, int]:
        """The numbers of at least the wanted rows, by the first `key` of the columns `names`."""
        if len(self._known[table.name]) >= _REMEMBERED:
            self._known[table.name] = {}
        known = self._known[table.name]
        missing = {row[:key]: row for row in wanted if row[:key] not in known}
        if missing:
            known |= self._door.read(lambda connection: _select(connection, table, names[:key], list(missing)))
            new = [row for each, row in sorted(missing.items(), key=itemgetter(0)) if each not in known]
            if new:

                def work(connection: sa.Connection) -> dict[Key, int]:
                    made = insert_new(connection, table, names, new, key=key)
                    others = [row[:key] for row in new if row[:key] not in made]
                    return made | _select(connection, table, names[:key], others)

                known |= self._door.write(work)
        return known


def _select(connection: sa.Connection, table: sa.Table, key: Sequence[str], wanted: list[Key]) -> dict[Key, int]:
    # as text: SQLAlchemy takes longer to write this statement than the database to answer it
    mark = "?" if connection.dialect.name == "sqlite" else "%s"
    names, marks = ", ".join(key), ", ".join([mark] * len(key))
    theirs = ", ".join(f"{table.name}.{name}" for name in key)
    found: dict[Key, int] = {}
    for start in range(0, len(wanted), _CHUNK):
        some = wanted[start : start + _CHUNK]
        rows = ", ".join([f"({marks})"] * len(some))
        # a join: SQLite looks a row up for each of them, where IN would have it look at all pairs of their columns
        text = (
            f"WITH wanted ({names}) AS (VALUES {rows}) "  # noqa: S608 (our own names)
            f"SELECT {table.name}.id, {theirs} FROM wanted JOIN {table.name} USING ({names})"
        )
        for number, *values in connection.exec_driver_sql(text, tuple(itertools.chain.from_iterable(some))):
            found[tuple(values)] = number
    return found

"""The small tables that hold every text once: row numbers by natural key.

First the cache, then SELECT, and only for what is missing INSERT … ON CONFLICT DO NOTHING in sorted order
(writers that overlap would deadlock otherwise, and an insert that does nothing still burns a number on
PostgreSQL), then SELECT again. This is a transaction of its own: what it leaves behind when the caller's
fails is harmless, and what it found is safe to remember.
"""

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import sqlalchemy as sa

from perftrack.model import Case, Device, Environment, Method, Resources, Revision, digest
from perftrack.store import pack, rows
from perftrack.store.door import Door
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
_STAGED = 500
"""So many rows go to PostgreSQL by way of a temporary table."""
_CHUNK = 500
"""Keys, or rows, in one statement: a dozen columns of them stay well below the 32 766 values that SQLite can bind."""


def insert(connection: sa.Connection, table: sa.Table, values: Sequence[Mapping[str, Any]], *, tail: str = "") -> None:
    """INSERT rows that have the same columns, as tuples: twice the speed of SQLAlchemy's dictionaries."""
    if values:
        insert_tuples(connection, table, tuple(values[0]), [tuple(row.values()) for row in values], tail=tail)


def insert_tuples(
    connection: sa.Connection, table: sa.Table, names: Sequence[str], values: Sequence[tuple[Any, ...]], *, tail: str
) -> None:
    """The same of tuples, which have these columns."""
    if len(values) >= _STAGED and connection.dialect.name == "postgresql":
        _insert_staged(connection, table, ", ".join(names), values, tail)
    elif values:
        connection.exec_driver_sql(insert_statement(connection, table, names, tail), list(values))


def _insert_staged(
    connection: sa.Connection, table: sa.Table, names: str, values: Sequence[tuple[Any, ...]], tail: str
) -> None:
    """COPY into a table of this connection, and one INSERT from there: twice the speed of one a row on PostgreSQL."""
    staged = f"staged_{table.name}"
    like = f"SELECT {names} FROM {table.name} LIMIT 0"  # noqa: S608 (our own names)
    connection.exec_driver_sql(f"CREATE TEMP TABLE IF NOT EXISTS {staged} ON COMMIT DELETE ROWS AS {like}")
    connection.exec_driver_sql(f"TRUNCATE {staged}")
    raw: Any = connection.connection.dbapi_connection
    with raw.cursor() as cursor, cursor.copy(f"COPY {staged} ({names}) FROM STDIN") as copy:
        for row in values:
            copy.write_row(row)
    select = f"INSERT INTO {table.name} ({names}) SELECT {names} FROM {staged} {tail}"  # noqa: S608 (our own names)
    connection.exec_driver_sql(select)


def insert_statement(connection: sa.Connection, table: sa.Table, columns: Iterable[str], tail: str = "") -> str:
    """In the driver's own form of parameters."""
    names = list(columns)
    mark = "?" if connection.dialect.name == "sqlite" else "%s"
    marks = ", ".join([mark] * len(names))
    return f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({marks}) {tail}"  # noqa: S608 (our own names)


def insert_new(
    connection: sa.Connection, table: sa.Table, key: tuple[str, ...], values: Sequence[Mapping[str, Any]]
) -> dict[Key, int]:
    """INSERT rows that have the same columns, but for those that are there by their `key`; numbers of the new ones."""
    found: dict[Key, int] = {}
    if not values:
        return found
    mark = "?" if connection.dialect.name == "sqlite" else "%s"
    marks = f"({', '.join([mark] * len(values[0]))})"
    into = f"INSERT INTO {table.name} ({', '.join(values[0])}) VALUES"
    tail = f"ON CONFLICT DO NOTHING RETURNING id, {', '.join(key)}"
    for start in range(0, len(values), _CHUNK):
        some = values[start : start + _CHUNK]
        bound = tuple(itertools.chain.from_iterable(row.values() for row in some))
        for number, *each in connection.exec_driver_sql(f"{into} {', '.join([marks] * len(some))} {tail}", bound):
            found[tuple(each)] = number
    return found


def _values_of(names: tuple[str, ...]) -> Callable[[Mapping[str, Any]], Key]:
    """What a row has in these columns, always as a tuple."""
    first, *others = names
    return itemgetter(*names) if others else lambda row: (row[first],)


class Dimensions:
    """Row numbers by natural key, remembered."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._known: defaultdict[str, dict[Key, int]] = defaultdict(dict)
        """By table."""

    def suites(self, names: Iterable[str]) -> dict[str, int]:
        """By name."""
        found = self._find(suite, ("name",), ({"name": name} for name in names))
        return {name: number for (name,), number in found.items()}

    def device_classes(self, names: Iterable[str]) -> dict[str, int]:
        """By name."""
        found = self._find(device_class, ("name",), ({"name": name} for name in names))
        return {name: number for (name,), number in found.items()}

    def cases(self, keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], int]:
        """By suite and case key."""
        wanted = set(keys)
        suites = self.suites({name for name, _ in wanted})
        found = self._find(
            kernel_case, ("suite_id", "key"), ({"suite_id": suites[name], "key": key} for name, key in wanted)
        )
        return {(name, key): found[suites[name], key] for name, key in wanted}

    def declaration(self, case: Case) -> tuple[int, int]:
        """Of a case as a tree declares it: the numbers of its identity and of this declaration."""
        return self.declarations([case])[case.digest]

    def declarations(self, cases: Iterable[Case]) -> dict[str, tuple[int, int]]:
        """The same of many, by the digest of the case."""
        by_digest = {case.digest: case for case in cases}
        numbers = self.cases((case.suite, case.key) for case in by_digest.values())
        identities = {text: numbers[case.suite, case.key] for text, case in by_digest.items()}
        wanted = (
            {"digest": text, "case_id": identities[text], **rows.case_row(case)} for text, case in by_digest.items()
        )
        found = self._find(declaration, ("digest",), wanted)
        return {text: (identities[text], found[text,]) for text in by_digest}

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
        digests = {one: digest(one) for one in used}
        wanted = ({"digest": text, **rows.resources_row(one)} for one, text in digests.items())
        found = self._find(resources, ("digest",), wanted)
        return {one: found[text,] for one, text in digests.items()}

    def revision(self, repo: str, of: Revision) -> int:
        """What a shallow clone could not know of it is filled in by a later one."""
        row = {"repo": repo, **rows.revision_row(of)}
        key = ("repo", "sha", "tree", "dirty")
        (number,) = self._find(revision, key, [row]).values()
        later = {name: row[name] for name in ("position", "parent_sha") if row[name] is not None}
        unknown = [revision.c[name].is_(None) for name in later]
        if unknown:
            filled = {name: sa.func.coalesce(revision.c[name], value) for name, value in later.items()}
            change = sa.update(revision).where(revision.c.id == number, sa.or_(*unknown)).values(filled)
            self._door.write(lambda connection: connection.execute(change))
        return number

    def series(self, wanted: Sequence[Mapping[str, Any]]) -> dict[Key, int]:
        """By (case_id, device_class_id, variant, baseline, method_id)."""
        return self._find(series, ("case_id", "device_class_id", "variant", "baseline", "method_id"), wanted)

    def run_sides(self, run_id: int, revisions: Mapping[str, int]) -> dict[str, int]:
        """By side; each is of one revision."""
        wanted = ({"run_id": run_id, "side": side, "revision_id": number} for side, number in revisions.items())
        found = self._find(run_side, ("run_id", "side"), wanted)
        return {side: number for (_, side), number in found.items()}

    def settings(self, wanted: Sequence[Mapping[str, Any]]) -> list[int]:
        """Of each in its place."""
        digests = [digest(one) for one in wanted]
        found = self._find(
            setting, ("digest",), ({"digest": text, **one} for text, one in zip(digests, wanted, strict=True))
        )
        return [found[text,] for text in digests]

    def extents(self, wanted: Sequence[Mapping[str, int]]) -> list[int]:
        """Of each in its place."""
        key = ("samples", "rounds", "bad_blocks")
        found = self._find(extent, key, wanted)
        return [found[tuple(one[name] for name in key)] for one in wanted]

    def _one(self, table: sa.Table, key: str, values: Mapping[str, Any]) -> int:
        return self._find(table, ("digest",), [{"digest": key, **values}])[key,]

    def _find(self, table: sa.Table, key: tuple[str, ...], wanted: Iterable[Mapping[str, Any]]) -> dict[Key, int]:
        known, key_of = self._known[table.name], _values_of(key)
        by_key = {key_of(row): row for row in wanted}
        missing = {each: row for each, row in by_key.items() if each not in known}
        if missing:
            known |= self._door.read(lambda connection: _select(connection, table, key, list(missing)))
            new = [row for each, row in sorted(missing.items(), key=itemgetter(0)) if each not in known]
            if new:

                def work(connection: sa.Connection) -> dict[Key, int]:
                    made = insert_new(connection, table, key, new)
                    others = [each for each in map(key_of, new) if each not in made]
                    return made | _select(connection, table, key, others)

                known |= self._door.write(work)
        return {each: known[each] for each in by_key}


def _select(connection: sa.Connection, table: sa.Table, key: tuple[str, ...], wanted: list[Key]) -> dict[Key, int]:
    # as text: SQLAlchemy takes longer to write this statement than the database to answer it
    mark = "?" if connection.dialect.name == "sqlite" else "%s"
    names, marks = ", ".join(key), ", ".join([mark] * len(key))
    found: dict[Key, int] = {}
    for start in range(0, len(wanted), _CHUNK):
        some = wanted[start : start + _CHUNK]
        rows = ", ".join([f"({marks})"] * len(some))
        text = f"SELECT id, {names} FROM {table.name} WHERE ({names}) IN (VALUES {rows})"  # noqa: S608 (our own names)
        for number, *values in connection.exec_driver_sql(text, tuple(value for each in some for value in each)):
            found[tuple(values)] = number
    return found

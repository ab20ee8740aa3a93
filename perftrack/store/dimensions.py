"""The small tables that hold every text once: row numbers by natural key.

First the cache, then SELECT, and only for what is missing INSERT … ON CONFLICT DO NOTHING in sorted order
(writers that overlap would deadlock otherwise, and an insert that does nothing still burns a number on
PostgreSQL), then SELECT again. This is a transaction of its own: what it leaves behind when the caller's
fails is harmless, and what it found is safe to remember.
"""

from collections.abc import Iterable, Mapping, Sequence
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
"""Keys in one SELECT: five columns of them stay well below the 32 766 values that SQLite can bind."""


def insert(connection: sa.Connection, table: sa.Table, values: Sequence[Mapping[str, Any]], *, tail: str = "") -> None:
    """INSERT rows that have the same columns, as tuples: twice the speed of SQLAlchemy's dictionaries."""
    if len(values) >= _STAGED and connection.dialect.name == "postgresql":
        _insert_staged(connection, table, values, tail)
    elif values:
        connection.exec_driver_sql(
            insert_statement(connection, table, values[0].keys(), tail), [tuple(row.values()) for row in values]
        )


def _insert_staged(connection: sa.Connection, table: sa.Table, values: Sequence[Mapping[str, Any]], tail: str) -> None:
    """COPY into a table of this connection, and one INSERT from there: twice the speed of one a row on PostgreSQL."""
    names = ", ".join(values[0])
    staged = f"staged_{table.name}"
    like = f"SELECT {names} FROM {table.name} LIMIT 0"  # noqa: S608 (our own names)
    connection.exec_driver_sql(f"CREATE TEMP TABLE IF NOT EXISTS {staged} ON COMMIT DELETE ROWS AS {like}")
    connection.exec_driver_sql(f"TRUNCATE {staged}")
    raw: Any = connection.connection.dbapi_connection
    with raw.cursor() as cursor, cursor.copy(f"COPY {staged} ({names}) FROM STDIN") as copy:
        for row in values:
            copy.write_row(tuple(row.values()))
    select = f"INSERT INTO {table.name} ({names}) SELECT {names} FROM {staged} {tail}"  # noqa: S608 (our own names)
    connection.exec_driver_sql(select)


def insert_statement(connection: sa.Connection, table: sa.Table, columns: Iterable[str], tail: str = "") -> str:
    """In the driver's own form of parameters."""
    names = list(columns)
    mark = "?" if connection.dialect.name == "sqlite" else "%s"
    marks = ", ".join([mark] * len(names))
    return f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({marks}) {tail}"  # noqa: S608 (our own names)


class Dimensions:
    """Row numbers by natural key, remembered."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._known: dict[tuple[str, Key], int] = {}

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
        by_key = {tuple(row[name] for name in key): row for row in wanted}
        missing = {each: row for each, row in by_key.items() if (table.name, each) not in self._known}
        if missing:
            found = self._door.read(lambda connection: _select(connection, table, key, list(missing)))
            new = [row for each, row in sorted(missing.items(), key=lambda pair: pair[0]) if each not in found]
            if new:

                def work(connection: sa.Connection) -> dict[Key, int]:
                    insert(connection, table, new, tail="ON CONFLICT DO NOTHING")
                    return _select(connection, table, key, list(missing))

                found = self._door.write(work)
            self._known |= {(table.name, each): number for each, number in found.items()}
        return {each: self._known[table.name, each] for each in by_key}


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

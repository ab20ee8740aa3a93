"""Whether a database is what it should be: the engine's own checks, references, and the schema."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from perftrack.store.pack import FLOAT64_ZLIB
from perftrack.store.schema import VERSION_TABLE, VIEWS, metadata, sample

_SHOWN = 20


def problems(connection: sa.Connection) -> list[str]:
    """A line for each thing that is wrong; empty for a sound database.

    Zero, NaN, infinity, unknown words and a number without its unit cannot be stored where the schema is whole: the
    checks are part of it, and SQLite's integrity check asks them of every row again.
    """
    on_sqlite = connection.dialect.name == "sqlite"
    found = [
        *(_integrity_of_file(connection) if on_sqlite else _integrity_of_server(connection)),
        *_schema(connection),
    ]
    if not found:  # the rest reads tables by the names that they should have
        found += [
            *(_orphans_of_file(connection) if on_sqlite else _orphans_of_server(connection)),
            *_samples(connection),
        ]
    return found


def _integrity_of_file(connection: sa.Connection) -> list[str]:
    rows = connection.exec_driver_sql(f"PRAGMA integrity_check({_SHOWN})").scalars()
    return [f"integrity: {text}" for text in rows if text != "ok"]


_UNSOUND = """
SELECT 'index ' || i.indexrelid::regclass || ' is not valid: REINDEX it' FROM pg_index i
  WHERE NOT i.indisvalid AND i.indrelid::regclass::text = ANY(:tables)
UNION ALL
SELECT 'constraint ' || c.conname || ' of ' || c.conrelid::regclass || ' was never asked of all rows: VALIDATE it'
  FROM pg_constraint c WHERE NOT c.convalidated AND c.conrelid::regclass::text = ANY(:tables)
"""


def _integrity_of_server(connection: sa.Connection) -> list[str]:
    rows = connection.execute(sa.text(_UNSOUND), {"tables": list(metadata.tables)}).scalars()
    return [f"integrity: {text}" for text in rows]


def _orphans_of_file(connection: sa.Connection) -> list[str]:
    rows = connection.exec_driver_sql("PRAGMA foreign_key_check")
    counts = Counter((table, parent) for table, _, parent, _ in rows)
    return [_orphaned(count, table, parent) for (table, parent), count in counts.items()]


def _orphans_of_server(connection: sa.Connection) -> list[str]:
    found: list[str] = []
    for table in metadata.sorted_tables:
        for key in table.foreign_key_constraints:
            other = key.referred_table.alias("other")
            same = sa.and_(*(element.parent == other.c[element.column.name] for element in key.elements))
            given = sa.and_(*(element.parent.is_not(None) for element in key.elements))
            question = sa.select(sa.func.count()).select_from(table).where(given, ~sa.exists().where(same))
            if count := connection.execute(question).scalar_one():
                found.append(_orphaned(count, table.name, key.referred_table.name))
    return found


def _orphaned(count: int, table: str, parent: str) -> str:
    return f"reference: {count} rows of {table} name a row of {parent} that is not there"


def _samples(connection: sa.Connection) -> list[str]:
    question = sa.select(sa.func.count()).where(sample.c.encoding != FLOAT64_ZLIB)
    count = connection.execute(question).scalar_one()
    return [f"samples: {count} rows have an encoding that this perftrack does not know"] if count else []


def _schema(connection: sa.Connection) -> Iterator[str]:
    from alembic.autogenerate import compare_metadata  # noqa: PLC0415 (slow, and nothing else here needs it)
    from alembic.migration import MigrationContext  # noqa: PLC0415

    def ours(name: str | None, kind: str, _: Any) -> bool:
        return kind != "table" or name in metadata.tables

    options = {"version_table": VERSION_TABLE, "compare_type": True, "include_name": ours}
    for difference in compare_metadata(MigrationContext.configure(connection, opts=options), metadata):
        for one in difference if isinstance(difference, list) else [difference]:
            yield f"schema: {_in_words(one)}"
    look = sa.inspect(connection)
    there = set(look.get_table_names())
    for table in (one for one in metadata.sorted_tables if one.name in there):
        checks = {one["name"] for one in look.get_check_constraints(table.name)}
        wanted = {str(one.name) for one in table.constraints if isinstance(one, sa.CheckConstraint)}
        yield from (f"schema: {table.name} lacks the check {name}" for name in sorted(wanted - checks))
    yield from (f"schema: there is no view {name}" for name in sorted({*VIEWS} - {*look.get_view_names()}))


def _in_words(difference: tuple[Any, ...]) -> str:
    kind, thing = str(difference[0]), difference[-1]
    if kind.startswith("modify_"):
        _, _, table, column, _, there, wanted = difference
        return f"{table}.{column} has {kind.removeprefix('modify_')} {there} instead of {wanted}"
    table = getattr(getattr(thing, "table", None), "name", None)
    name = f"{table}.{thing.name}" if table and kind.endswith("column") else (thing.name or str(thing))
    what = kind.removeprefix("add_").removeprefix("remove_").replace("_", " ")
    return f"{what} {name} is {'missing' if kind.startswith('add_') else 'not ours'}"

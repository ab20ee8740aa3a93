"""The schema's version: what a database has, what this program needs, and the way from one to the other.

Alembic is imported only where something is migrated; looking is a plain SELECT.
"""

import sqlite3
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy import exc

from perftrack.errors import SchemaOutdatedError, StoreError, UsageError
from perftrack.store import engine
from perftrack.store.address import Address
from perftrack.store.door import Door, translated
from perftrack.store.schema import REVISIONS, VERSION_TABLE

HEAD = REVISIONS[-1]

_ADVISORY_LOCK = 0x7065726674726B
"""PostgreSQL: held while migrating, so that of several processes one migrates and the others find it done."""


def version(connection: sa.Connection) -> str | None:
    """The database's schema; None where perftrack has never been."""
    if not sa.inspect(connection).has_table(VERSION_TABLE):
        return None
    return connection.execute(sa.text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()  # noqa: S608 (a constant)


def check(found: str | None, address: Address) -> None:
    """Refuse every schema but the one this program needs, naming both and the way out."""
    if found == HEAD:
        return
    if found is None:
        raise UsageError(f"{address.label} holds no perftrack data yet: `perftrack submit` makes its tables")
    if found in REVISIONS:
        raise SchemaOutdatedError(
            f"{address.label} has schema {found} and this perftrack needs {HEAD}: type `perftrack db upgrade`"
        )
    raise SchemaOutdatedError(
        f"{address.label} has schema {found}, which is newer than this perftrack ({HEAD}): install a newer perftrack"
    )


def create_if_empty(door: Door) -> None:
    """Make the tables where there are none, and see that the database can be written."""
    tables, found = door.probe(
        lambda connection: (sa.inspect(connection).get_table_names(), version(connection)), write=True
    )
    if found is None:
        if tables and door.address.path is not None:  # a slip of the keyboard; PostgreSQL databases may be shared
            raise UsageError(
                f"{door.address.label} is a database of another program (it has a table {tables[0]!r}); "
                "give another file with --db"
            )
        found = upgrade(door.address).after
    check(found, door.address)


@dataclass(frozen=True, slots=True)
class Upgraded:
    """What an upgrade did: the schemas before and after, and where a SQLite file lies as it was before."""

    before: str | None
    after: str
    copy: Path | None


def upgrade(address: Address) -> Upgraded:
    """Bring the database to this program's schema, in one transaction. A SQLite file with data is copied first."""
    if address.path is not None:
        engine.prepare_folder(address.path, create=True)
    made = engine.writer(address, foreign_keys=False)
    try:
        with translated(address), made.begin() as connection:
            if address.path is None:
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_ADVISORY_LOCK)))
            before = version(connection)
            if before is not None and before not in REVISIONS:
                check(before, address)
            outdated = before not in {None, HEAD}
            copy = engine.copy_aside(address.path, f"before-{HEAD}") if address.path and outdated else None
            migrate(connection, HEAD)
            _check_foreign_keys(connection, address)
        if copy is not None:
            _shrink(made)
    finally:
        made.dispose()
    return Upgraded(before, HEAD, copy)


def _shrink(made: sa.Engine) -> None:
    """Give back the pages of tables that were copied; where there is no room for that, they are used by what comes."""
    with suppress(sqlite3.Error, exc.DBAPIError), made.begin() as connection:
        engine.give_pages_back(connection)
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")


def migrate(connection: sa.Connection, target: str) -> None:
    """Walk up or down to the schema `target` (`base` is none at all), inside the caller's transaction."""
    from alembic import command  # noqa: PLC0415 (slow, and reports never migrate)
    from alembic.config import Config  # noqa: PLC0415

    config = Config(attributes={"connection": connection, "version_table": VERSION_TABLE})
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    found = version(connection)
    if found is not None and (target == "base" or target < found):
        command.downgrade(config, target)
    elif target != "base":
        command.upgrade(config, target)


def migrations_folder() -> Path:
    """Beside this module in an installed package, at the top of the repository in a checkout."""
    installed = Path(__file__).parent / "migrations"
    checkout = Path(__file__).parents[2] / "migrations"
    for folder in (installed, checkout):
        if (folder / "env.py").exists():
            return folder
    raise StoreError(f"this installation of perftrack lacks its migrations ({installed}): install it again")


def _check_foreign_keys(connection: sa.Connection, address: Address) -> None:
    """Foreign keys were off; an orphan ends the transaction."""
    if address.path is None:
        return
    orphans = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchall()
    if orphans:
        raise StoreError(f"{address.label} would have {len(orphans)} orphaned rows after the upgrade; nothing changed")

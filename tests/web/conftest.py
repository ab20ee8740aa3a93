"""A store with what the pages show, and the hostile names of the report's tests."""

import shutil
import sys
from pathlib import Path

import pytest

from perftrack.store import Store

sys.path.append(str(Path(__file__).parent.parent / "report"))


@pytest.fixture(scope="session")
def filled(tmp_path_factory):
    from web_builders import fill

    with Store.open(str(tmp_path_factory.mktemp("web") / "perf.db")) as store:
        fill(store)
        yield store


@pytest.fixture(scope="session")
def empty(tmp_path_factory):
    """A file to be copied: migrating each test's own takes longer."""
    path = tmp_path_factory.mktemp("empty") / "perf.db"
    Store.open(str(path)).close()
    return path


@pytest.fixture(scope="session")
def with_red(empty, tmp_path_factory):
    """A file with three commits, the second of them red."""
    from web_builders import fill

    path = tmp_path_factory.mktemp("red") / "perf.db"
    shutil.copy(empty, path)
    with Store.open(str(path)) as store:
        fill(store, commits=3, slow_from=2)
    return path


@pytest.fixture
def red_store(tmp_path, with_red):
    shutil.copy(with_red, tmp_path / "perf.db")
    with Store.open(str(tmp_path / "perf.db")) as opened:
        yield opened


@pytest.fixture
def store(tmp_path, empty):
    shutil.copy(empty, tmp_path / "perf.db")
    with Store.open(str(tmp_path / "perf.db")) as opened:
        yield opened

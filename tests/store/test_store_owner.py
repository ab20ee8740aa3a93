"""Who carries a run out, on both engines."""

import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import psycopg
import pytest
import store_builders as build

from perftrack.errors import StoreError, UsageError
from perftrack.model import Status
from perftrack.store import Store, address, server_lock

pytestmark = pytest.mark.fault


@pytest.fixture
def run_uid(store: Store) -> str:
    run = build.run()
    store.begin_run(run)
    return run.uid


def test_one_process_at_a_time_carries_a_run_out(store: Store, url: str, run_uid: str):
    with Store.open(url) as other:
        assert not other.owned(run_uid)
        with store.own(run_uid):
            assert other.owned(run_uid)
            with pytest.raises(UsageError, match="is being measured by another process"), other.own(run_uid):
                pass
            with other.own("f" * 32):
                assert other.owned(run_uid), "another run is another's business"
        with other.own(run_uid):
            assert store.owned(run_uid)


@pytest.fixture
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_lock, "LOOK_S", 0.05)


def holders(server: psycopg.Connection, *, granted: bool = True) -> list[int]:
    """Processes of the server that have an advisory lock, or wait for one."""
    asked = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted = %s"
    return [pid for (pid,) in server.execute(asked, [granted])]


def until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.usefixtures("quick_looks")
def test_a_server_that_loses_the_owners_connection_gives_the_lock_back(postgresql_url: str) -> None:
    uid = build.run().uid
    with Store.open(postgresql_url) as store, psycopg.connect(postgresql_url, autocommit=True) as server:
        with store.own(uid) as keep:
            (before,) = holders(server)
            server.execute("SELECT pg_terminate_backend(%s)", [before])
            until(lambda: (now := holders(server)) and now != [before])
            assert store.owned(uid)
            keep()
            with pytest.raises(UsageError, match="is being measured by another process"), store.own(uid):
                pass
        assert not store.owned(uid)


@pytest.mark.usefixtures("quick_looks")
def test_who_has_been_taken_over_goes_no_further(postgresql_url: str) -> None:
    """Whoever waits for the lock gets it before it can be taken again."""
    uid = build.run().uid
    with Store.open(postgresql_url) as store, psycopg.connect(postgresql_url, autocommit=True) as server:
        with store.own(uid) as keep, psycopg.connect(postgresql_url, autocommit=True) as other:
            waits = threading.Thread(target=other.execute, args=("SELECT pg_advisory_lock(%s)", [int(uid[:15], 16)]))
            waits.start()
            until(lambda: holders(server, granted=False))
            keep()
            server.execute("SELECT pg_terminate_backend(%s)", holders(server))
            waits.join()

            def refused() -> bool:
                with suppress(StoreError):
                    keep()
                    return False
                return True

            until(refused)
            with pytest.raises(StoreError, match=f"run {uid[:8]} has been taken over by another process"):
                keep()
        assert not store.owned(uid)


@pytest.mark.usefixtures("quick_looks")
def test_a_connection_that_only_the_network_has_lost_is_no_other_process(postgresql_url: str) -> None:
    """The server goes on with a session of ours that nobody can reach any more."""
    uid = build.run().uid
    lock = server_lock.ServerLock(address.parse(postgresql_url), uid)
    with psycopg.connect(postgresql_url, autocommit=True) as server:
        assert lock.take()
        (before,) = holders(server)
        assert lock._connection is not None
        raw = lock._connection.connection.dbapi_connection
        assert isinstance(raw, psycopg.Connection)
        here, there = socket.socketpair()
        with here:
            there.close()
            reachable = os.dup(raw.fileno())
            os.dup2(here.fileno(), raw.fileno())
        until(lambda: (now := holders(server)) and now != [before])
        assert not lock.lost
        lock.release()
        assert holders(server) == []
        os.close(reachable)


def test_a_run_is_interrupted_once_and_opened_again(store: Store, run_uid: str):
    assert store.interrupt(run_uid, 5)
    assert not store.interrupt(run_uid, 6)
    run = store.load_run(run_uid).run
    assert (run.state, run.finished_us) == ("interrupted", 5)
    store.reopen(run_uid)
    run = store.load_run(run_uid).run
    assert (run.state, run.finished_us) == ("running", None)
    store.finish_run(run_uid, state="complete", finished_us=7, summaries=[], findings=[])
    store.reopen(run_uid)
    assert store.state(run_uid) == "complete"


def test_a_job_that_is_tried_again_gets_the_next_number(store: Store, run_uid: str):
    assert store.last_attempts(run_uid) == {}
    for attempt in (1, 2):
        failed = build.failed(attempt=attempt, status=Status.INFRA)
        store.add_job(run_uid, build.case(), failed, build.device())
    assert list(store.last_attempts(run_uid).values()) == [2]

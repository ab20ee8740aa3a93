"""A thread has one transaction at a time: what reads inside of it is a part of it, what writes inside is refused."""

import threading
from typing import Any

import pytest
import sqlalchemy as sa
import store_builders as build

from perftrack.model import Status
from perftrack.store import Store, schema
from perftrack.store.frames import Database


def _suites(store: Store) -> list[str]:
    return store.read(lambda connection: list(connection.scalars(sa.select(schema.suite.c.name))))


def _add(connection: sa.Connection, name: str) -> None:
    connection.execute(sa.insert(schema.suite).values(name=name))


def test_a_write_inside_of_a_write_is_refused_at_once_and_nothing_of_either_stays(store: Store) -> None:
    def outer(connection: sa.Connection) -> None:
        _add(connection, "outer")
        store._door.write(lambda inner: _add(inner, "inner"))

    with pytest.raises(RuntimeError, match="began inside of another one"):
        store._door.write(outer)
    assert _suites(store) == []
    store._door.write(lambda connection: _add(connection, "later"))
    assert _suites(store) == ["later"]


def test_a_read_inside_of_a_write_sees_what_was_written(store: Store) -> None:
    def work(connection: sa.Connection) -> list[str]:
        _add(connection, "new")
        return _suites(store)

    assert store._door.write(work) == ["new"]


def test_reads_inside_of_a_read_are_of_one_instant(own_url: str) -> None:
    with Store.open(own_url) as store, Store.open(own_url) as other:

        def work(_: sa.Connection) -> tuple[list[str], list[str]]:
            before = _suites(store)
            other._door.write(lambda connection: _add(connection, "meanwhile"))
            return before, _suites(store)

        assert store.read(work) == ([], [])
        assert _suites(store) == ["meanwhile"]


def test_other_threads_have_transactions_of_their_own(own_url: str) -> None:
    with Store.open(own_url) as store:
        seen: list[list[str]] = []

        def work(connection: sa.Connection) -> None:
            _add(connection, "new")
            thread = threading.Thread(target=lambda: seen.append(_suites(store)))
            thread.start()
            thread.join()

        store._door.write(work)
        assert (seen, _suites(store)) == ([[]], ["new"])


def test_a_frame_is_of_one_instant(own_url: str) -> None:
    """Its results are read first, then what goes with some of them; between the two they are replaced."""
    with Store.open(own_url) as store, Store.open(own_url) as other:
        run, case = build.run(), build.case()
        store.begin_run(run)
        store.add_job(run.uid, case, build.job(), build.device())

        def finish(through: Store, message: str) -> None:
            nothing = {"time_s": None, "q10_s": None, "q90_s": None, "speedup": None, "baseline_s": None}
            one = build.summary(status=Status.FAILED, message=message, **nothing)
            through.finish_run(run.uid, state="complete", finished_us=1, summaries=[one], findings=[])

        finish(store, "before")
        replaced: list[str] = []

        def replace(*details: Any) -> None:
            if "result_extra" in details[2] and not replaced:
                replaced.append(details[2])
                finish(other, "after")

        sa.event.listen(store._door._reader, "before_cursor_execute", replace)
        assert Database(store).results(columns=["message"])["message"].tolist() == ["before"]
        assert replaced
        assert Database(store).results(columns=["message"])["message"].tolist() == ["after"]

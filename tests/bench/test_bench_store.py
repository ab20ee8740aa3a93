"""Our own cost of storing: one attempt, one whole run read back, one frame. The yardstick is the bare driver.

Six measurements (three variants, both sides) of 50 samples an attempt, 30 cases × 3 rounds a run.
"""

import itertools
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "store"))
import store_builders as build

from perftrack.store import Store
from perftrack.store.frames import Database

CASES, ROUNDS = 30, 3


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(str(tmp_path / "perf.db")) as opened:
        opened.begin_run(build.run())
        yield opened


def _fill(store: Store) -> None:
    keys = [f"add[n={number}]" for number in range(CASES)]
    for key, number in itertools.product(keys, range(1, ROUNDS + 1)):
        store.add_job(build.run().uid, build.case(key), build.job(case_key=key, round=number), build.device())
    summaries = [
        build.summary(side, variant, case_key=key)
        for key in keys
        for side in ("head", "base")
        for variant in ("unfused", "steps", "fused")
    ]
    findings = [build.finding(case_key=key) for key in keys]
    store.finish_run(build.run().uid, state="complete", finished_us=1, summaries=summaries, findings=findings)


def test_bench_add_job(benchmark: Any, store: Store) -> None:
    rounds = itertools.count(1)

    def add() -> None:
        assert store.add_job(build.run().uid, build.case(), build.job(round=next(rounds)), build.device())

    benchmark(add)


def test_bench_add_job_bare_driver(benchmark: Any, tmp_path: Path) -> None:
    """The same bytes in the same number of rows, without validation, dimensions or keys to other tables."""
    connection = sqlite3.connect(tmp_path / "bare.db", isolation_level=None)
    connection.executescript(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
        "CREATE TABLE job (id INTEGER PRIMARY KEY, round INTEGER UNIQUE, payload BLOB) STRICT;"
        "CREATE TABLE sample (job INTEGER, ordinal INTEGER, data BLOB, PRIMARY KEY (job, ordinal)) STRICT;"
    )
    rounds, payload, data = itertools.count(1), b"x" * 600, b"x" * 300

    def add() -> None:
        connection.execute("BEGIN IMMEDIATE")
        job = connection.execute("INSERT INTO job VALUES (NULL, ?, ?)", (next(rounds), payload)).lastrowid
        connection.executemany("INSERT INTO sample VALUES (?, ?, ?)", [(job, number, data) for number in range(6)])
        connection.execute("COMMIT")

    benchmark(add)
    connection.close()


def test_bench_second_delivery(benchmark: Any, store: Store) -> None:
    case, job, device = build.case(), build.job(), build.device()
    store.add_job(build.run().uid, case, job, device)
    assert benchmark(store.add_job, build.run().uid, case, job, device) is False


def test_bench_load_run(benchmark: Any, store: Store) -> None:
    _fill(store)
    stored = benchmark(store.load_run, build.run().uid)
    assert len(stored.summaries) == CASES * 6


def test_bench_jobs(benchmark: Any, store: Store) -> None:
    _fill(store)
    assert len(benchmark(store.jobs, build.run().uid)) == CASES * ROUNDS


def test_bench_open(benchmark: Any, store: Store) -> None:
    path = store.label
    benchmark(lambda: Store.open(path, create=False).close())


def test_bench_results_frame(benchmark: Any, store: Store) -> None:
    _fill(store)
    assert len(benchmark(Database(store).results)) == CASES * 6

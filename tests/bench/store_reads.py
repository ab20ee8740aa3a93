"""Reading a large store: the public questions against the bare driver.

It is given our own statement for a million rows, and for the history of a suite one that is written by hand, by names,
in the order of joins that is best for SQLite (by its own choice it takes a quarter longer).
"""

import importlib.util
import multiprocessing
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from store_fill import CASES, SERIES, VARIANTS, class_name, suite_name
from store_lines import Table, medians, say

import perftrack
from perftrack.store import engine, frames_filters, frames_table, written

SIX = ("commit_seq", "median_us", "p10_us", "p90_us", "baseline_us", "speedup")
HISTORY = {"suite": suite_name(3), "device": class_name(1), "last": 25_000 // (CASES * len(VARIANTS))}
BY_HAND = """
    SELECT revision.position, result.time_s, result.q10_s, result.q90_s, result.speedup
    FROM series CROSS JOIN result CROSS JOIN run_side CROSS JOIN revision
    WHERE result.series_id = series.id AND run_side.id = result.run_side_id AND revision.id = run_side.revision_id
    AND series.case_id IN (SELECT kernel_case.id FROM kernel_case
                           JOIN suite ON suite.id = kernel_case.suite_id WHERE suite.name = ?)
    AND series.device_class_id = (SELECT id FROM device_class WHERE name = ?)
    AND result.run_side_id IN (SELECT id FROM run_side WHERE revision_id IN (
                               SELECT id FROM revision WHERE position >= ?))
"""
"""The history without the times of the baseline, which would take another join: with it, it takes 1.4 times as long."""

FACTS = ("result", "job_attempt", "measurement", "sample")


@contextmanager
def _without_adbc() -> Iterator[None]:
    """As where it is not installed."""
    kept, sys.modules["adbc_driver_postgresql"] = sys.modules.get("adbc_driver_postgresql"), None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules["adbc_driver_postgresql"]
        if kept is not None:
            sys.modules["adbc_driver_postgresql"] = kept


def timings(url: str, commits: int) -> tuple[float, float, float]:
    """Seconds of a suite's history, of the same from the bare driver of SQLite, and of the newest of all series."""
    with perftrack.open(url) as database:
        raw = _raw_cursor(database)
        base = f"{commits // 2:040x}"
        frame = database.results(columns=SIX, **HISTORY)
        found, first = len(frame), int(frame["commit_seq"].min())
        assert found == min(commits, int(HISTORY["last"])) * CASES * len(VARIANTS), found

        def by_hand() -> list[Any]:
            return raw.execute(BY_HAND, (HISTORY["suite"], HISTORY["device"], first)).fetchall()

        on_sqlite = database._store.dialect.name == "sqlite"
        assert not on_sqlite or len(by_hand()) == found
        history, bare, latest = medians(
            lambda: database.results(columns=SIX, **HISTORY),
            by_hand if on_sqlite else lambda: None,
            lambda: database.latest(base),
        )
        newest = database.latest(base)
        assert len(newest) == SERIES
        assert newest["median_us_base"].notna().all()
    return history, bare, latest


def measure(table: Table, engine: str, url: str, commits: int) -> None:
    history, bare, latest = timings(url, commits)
    rows = f"{CASES * len(VARIANTS) * min(commits, int(HISTORY['last']))} rows"
    table.most(engine, f"history of a suite, {rows}", history * 1e3, 60 if engine == "sqlite" else 100, "ms")
    if engine == "sqlite":
        table.most(engine, "the same, of a statement by hand and the bare driver", history / bare, 1.3)
    table.most(engine, f"newest of {SERIES} series against a commit", latest * 1e3, 100, "ms")
    _million(table, engine, url, commits)
    _plans(table, engine, url)


def _million(table: Table, engine: str, url: str, commits: int) -> None:
    last = min(commits, -(-1_000_000 // SERIES))
    with perftrack.open(url) as database:
        raw = _raw_cursor(database)
        text = _text(database, SIX, {"last": last})
        with _without_adbc():
            plain, bare = medians(
                lambda: database.results(columns=SIX, last=last), lambda: raw.execute(text).fetchall(), repeat=3
            )
        bound = 1.8 if engine == "sqlite" else 1.5
        what = f"{last * SERIES} rows to a frame, of the bare fetchall"
        if engine == "postgresql" and importlib.util.find_spec("adbc_driver_postgresql"):
            (fast,) = medians(lambda: database.results(columns=SIX, last=last), repeat=3)
            table.most(engine, f"{what}, with ADBC", fast / bare, 0.6)
        else:
            note = "ADBC is not used on SQLite: two SQLites in a process lose commits"
            table.most(engine, f"{what}, with ADBC", plain / bare, 0.6, note=note)
        table.most(engine, f"{what}, without", plain / bare, bound)
        say(f"        {engine}: bare fetchall {bare:.2f} s")
    for adbc_too, most in ((True, 120), (False, 500)):
        if adbc_too and engine == "sqlite":
            continue
        extra = _memory(url, last, adbc_too)
        table.most(engine, f"its memory, {'with' if adbc_too else 'without'} ADBC", extra, most, "MiB")


def _memory(url: str, last: int, adbc_too: bool) -> float:
    """MiB that a fresh process grows by at most, the first small question not counted."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_grown, (url, last, adbc_too))


def _grown(url: str, last: int, adbc_too: bool) -> float:
    def peak() -> float:
        """Of this process; what `getrusage` says may be its parent's."""
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024

    def ask() -> float:
        with perftrack.open(url) as database:
            database.results(columns=SIX, last=1)
            before = peak()
            database.results(columns=SIX, last=last)
            return peak() - before

    if adbc_too:
        return ask()
    with _without_adbc():
        return ask()


def _raw_cursor(database: Any) -> Any:
    place = database._store._door.address
    if place.path is None:
        import psycopg

        uri = place.url.set(drivername="postgresql").render_as_string(hide_password=False)
        connection = psycopg.connect(uri, autocommit=True)
        connection.execute(engine.SERVER_SETTING)
        return connection
    import sqlite3

    connection = sqlite3.connect(place.path)
    connection.execute(engine.READER_CACHE)
    return connection


def _text(database: Any, columns: tuple[str, ...], filters: dict[str, Any]) -> str:
    store = database._store
    rows = written.conditions(store.dialect, frames_filters.where(store, filters))
    return written.filled(store.dialect, frames_table.facts(columns), rows)


def _plans(table: Table, engine: str, url: str) -> None:
    """How many steps of the public questions read a whole table of facts."""
    scans: list[str] = []
    with perftrack.open(url) as database:
        store = database._store
        said: list[tuple[str, Any]] = []

        def note(*details: Any) -> None:
            said.append((details[2], details[3]))

        with _without_adbc():
            through = store._door._reader
            sa.event.listen(through, "before_cursor_execute", note)
            database.history("operation1*", device=class_name(0), variant="fused")
            database.compare(f"{1:040x}", f"{2:040x}")
            database.latest(f"{1:040x}", suite=suite_name(1))
            sa.event.remove(through, "before_cursor_execute", note)
        texts = [(text, values) for text, values in said if text.startswith("SELECT")]
        texts.append((_text(database, SIX, dict(HISTORY)), ()))
        for text, values in texts:
            asked = f"EXPLAIN {'QUERY PLAN ' if engine == 'sqlite' else ''}{text}"
            steps = store.read(lambda c, t=asked, v=values: c.exec_driver_sql(t, v).fetchall())
            for step in steps:
                line = str(step[3] if engine == "sqlite" else step[0])
                if any(f"SCAN {name}" in line or f"Seq Scan on {name} " in line for name in FACTS):
                    scans.append(line.strip())
    table.most(engine, "plans that scan a whole table of facts", len(scans), 0, note="; ".join(scans[:2])[:60])


def size(url: str, engine: str) -> float:
    """Bytes of `result` with its indexes."""
    with perftrack.open(url) as database:
        store = database._store
        if engine == "postgresql":
            question = "SELECT pg_total_relation_size('result')"
        else:
            question = (
                "SELECT sum(pageno) * 4096 FROM dbstat "  # the sum that it has in bytes ends at 4 GiB
                "WHERE aggregate = TRUE AND name IN ('result', 'ix_result_run_side_id')"
            )
        return float(store.read(lambda c: c.exec_driver_sql(question).scalar_one()))

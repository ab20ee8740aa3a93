"""Writing: the store against the bare driver, on a database of its own with the same tables and keys."""

import itertools
import multiprocessing
import random
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from statistics import median
from typing import Any, NamedTuple

import sqlalchemy as sa
from store_fill import COLUMNS, SERIES, Commits, build, dimensions
from store_lines import Table, say, seconds

from perftrack.judge.value import Summary
from perftrack.model import JobResult, Method
from perftrack.store import FinishedJob, Store, schema
from perftrack.store.inserting import insert, insert_tuples

COMMITS = 64
_JOBS = 200
_NEW = "ON CONFLICT DO NOTHING"
Make = Callable[[str], str]
"""A name → the address of a new, empty database."""


class Effort(NamedTuple):
    """How much is written for each figure."""

    turns: int
    """Of those that write whole commits; submitting takes three quarters of these."""
    batches: int
    """Of each producer, at most 80."""


FULL = Effort(12, 80)
BRIEF = Effort(1, 4)
"""Enough to see that everything is done and nothing is lost, and too little for a time that says something."""


def measure(table: Table, engine: str, make: Make, effort: Effort) -> None:
    _tuples(table, engine, make, effort.turns)
    _submit(table, engine, make, max(1, effort.turns * 3 // 4))
    _producers(table, engine, make, effort.batches)


def _raw(store: Store) -> Any:
    """A connection of the bare driver, told what ours are told."""
    place = store._door.address
    if place.path is None:
        import psycopg

        return psycopg.connect(place.url.set(drivername="postgresql").render_as_string(hide_password=False))
    import sqlite3

    connection = sqlite3.connect(place.path, isolation_level=None)
    for setting in ("synchronous=NORMAL", "foreign_keys=ON", "wal_autocheckpoint=16000", "cache_size=-65536"):
        connection.execute(f"PRAGMA {setting}")
    return connection


def _statement(engine: str, table: str, columns: list[str], tail: str = _NEW) -> str:
    marks = ", ".join(["?" if engine == "sqlite" else "%s"] * len(columns))
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks}) {tail}"  # noqa: S608 (our own names)


def _batches(engine: str, raw: Any, statement: str, batches: Any) -> None:
    """Each batch in a transaction of its own."""
    for batch in batches:
        if engine == "sqlite":
            raw.execute("BEGIN IMMEDIATE")
            raw.executemany(statement, batch)
            raw.execute("COMMIT")
        else:
            with raw.cursor() as cursor:
                cursor.executemany(statement, batch)
            raw.commit()


def _tuples(table: Table, engine: str, make: Make, turns: int) -> None:
    with Store.open(make("tuples")) as store, closing(_raw(store)) as raw:
        source = Commits(dimensions(store, COMMITS))
        numbers = itertools.count(1)
        statement = _statement(engine, "result", COLUMNS)
        ours: list[float] = []
        bare: list[float] = []
        for _ in range(turns):  # they take turns
            mapped = [[dict(zip(COLUMNS, row, strict=True)) for row in part] for part in _thousands(source, numbers)]
            ours.append(seconds(lambda batches=mapped: _insert(store, batches)))
            ready = _thousands(source, numbers)
            bare.append(seconds(lambda batches=ready: _batches(engine, raw, statement, batches)))
        ours_s = median(ours)
        table.least(engine, "ready rows, 1000 a commit, of the bare driver", median(bare) / ours_s, 0.80)
        if engine == "postgresql":
            copy_s = _copies(raw, source, numbers, min(5, turns))
            table.least(engine, "ready rows, of the server's binary COPY", copy_s / ours_s, 0.5)
        say(f"        {engine}: {SERIES / ours_s:.0f} ready rows a second")


def _thousands(source: Commits, numbers: Iterator[int]) -> list[list[tuple[Any, ...]]]:
    """One more commit, in parts."""
    made = source.rows(next(numbers))
    return [made[at : at + 1000] for at in range(0, SERIES, 1000)]


def _insert(store: Store, batches: list[list[dict[str, Any]]]) -> None:
    for batch in batches:
        store._door.write(lambda connection, batch=batch: insert(connection, schema.result, batch, tail=_NEW))


def _copies(raw: Any, source: Commits, numbers: Iterator[int], turns: int) -> float:
    def copy(parts: list[bytes]) -> None:
        with (
            raw.cursor() as cursor,
            cursor.copy(f"COPY result ({', '.join(COLUMNS)}) FROM STDIN (FORMAT binary)") as to,
        ):
            to.write(b"PGCOPY\n\xff\r\n\0" + bytes(8) + b"".join(parts) + b"\xff\xff")
        raw.commit()

    return median(seconds(lambda: copy(list(source.binary(next(numbers))))) for _ in range(turns))


def _jobs(first: int) -> list[FinishedJob]:
    """Jobs as another tool's file gives them: one attempt, three series each."""
    made: list[FinishedJob] = []
    method, device = Method(), build.device()
    for number in range(first, first + _JOBS):
        key = f"operation{number % 100}[n={number}]"
        case = build.case(key, suite="imported", backend="cuda")
        attempt: JobResult = build.job(case_key=key, suite="imported")
        answers = [_answer(variant, key) for variant in case.variants]
        made.append(
            FinishedJob(
                case=case,
                attempts=((attempt, device),),
                answers=tuple((one, method) for one in answers),
            )
        )
    return made


def _answer(variant: str, key: str) -> Summary:
    """Of which everything follows that follows of a judged one."""
    time_s = 2e-5 if variant == "unfused" else 1e-5
    values: dict[str, Any] = {
        "time_s": time_s,
        "bandwidth_bytes_per_s": 12288 / time_s,
        "flops_per_s": 2048 / time_s,
        "peak_utilization": None,
    }
    if variant == "unfused":
        values |= {"speedup": None, "fusion_gain": None, "expected_gain": None, "fusion_efficiency": None}
    return build.summary(variant=variant, case_key=key, suite="imported", **values)


def _submit(table: Table, engine: str, make: Make, turns: int) -> None:
    """Structs, checked and looked up, against the rows that this leaves, given to the driver; and the same once more.

    A batch is one transaction of the bare driver, with every row of every table that the batch has brought.
    """
    uid = build.run().uid
    first: list[float] = []
    again: list[float] = []
    bare: list[float] = []
    with Store.open(make("submit")) as store, Store.open(make("yardstick")) as other, closing(_raw(other)) as raw:
        store.begin_run(build.run())
        there = _contents(store)
        _write_rows(engine, raw, there)
        for turn in range(turns):  # they take turns
            jobs = _jobs(turn * _JOBS)
            first.append(seconds(lambda jobs=jobs: store.add_finished(uid, jobs)))
            again.append(seconds(lambda jobs=jobs: store.add_finished(uid, jobs)))
            now = _contents(store)
            new = {name: [row for row in now[name] if row not in known] for name, known in _sets(there).items()}
            bare.append(seconds(lambda new=new: _write_rows(engine, raw, new)))
            there = now
        assert _contents(other) == there
    table.least(engine, "submit with checks and look-ups, of the bare driver", median(bare) / median(first), 0.40)
    bound = 3 if engine == "sqlite" else 2
    table.least(engine, "first submit, of the same once more", median(first) / median(again), bound)


def _contents(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    """All rows, by table."""

    def read(connection: sa.Connection) -> dict[str, list[tuple[Any, ...]]]:
        tables = schema.metadata.sorted_tables
        ordered = [of.select().order_by(*of.primary_key.columns) for of in tables]
        return {
            of.name: [tuple(row) for row in connection.execute(question)]
            for of, question in zip(tables, ordered, strict=True)
        }

    return store.read(read)


def _sets(rows: dict[str, list[tuple[Any, ...]]]) -> dict[str, set[tuple[Any, ...]]]:
    return {name: set(of) for name, of in rows.items()}


def _write_rows(engine: str, raw: Any, written: dict[str, list[tuple[Any, ...]]]) -> None:
    """In one transaction."""
    if engine == "sqlite":
        raw.execute("BEGIN IMMEDIATE")
    for of in schema.metadata.sorted_tables:
        if not written[of.name]:
            continue
        statement = _statement(engine, of.name, [column.name for column in of.columns])
        if engine == "sqlite":
            raw.executemany(statement, written[of.name])
        else:
            with raw.cursor() as cursor:
                cursor.executemany(statement, written[of.name])
    raw.execute("COMMIT") if engine == "sqlite" else raw.commit()


def _producers(table: Table, engine: str, make: Make, batches: int) -> None:
    """Eight processes, each with batches of 100 rows, whose keys overlap on PostgreSQL."""
    with Store.open(make("producers")) as store:
        of = dimensions(store, 80)
        context = multiprocessing.get_context("fork")  # what they import takes longer than what they do
        gate = context.Barrier(9)
        answers = context.Queue()
        queue = context.Queue(32) if engine == "sqlite" else None
        url = store._door.address.url.render_as_string(hide_password=False)
        workers = [
            context.Process(target=_produce, args=(engine, url, of, number, batches, gate, queue, answers))
            for number in range(8)
        ]
        for worker in workers:
            worker.start()
        gate.wait()
        start = time.perf_counter()
        if queue is not None:
            for _ in range(8 * batches):
                batch = queue.get()
                store._door.write(lambda c, batch=batch: insert_tuples(c, schema.result, COLUMNS, batch, tail=_NEW))
        said = [answers.get() for _ in workers]
        spent = time.perf_counter() - start
        for worker in workers:
            worker.join()
        rows_there = store.read(lambda c: c.execute(sa.select(sa.func.count()).select_from(schema.result)).scalar_one())
        expected = (8 if engine == "sqlite" else 1) * batches * 100
        table.most(engine, "8 producers, batches of 100: rows lost", expected - rows_there, 0)
        table.most(engine, "8 producers, batches of 100: errors", sum(said), 0, note="keys overlap" * (queue is None))
        if queue is not None:
            raw = _raw(store)
            # as many rows in the same order, of further commits
            parts = [part for number in range(8) for part in _parts(of, number, 17 + 2 * number, batches)]
            bare = seconds(lambda: _batches(engine, raw, _statement(engine, "result", COLUMNS), parts))
            raw.close()
            table.least(engine, "8 producers through one writer, of one bare writer", bare / spent, 0.60)


def _produce(engine: str, url: str, of: Any, number: int, batches: int, gate: Any, queue: Any, answers: Any) -> None:
    errors = 0
    parts = _parts(of, number, 1 + 2 * number if engine == "sqlite" else 1, batches)
    if engine == "sqlite":
        gate.wait()
        for part in parts:
            queue.put(part)
    else:
        with Store.open(url, create=False) as store:
            gate.wait()
            for part in parts:
                try:
                    store._door.write(lambda c, part=part: insert_tuples(c, schema.result, COLUMNS, part, tail=_NEW))
                except Exception:  # noqa: BLE001 (any is an error of this line)
                    errors += 1
    answers.put(errors)


def _parts(of: Any, number: int, first: int, batches: int) -> list[list[tuple[Any, ...]]]:
    """Batches of two commits, in an order of this number's own."""
    source = Commits(of, seed=number)
    made = [row for commit in range(first, first + 2) for row in source.rows(commit)]
    parts = [made[at : at + 100] for at in range(0, batches * 100, 100)]
    random.Random(number).shuffle(parts)  # noqa: S311 (an order, not a secret)
    return parts


def append(store: Store, commits: int, effort: Effort) -> float:
    """Seconds of a further commit, sorted by key, in one transaction; each is taken away again."""
    source = Commits(dimensions(store, 0))
    taken: list[float] = []
    for commit in range(commits + 1, commits + 1 + min(7, effort.turns)):
        batch = [dict(zip(COLUMNS, row, strict=True)) for row in source.rows(commit)]
        taken.append(
            seconds(lambda batch=batch: store._door.write(lambda c: insert(c, schema.result, batch, tail=_NEW)))
        )
    gone = schema.result.delete().where(schema.result.c.run_side_id > commits)
    store._door.write(lambda connection: connection.execute(gone))
    return median(taken)

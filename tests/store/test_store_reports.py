"""Fifteen public bug reports of other programs' databases that this one survives.

| report | symptom there | tests here |
| --- | --- | --- |
| optuna 820, 4994 | "database is locked" with parallel workers | `test_eight_processes_write_at_once` |
| optuna 815 | a corrupt file on a shared disk | `test_network_file_systems_are_refused` (errors) |
| optuna 3227, 3206 | single precision; infinity on one engine only | `test_a_time_keeps_every_bit` (round_trip), `test_what_is_not_finite_is_refused_by_name` (write), `test_the_ends_of_the_doubles` |
| mlflow 25640, 26108 | NaN stored as 0 wins | `test_what_failed_is_never_the_best` |
| mlflow 24923, 4353, 24332 | deadlocks of overlapping batches | `test_eight_processes_start_on_an_empty_database_and_deliver_the_same` |
| llvm-lnt 210 | duplicate machines | the same |
| optuna 4621, hydraflow 245 | first start of many processes | the same |
| optuna 4015, 2179 | an interrupted upgrade leaves something behind | `test_an_upgrade_that_is_interrupted_anywhere`, `test_an_upgrade_that_is_killed` |
| fasttrackml 211 | a rebuild deletes all child rows | `test_down_to_an_old_schema_and_up_again_keeps_every_row` (upgrade) |
| mlflow 14465 | an upgrade lost indexes | `test_an_upgraded_database_is_a_fresh_one` |
| mlflow 3374, 2923 | two tools, one version table | `test_tables_of_others_on_a_shared_server_stay` (migrate) |
| conbench 1549, 978 | a list reads 80 327 rows to return 653 | `test_no_question_reads_a_whole_table_of_facts` (query), `test_frames_are_read_by_keys` |
| codespeed 13, optuna 763 | 5 714 statements for a page | `test_the_number_of_statements_does_not_grow_with_the_run` (query), `test_a_frame_takes_as_many_statements_for_many_runs` |
| cpython 106878, sqlalchemy 5167 | NumPy's integers stored as bytes | `test_numpy_scalars_are_refused_by_name`, `test_strict_tables_refuse_numpys_bytes` (write) |
| arrow-adbc 581, connector-x 211 | types guessed from the first rows | `test_every_reader_gives_the_same_types` |
"""  # noqa: E501 (a table)

import gzip
import itertools
import multiprocessing
import os
import random
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import sqlalchemy as sa
import store_builders as build

import perftrack
from perftrack.store import Store, address, frames_filters, frames_table, migrate, schema, written
from perftrack.store.door import Door

DATA = Path(__file__).parents[1] / "data"
JOBS = 12
BATCHES = 60
EVERY = 2
"""Statements between two that an upgrade is interrupted at."""


def _together(work: Callable[..., Any], count: int, *given: Any) -> list[Any]:
    """Call `work` in that many processes at once; what each gave."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["store_builders", "perftrack.store", "perftrack.store.migrate", "psycopg"])
    with context.Pool(count) as pool:
        return pool.starmap(work, [(number, *given) for number in range(count)], chunksize=1)


def _many_batches(number: int, url: str) -> int:
    with Store.open(url, create=False) as store:
        uid = f"{number:032x}"
        store.begin_run(build.run(number, uid=uid))
        jobs = (build.job(round=1 + at) for at in range(BATCHES))
        return sum(store.add_job(uid, build.case(), job, build.device()) for job in jobs)


def test_eight_processes_write_at_once(url: str) -> None:
    assert _together(_many_batches, 8, url) == [BATCHES] * 8
    with Store.open(url) as store:
        assert [len(store.jobs(f"{number:032x}")) for number in range(8)] == [BATCHES] * 8


def _first_start(number: int, url: str) -> int:
    keys = [f"add[n={at}]" for at in range(JOBS)]
    random.Random(number).shuffle(keys)  # noqa: S311 (an order, not a secret)
    with Store.open(url) as store:
        store.begin_run(build.run())
        return sum(
            store.add_job(build.run().uid, build.case(key), build.job(case_key=key), build.device()) for key in keys
        )


def test_eight_processes_start_on_an_empty_database_and_deliver_the_same(empty_url: str) -> None:
    assert sum(_together(_first_start, 8, empty_url)) == JOBS
    with Store.open(empty_url, create=False) as store:
        assert len(store.jobs(build.run().uid)) == JOBS
        for table, count in (("device", 1), ("device_class", 1), ("kernel_case", JOBS), ("run", 1), ("revision", 2)):
            question = sa.select(sa.func.count()).select_from(schema.metadata.tables[table])
            assert store.read(lambda connection, q=question: connection.scalar(q)) == count


@pytest.mark.parametrize("value", [5e-324, sys.float_info.min, 0.1 + 0.2, 9.999999999999999e299])
def test_the_ends_of_the_doubles(store: Store, value: float) -> None:
    store.begin_run(build.run())
    uid = build.run().uid
    store.add_job(uid, build.case(), build.job(), build.device())
    summary = build.summary(time_s=value, host_s=value)
    store.finish_run(uid, state="complete", finished_us=1, summaries=[summary], findings=[])
    assert store.load_run(uid).summaries == [summary]


def test_what_failed_is_never_the_best(store: Store, url: str) -> None:
    store.begin_run(build.run())
    uid = build.run().uid
    for key in ("add[n=1]", "add[n=2]"):
        store.add_job(uid, build.case(key), build.job(case_key=key), build.device())
    summaries = [build.failed_summary(case_key="add[n=1]"), build.summary(case_key="add[n=2]")]
    store.finish_run(uid, state="complete", finished_us=1, summaries=summaries, findings=[])
    with perftrack.open(url) as database:
        results = database.results()
        assert results["median_us"].min() == pytest.approx(10.0)
        assert results.sort_values("median_us").iloc[0]["case"] == "add[n=2]"
        assert database.sql("SELECT min(time_s) AS best, count(time_s) AS n FROM results").iloc[0].tolist() == [1e-5, 1]
        assert database.speedups().dropna().index.get_level_values("case").tolist() == ["add[n=2]"]


# Upgrades


def _old_file(folder: Path, of: str) -> Path:
    path = folder / "old.db"
    path.write_bytes(gzip.decompress((DATA / f"perftrack-{of}.db.gz").read_bytes()))
    return path


def _described(url: str) -> dict[str, Any]:
    """All that a schema is made of, in no order, and the rows."""

    def read(connection: sa.Connection) -> dict[str, Any]:
        look = sa.inspect(connection)
        found: dict[str, Any] = {"views": sorted(look.get_view_names()), "version": migrate.version(connection)}
        for table in look.get_table_names():
            columns = [{name: str(value) for name, value in column.items()} for column in look.get_columns(table)]
            found[table] = {
                "columns": sorted(columns, key=str),
                "key": look.get_pk_constraint(table),
                "foreign": sorted(look.get_foreign_keys(table), key=str),
                "unique": sorted(look.get_unique_constraints(table), key=str),
                "checks": sorted(look.get_check_constraints(table), key=str),
                "indexes": sorted(look.get_indexes(table), key=str),
                "options": look.get_table_options(table),
            }
        return found

    with closing(Door(address.parse(url))) as door:
        return door.read(read)


def _at_schema(empty_url: str, folder: Path, of: str) -> str:
    """An old database with its rows; on PostgreSQL one without any."""
    if empty_url.startswith("sqlite"):
        return f"sqlite:///{_old_file(folder, of)}"
    with closing(Door(address.parse(empty_url))) as door:
        door.write(lambda connection: migrate.migrate(connection, of))
    return empty_url


def test_every_schema_has_a_file_that_was_written_with_it() -> None:
    assert sorted(path.name for path in DATA.glob("perftrack-*.db.gz")) == [
        f"perftrack-{of}.db.gz" for of in schema.REVISIONS
    ]


@pytest.fixture
def fresh(request: pytest.FixtureRequest, empty_url: str) -> str:
    """Address of a database of the same engine that was made at the newest schema."""
    if empty_url.startswith("sqlite"):
        return f"sqlite:///{request.getfixturevalue('sqlite_template')}"
    name = request.getfixturevalue("postgresql_template")
    return request.getfixturevalue("postgresql").replace("/postgres?", f"/{name}?")


@pytest.mark.parametrize("of", schema.REVISIONS)
def test_an_upgraded_database_is_a_fresh_one(empty_url: str, fresh: str, tmp_path: Path, of: str) -> None:
    old = _at_schema(empty_url, tmp_path, of)
    migrate.upgrade(address.parse(old))
    assert _described(old) == _described(fresh)


class _InterruptedError(Exception):
    pass


def _interrupt(connection: sa.Connection, at: int) -> None:
    """Raise before the statement of that number."""
    numbers = itertools.count(1)

    def count(*_: Any) -> None:
        if next(numbers) == at:
            raise _InterruptedError

    sa.event.listen(connection, "before_cursor_execute", count)


def test_an_upgrade_that_is_interrupted_anywhere(empty_url: str, tmp_path: Path) -> None:
    """On the way from the first schema: nothing is left behind, and the next one succeeds."""
    old = _at_schema(empty_url, tmp_path, schema.REVISIONS[0])
    before = _described(old)
    interrupted = 0
    with closing(Door(address.parse(old))) as door:
        for at in range(1, 1000, EVERY):

            def climb(connection: sa.Connection, at: int = at) -> None:
                _interrupt(connection, at)
                migrate.migrate(connection, migrate.HEAD)

            try:
                door.write(climb)
            except _InterruptedError:
                interrupted += 1
            else:
                break
            assert door.read(migrate.version) == schema.REVISIONS[0]
            if interrupted in {3, 6}:
                assert _described(old) == before
    assert interrupted > 10
    with Store.open(old, create=False) as store:
        assert store.problems() == []


def _upgrade_until(url: str, at: int) -> None:
    numbers = itertools.count(1)

    def count(*_: Any) -> None:
        if next(numbers) == at:
            os.kill(os.getpid(), signal.SIGKILL)

    sa.event.listen(sa.Engine, "before_cursor_execute", count)
    migrate.upgrade(address.parse(url))


@pytest.mark.parametrize("at", [20])
def test_an_upgrade_that_is_killed(empty_url: str, tmp_path: Path, at: int) -> None:
    old = _at_schema(empty_url, tmp_path, schema.REVISIONS[0])
    before = _described(old)
    context = multiprocessing.get_context("forkserver")
    child = context.Process(target=_upgrade_until, args=(old, at))
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    assert _described(old) == before
    migrate.upgrade(address.parse(old))
    with Store.open(old, create=False) as store:
        assert store.problems() == []


# Reading


@pytest.fixture
def filled(store: Store, url: str) -> Iterator[Any]:
    for number in range(1, 21):
        run = build.run(number, head=build.revision(number), base=None)
        store.begin_run(run)
        store.add_job(run.uid, build.case(), build.job(), build.device())
        # the first times are unknown: what guesses types from the first rows guesses wrong
        some = {"host_s": None, "clock_mhz": None if number < 15 else 1500.5}
        summaries = [build.summary(variant=variant, **some) for variant in build.case().variants]
        store.finish_run(run.uid, state="complete", finished_us=1, summaries=summaries, findings=[])
    with perftrack.open(url) as database:
        yield database


def _statements(store: Store, work: Callable[[], Any]) -> list[tuple[str, Any]]:
    said: list[tuple[str, Any]] = []

    def note(*details: Any) -> None:
        said.append((details[2], details[3]))

    sa.event.listen(store._door._reader, "before_cursor_execute", note)
    work()
    sa.event.remove(store._door._reader, "before_cursor_execute", note)
    return said


def test_a_frame_takes_as_many_statements_for_many_runs(filled: Any) -> None:
    few = _statements(filled._store, lambda: filled.results(last=2))
    many = _statements(filled._store, lambda: filled.results(last=20))
    assert len(few) == len(many) < 25
    assert len(_statements(filled._store, lambda: filled.latest("0000001"))) < 80


def test_frames_are_read_by_keys(tmp_path: Path) -> None:
    with Store.open(str(tmp_path / "perf.db")) as store:
        for number in range(1, 21):
            run = build.run(number, head=build.revision(number), base=None)
            store.begin_run(run)
            store.add_job(run.uid, build.case(), build.job(), build.device())
            summaries = [build.summary(variant=variant) for variant in build.case().variants]
            store.finish_run(run.uid, state="complete", finished_us=1, summaries=summaries, findings=[])
        store._door.write(lambda connection: connection.exec_driver_sql("ANALYZE"))
        for filters in ({"case": "add*"}, {"run": "latest"}, {"last": 3}, {"since": "0000013"}, {"branch": "none"}):
            where = frames_filters.where(store, frames_filters.Filters(**filters))
            question = frames_table.facts(("median_us", "verdict", "vectorisation"))
            text = written.filled(store.dialect, question, written.conditions(store.dialect, where))
            steps = store.read(lambda c, t=text: c.exec_driver_sql(f"EXPLAIN QUERY PLAN {t}").fetchall())
            assert [step[3] for step in steps if step[3].startswith(("SCAN result", "SCAN finding"))] == []


def test_every_reader_gives_the_same_types(filled: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through ADBC, where that is installed, and through the driver; full, NULL first, all NULL, and empty."""
    frames = [filled.results(), filled.results(last=1), filled.results(case="none")]
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql", None)
    again = [filled.results(), filled.results(last=1), filled.results(case="none")]
    for one, other in zip(frames, again, strict=True):
        pd.testing.assert_frame_equal(one, other)
    kinds = [frame.dtypes.drop(frame.select_dtypes("category").columns) for frame in frames]
    assert kinds[0].equals(kinds[1])
    assert kinds[0].equals(kinds[2])
    assert frames[0]["host_us"].isna().all()
    assert frames[0]["clock_mhz"].isna().tolist() == [True] * 42 + [False] * 18


def test_adbc_never_opens_a_file(tmp_path: Path) -> None:
    """Its own SQLite would drop the locks of ours, and the log with what is committed there, when it closes it."""
    with Store.open(str(tmp_path / "perf.db")) as store:
        assert store.parts("SELECT id FROM run", list) is None

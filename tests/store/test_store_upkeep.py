"""Looking after a database: is it whole, a copy of it, samples that expire, cases that were renamed."""

import random
import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
import store_builders as build
from click.testing import CliRunner, Result

import perftrack
from perftrack.cli.app import app
from perftrack.errors import UsageError
from perftrack.judge.value import Interval
from perftrack.model import Status
from perftrack.store import Store, address, schema
from perftrack.store.door import Door

OLD, NEW = build.case().key, "plus[dtype=float32,n=1024]"
STARTED_US = build.run().started_us


def _db(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["db", *arguments], standalone_mode=False)


def _measure(store: Store, number: int = 1, key: str = OLD, *, speedup: float = 2.0, **changes) -> str:
    run = build.run(number, **({"head": build.revision(number), "base": build.revision(number - 1)} | changes))
    store.begin_run(run)
    case = build.case(key)
    store.add_job(run.uid, case, build.job(case_key=key), build.device())
    summaries = [
        build.summary(side, case_key=key, speedup=Interval(speedup, speedup, speedup)) for side in ("head", "base")
    ]
    finding = build.finding(case_key=key)
    store.finish_run(run.uid, state="complete", finished_us=STARTED_US, summaries=summaries, findings=[finding])
    return run.uid


def _sql(url: str, *statements: str) -> None:
    with closing(Door(address.parse(url))) as door:
        for statement in statements:
            door.write(lambda connection, text=statement: connection.exec_driver_sql(text))


# check


def test_a_sound_database(url: str) -> None:
    with Store.open(url) as store:
        _measure(store)
        label = store.label
    done = _db("check", "--db", url)
    assert (done.return_value, done.output) == (0, f"{label}: sound\n")


def test_every_measured_number_is_refused_when_it_is_nan_and_has_its_unit_in_its_name() -> None:
    ratios = ("speedup", "fusion_", "expected_gain", "utilization", "change", "min_effect", "detectable", "occupancy")
    others = ("peak_utilization", "baseline_change", "error_", "level")
    for table in schema.metadata.sorted_tables:
        checked = " ".join(str(one.sqltext) for one in table.constraints if isinstance(one, sa.CheckConstraint))
        for column in table.c:
            if isinstance(column.type, sa.Double):
                assert f"{column.name} >" in checked, f"{table.name}.{column.name}"
                assert column.name.endswith(("_s", "_mhz")) or column.name.startswith((*ratios, *others))


def test_a_schema_that_was_changed_by_hand(own_url: str) -> None:
    _sql(
        own_url,
        "DROP VIEW findings",
        "DROP INDEX ix_run_started_us",
        "ALTER TABLE device ADD COLUMN colour text",
        "CREATE TABLE theirs (id integer)",
    )
    done = _db("check", "--db", own_url)
    assert done.return_value == 3
    *lines, last = done.output.splitlines()
    assert sorted(lines) == [
        "schema: column device.colour is not ours",
        "schema: index ix_run_started_us is missing",
        "schema: there is no view findings",
    ]
    assert last.endswith(": 3 problems")


def test_rows_without_their_parent(own_url: str) -> None:
    with Store.open(own_url) as store:
        _measure(store)
    if own_url.startswith("sqlite"):
        with closing(sqlite3.connect(address.parse(own_url).path or "")) as connection, connection:
            connection.execute("DELETE FROM environment")  # foreign keys are off unless a program asks for them
    else:
        import psycopg

        with psycopg.connect(own_url) as connection:
            connection.execute("SET session_replication_role = replica")
            connection.execute("DELETE FROM environment")
    done = _db("check", "--db", own_url)
    assert done.return_value == 3
    assert "reference: 1 rows of job_attempt name a row of environment that is not there" in done.output
    assert "reference: 1 rows of setting name a row of environment that is not there" in done.output


def test_a_lost_check_and_what_slipped_in_through_it(own_url: str) -> None:
    with Store.open(own_url) as store:
        _measure(store)
    if own_url.startswith("sqlite"):
        with closing(sqlite3.connect(address.parse(own_url).path or "")) as connection, connection:
            connection.execute("PRAGMA ignore_check_constraints=1")
            connection.execute("UPDATE result SET time_s = 0")
        expected = "integrity: CHECK constraint failed in result"
    else:
        _sql(own_url, "ALTER TABLE result DROP CONSTRAINT ck_result_time_s")
        expected = "schema: result lacks the check ck_result_time_s"
    done = _db("check", "--db", own_url)
    assert (done.return_value, done.output.splitlines()[0]) == (3, expected)


def test_a_damaged_file(tmp_path: Path, sqlite_template: Path) -> None:
    path = Path(shutil.copy(sqlite_template, tmp_path / "perf.db"))
    with Store.open(str(path)) as store:
        for number in range(1, 4):
            _measure(store, number)
    data = bytearray(path.read_bytes())
    page = len(data) // 2 // 4096 * 4096
    data[page : page + 4096] = b"\xff" * 4096
    path.write_bytes(data)
    done = CliRunner().invoke(app, ["db", "check", "--db", str(path)], standalone_mode=False)
    assert done.return_value == 3 or getattr(done.exception, "exit_code", 0) == 3
    assert "integrity: " in done.output or "is damaged" in str(done.exception)


# backup


def test_a_copy_while_another_writes_is_one_instant(tmp_path: Path, sqlite_template: Path) -> None:
    path = Path(shutil.copy(sqlite_template, tmp_path / "perf.db"))
    with Store.open(str(path)) as store:
        _measure(store)
        stop = threading.Event()

        def write() -> None:
            number = 2
            while not stop.is_set():
                _measure(store, number)
                number += 1

        writer = threading.Thread(target=write)
        writer.start()
        try:
            copies = [tmp_path / f"copy-{number}.db" for number in range(5)]
            outputs = [_db("backup", str(copy), "--db", str(path)).output for copy in copies]
        finally:
            stop.set()
            writer.join()
    assert outputs[0] == f"{path} copied to {copies[0]}, {copies[0].stat().st_size} bytes\n"
    counts = []
    for copy in copies:
        with Store.open(str(copy), create=False) as store:
            assert store.problems() == []
            entries = store.runs()
            assert all(entry.jobs == 1 for entry in entries[1:])
            counts.append(len(entries))
    assert counts == sorted(counts)
    assert counts[0] >= 1
    assert not list(tmp_path.glob(".*"))


def test_a_copy_never_replaces_a_file(tmp_path: Path, sqlite_template: Path) -> None:
    there = tmp_path / "there"
    there.write_text("mine")
    assert "exists already: name a new file" in str(_db("backup", str(there), "--db", str(sqlite_template)).exception)
    assert there.read_text() == "mine"
    nowhere = _db("backup", str(tmp_path / "no" / "copy.db"), "--db", str(sqlite_template)).exception
    assert isinstance(nowhere, UsageError)
    assert "No such file" in str(nowhere)


def test_a_server_has_its_own_way(postgresql_url: str, tmp_path: Path) -> None:
    error = _db("backup", str(tmp_path / "copy"), "--db", postgresql_url).exception
    assert isinstance(error, UsageError)
    assert "pg_dump" in str(error)


# prune


def test_samples_expire_into_quantiles_and_nothing_else_does(store: Store, url: str) -> None:
    uid = _measure(store, base=build.revision(6))
    never = build.run(2)
    store.begin_run(never)
    store.add_job(never.uid, build.case(), build.job(), build.device())
    with perftrack.open(url) as database:
        results, rounds, findings = database.results(), database.rounds(uid), store.load_run(uid).findings

        dry = _db("prune", "--dry-run", "--db", url).output.splitlines()
        assert dry[0].startswith("raw samples of 6 measurements in 1 run would expire: ")
        assert dry[1].startswith("1 run as old, never completed: samples kept (`perftrack submit --resume RUN`)")
        assert store.jobs(uid)[0].measurements[0].samples_s

        done = _db("prune", "--db", url).output.splitlines()
        assert done[0] == dry[0].replace("would expire", "expired")
        assert int(done[0].rpartition(": ")[2].removesuffix(" bytes")) > 600
        assert _db("prune", "--db", url).output.startswith("raw samples of 0 measurements in 0 runs expired: 0 bytes")

        assert database.results().equals(results)
        assert database.rounds(uid).equals(rounds)
    assert store.load_run(uid).findings == findings
    assert not any(one.samples_s for one in store.jobs(uid)[0].measurements)
    assert store.jobs(never.uid) == [build.job()]
    assert not store.add_job(uid, build.case(), build.job(), build.device())
    assert store.problems() == []


def test_the_pages_of_expired_samples_go_back_to_the_file_system(tmp_path: Path, sqlite_template: Path) -> None:
    path = Path(shutil.copy(sqlite_template, tmp_path / "perf.db"))
    with Store.open(str(path)) as store:
        _measure(store)
        noise = random.Random(1)  # noqa: S311 (it must not pack well)
        for number in range(2, 12):
            samples = tuple(noise.random() for _ in range(1000))
            whole = build.job(round=number, measurements=(build.measurement(samples_s=samples, blocks=(0,) * 1000),))
            store.add_job(build.run().uid, build.case(), whole, build.device())
        pages = _pages(store)
        store.expire(STARTED_US * 2)
        assert _pages(store)[0] < pages[0] - 5
        assert _pages(store)[1] == 0


def _pages(store: Store) -> list[int]:
    names = ("page_count", "freelist_count")
    return store.read(lambda connection: [connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in names])


def test_what_stays_of_samples_leaves_bad_blocks_out(store: Store, url: str) -> None:
    run = build.run()
    store.begin_run(run)
    odd = build.measurement(samples_s=(1e-5, 2e-5, 3e-5, 9e-5), blocks=(0, 0, 2, 1))
    lost = build.measurement(variant="unfused", status=Status.UNSTABLE)
    store.add_job(run.uid, build.case(), build.job(measurements=(odd, lost)), build.device())
    store.finish_run(run.uid, state="complete", finished_us=STARTED_US, summaries=[], findings=[])
    store.expire(STARTED_US * 2)

    def read(connection: sa.Connection) -> dict[str, tuple[float | int | None, ...]]:
        rows = connection.execute(sa.select(schema.measurement)).mappings()
        return {row["variant"]: tuple(row[name] for name in ("time_s", "q10_s", "q90_s", "samples")) for row in rows}

    kept = store.read(read)
    # block medians are 15 and 30 us; samples 10, 20 and 30 us
    assert kept["fused"] == pytest.approx((2.25e-5, 1.2e-5, 2.8e-5, 4))
    assert kept["unfused"] == (None, None, None, 50)


@pytest.mark.parametrize(("keep", "left"), [("0d", 0), ("999999d", 6)])
def test_newer_samples_are_kept(store: Store, url: str, keep: str, left: int) -> None:
    uid = _measure(store)
    assert _db("prune", "--keep-samples", keep, "--db", url).exception is None
    assert sum(bool(one.samples_s) for one in store.jobs(uid)[0].measurements) == left


@pytest.mark.parametrize("keep", ["90", "d", "-1d", "3 months", "9999999d"])
def test_a_span_that_is_none(keep: str) -> None:
    error = _db("prune", f"--keep-samples={keep}", "--db", "any.db").exception
    assert isinstance(error, UsageError)
    assert "write a number of days, e.g. 90d" in str(error)


# alias


def test_a_renamed_case_keeps_its_history(store: Store, url: str) -> None:
    for number, key, speedup in ((1, OLD, 2.0), (2, OLD, 2.1), (3, NEW, 2.2)):
        _measure(store, number, key, speedup=speedup)
    done = _db("alias", OLD, NEW, "--db", url)
    assert done.output == f"elementwise: {OLD} -> {NEW}\n"
    with perftrack.open(url) as database:
        assert set(database.results()["case"]) == {NEW}
        level = database.speedups().loc[("elementwise", NEW, build.device().device_class)]
        # what was measured last of a commit: as the base of the next one
        assert level.loc[[1, 2, 3]].tolist() == [2.1, 2.2, 2.2]
        assert len(database.history(NEW)) == len(database.history(OLD)) == len(database.history("plus*")) == 6
        assert len(database.history("add*")) == 0
        before, after = (build.revision(number).sha for number in (1, 2))
        assert database.compare(before, after).loc[("elementwise", NEW)]["paired"].tolist() == [True]
        unpaired = database.compare(before, build.revision(3).sha)
        assert unpaired.index.get_level_values("case").tolist() == [NEW]
        assert unpaired["speedup_base"].tolist() == [2.1]
    assert {point.summary.case_key for point in store.history(OLD)} == {NEW}
    assert len(store.history(NEW, suite_name="elementwise")) == 6
    assert store.history(NEW, suite_name="other") == []
    # a run's own report has the names of then
    assert {one.case_key for one in store.load_run(build.run(1).uid).summaries} == {OLD}

    ended = _db("alias", OLD, OLD, "--db", url)
    assert ended.output == f"elementwise: {OLD} has its own name\n"
    assert {point.summary.case_key for point in store.history(OLD)} == {OLD}


def test_a_renamed_benchmark_takes_its_cases_along(store: Store) -> None:
    for number, key in enumerate(("add[n=1]", "add[n=2]", "add[n=3]", "plus[n=1]", "plus[n=2]", "adder[n=1]"), 1):
        _measure(store, number, key)
    assert store.rename("add", "plus") == [
        ("elementwise", "add[n=1]", "plus[n=1]"),
        ("elementwise", "add[n=2]", "plus[n=2]"),
    ]
    _measure(store, 9, "sum[n=1]")
    store.rename("plus[n=1]", "sum[n=1]")
    assert len(store.history("add[n=1]")) == len(store.history("plus[n=1]")) == len(store.history("sum[n=1]")) == 6
    with pytest.raises(UsageError, match=r"sum\[n=1\] is shown as|plus\[n=1\] is shown as sum\[n=1\] already"):
        store.rename("sum[n=1]", "plus[n=1]")
    assert store.problems() == []


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("ad", "plus", r"no stored case or benchmark is called 'ad' \(did you mean 'add'\?\)"),
        ("add", "plus", r"no stored case or benchmark of elementwise is called 'plus': measure it first"),
        ("", "add", "no stored case or benchmark is called ''"),
    ],
)
def test_names_that_are_none(store: Store, old: str, new: str, words: str) -> None:
    _measure(store)
    with pytest.raises(UsageError, match=words):
        store.rename(old, new)


def test_views_for_tools_that_read_sql(store: Store) -> None:
    _measure(store, 7)
    _measure(store, 8, NEW)
    store.rename(OLD, NEW)

    def read(connection: sa.Connection) -> tuple[list, list]:
        results = "SELECT sha, commit_seq, measured_at, side, case_key, verdict, time_s FROM results ORDER BY 2, 4"
        findings = "SELECT base_sha, case_key, verdict, head_s FROM findings ORDER BY commit_seq"
        return tuple([tuple(row) for row in connection.exec_driver_sql(text)] for text in (results, findings))

    results, findings = store.read(read)
    assert [(row[1], *row[3:6]) for row in results] == [
        (6, "base", NEW, None),
        (7, "base", NEW, None),
        (7, "head", NEW, "slower"),
        (8, "head", NEW, "slower"),
    ]
    instants = {str(row[2])[:16].replace("T", " ") for row in results}
    assert instants == {"2023-11-14 22:15"}
    assert findings[0] == (build.revision(6).sha, NEW, "slower", 1.1e-5)


def test_a_case_of_the_view_is_known_before_its_results_are_read(tmp_path: Path) -> None:
    question = "SELECT time_s FROM results WHERE suite = 'elementwise' AND case_key = 'add[n=1]' AND variant = 'fused'"
    with Store.open(str(tmp_path / "new.db")) as store:
        plan = store.read(lambda connection: connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {question}").all())
    read = [row[3].split()[1] for row in plan if row[3].startswith(("SEARCH", "SCAN"))]
    assert read.index("case_alias") < read.index("r")

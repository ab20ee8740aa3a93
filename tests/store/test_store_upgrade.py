"""Databases that an older version of the program has filled: `tests/data/perftrack-SCHEMA.db.gz`, one for each schema.

That of 0001 was written by commit 7a15d52: one run of two cases on one GPU, two rounds of the one, two attempts at
the other, of which the first failed. That of 0002 by commit cde577a: one run of one case on one GPU, confirmed slower
and less accurate. That of 0003 by commit c0dc1b4: the same as a regression, acknowledged. That of 0005 was written
when that schema was made: one run of two cases on one GPU, judged, one of them failed, and one time of a baseline
that is not the baseline's. That of 0006 is that of 0005 after the upgrade, since only a view is another.
"""

import gzip
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import sqlalchemy as sa
import store_builders as build
import store_process
from click.testing import CliRunner
from pandas.testing import assert_frame_equal

import perftrack
from perftrack.cli.app import app
from perftrack.errors import SchemaOutdatedError, StoreError
from perftrack.model import Accuracy, Method, Status, Verdict
from perftrack.store import Store, address, migrate, schema
from perftrack.store.door import Door
from perftrack.store.frames import Database

DATA = Path(__file__).parents[1] / "data"
UID = build.run().uid
Rows = dict[str, list[tuple[Any, ...]]]


def _old_file(folder: Path, of: str = "0001") -> Path:
    path = folder / "old.db"
    path.write_bytes(gzip.decompress((DATA / f"perftrack-{of}.db.gz").read_bytes()))
    return path


def _rows_of_file(path: Path) -> Rows:
    """The rows of every table that there is, in an order in which they may be inserted."""
    with closing(sqlite3.connect(path)) as connection:
        there = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        return {
            table.name: sorted(connection.execute(f"SELECT * FROM {table.name}").fetchall(), key=repr)  # noqa: S608
            for table in schema.metadata.sorted_tables
            if table.name in there
        }


@pytest.fixture
def old(empty_url: str, tmp_path: Path) -> str:
    """Address of the database of 0001."""
    return _filled(empty_url, tmp_path, "0001")


def _filled(empty_url: str, folder: Path, of: str) -> str:
    """Address of an old database; on PostgreSQL the same rows in tables of that schema."""
    path = _old_file(folder, of)
    if empty_url.startswith("sqlite"):
        return f"sqlite:///{path}"

    def fill(connection: sa.Connection) -> None:
        migrate.migrate(connection, of)
        for table, rows in _rows_of_file(path).items():
            for row in rows:
                connection.exec_driver_sql(f"INSERT INTO {table} VALUES ({', '.join(['%s'] * len(row))})", row)  # noqa: S608

    with closing(Door(address.parse(empty_url))) as door:
        door.write(fill)
    return empty_url


def test_an_older_schema_names_the_command(old: str) -> None:
    words = rf"schema 0001 and this perftrack needs {migrate.HEAD}: type `perftrack db upgrade`"
    for create in (True, False):
        with pytest.raises(SchemaOutdatedError, match=words):
            Store.open(old, create=create)
    with pytest.raises(SchemaOutdatedError, match=words):
        perftrack.open(old)


def _upgrade(url: str) -> migrate.Upgraded:
    with Store.open(url, create=False, checked=False) as store:
        return store.upgrade()


def test_what_was_measured_before_is_there_after_the_upgrade(old: str) -> None:
    done = _upgrade(old)
    assert (done.before, done.after) == ("0001", migrate.HEAD)
    with perftrack.open(old) as database:
        results, rounds = database.results(), database.rounds()
        level = database.speedups(variant="fused")
    fused = results[(results["variant"] == "fused") & (results["side"] == "head") & (results["status"] == "ok")].iloc[0]
    assert fused["median_us"] == pytest.approx(11 * 1.0015)
    assert (fused["speedup"], fused["rounds"], fused["registers"]) == (2.0, 2, 32)
    assert (fused["verdict"], fused["device"], fused["method_key"]) == (
        "slower",
        "NVIDIA-H200-141G",
        Method(version=1).digest,
    )
    assert len(results) == 5
    assert level.notna().any(axis=None)
    assert results[["clock_mhz", "build_first_s", "build_s"]].isna().all(axis=None)

    assert rounds["round"].tolist() == [1] * 4 + [2] * 4 + [1] * 3
    head = rounds[(rounds["variant"] == "fused") & (rounds["side"] == "head") & (rounds["status"] == "ok")]
    assert head["median_us"].tolist() == [pytest.approx(11 * (1 + 1e-3 * number) * 1.0005) for number in (1, 2)]
    assert head["clock_mhz"].tolist() == [1980.0] * 2
    assert np.isnan(head[["variant_clock_mhz", "build_s"]]).all(axis=None)


def test_a_run_of_before_is_whole_and_can_be_delivered_again(old: str) -> None:
    _upgrade(old)
    with Store.open(old) as store:
        stored = store.load_run(UID)
        attempts = store.attempts(UID)
        assert [(one.status, one.attempt, counts) for one, counts in attempts] == [
            (Status.OK, 1, True),
            (Status.OK, 1, True),
            (Status.FAILED, 1, False),
            (Status.OK, 2, True),
        ]
        assert attempts[0][0].measurements[0].samples_s[2] == 2e-5 * 1.001
        assert {one.verdict for one in stored.findings} == {Verdict.SLOWER, Verdict.WRONG}
        assert {(one.error_head, one.accuracy) for one in stored.findings} == {(None, Accuracy.NONE)}
        assert not store.begin_run(stored.run)
        cases, (card,) = {case.key: case for case in stored.cases}, stored.devices
        for attempt, _ in attempts:
            assert not store.add_job(UID, cases[attempt.case_key], attempt, card)


def test_what_was_red_before_there_were_regressions_stays_red_and_begins_none(empty_url: str, tmp_path: Path) -> None:
    from perftrack.pipeline.reports import report_of

    old = _filled(empty_url, tmp_path, "0002")
    assert _upgrade(old).before == "0002"
    with Store.open(old) as store, perftrack.open(old) as database:
        report = report_of(store, UID)
        (finding,) = store.load_run(UID).findings
        assert (finding.accuracy, finding.error_head) == (Accuracy.LESS, 4e-7)
        assert (report.exit_code, report.rows[0].red, report.rows[0].regressions) == (1, True, ())
        assert len(database.regressions()) == 0
        assert database.results()["clock_mhz"].tolist() == [1972.5] * 4


def test_a_regression_of_before_and_what_was_said_of_it(empty_url: str, tmp_path: Path) -> None:
    old = _filled(empty_url, tmp_path, "0003")
    assert _upgrade(old).before == "0003"
    with Store.open(old) as store, perftrack.open(old) as database:
        assert database.regressions()[["state", "reason", "author"]].to_numpy().tolist() == [
            ["acknowledged", "known", "Ada"]
        ]
        rounds = database.rounds()
        assert store.expire(2**62).samples == 6
        assert database.rounds().equals(rounds)
        assert store.problems() == []


def _rows(url: str) -> Rows:
    """Every table's rows as they are, with the names of the columns first."""

    def read(connection: sa.Connection) -> Rows:
        found: Rows = {}
        there = sa.inspect(connection).get_table_names()
        for table in [one for one in schema.metadata.sorted_tables if one.name in there]:
            rows = connection.exec_driver_sql(f"SELECT * FROM {table.name}")  # noqa: S608 (a name of the schema)
            found[table.name] = [tuple(rows.keys()), *sorted(map(tuple, rows), key=repr)]
        return found

    with closing(Door(address.parse(url))) as door:
        return door.read(read)


@pytest.mark.parametrize("of", schema.REVISIONS[:-1])
def test_down_to_an_old_schema_and_up_again_keeps_every_row(empty_url: str, tmp_path: Path, of: str) -> None:
    old = _filled(empty_url, tmp_path, of)
    before = _rows(old)
    _upgrade(old)
    after = _rows(old)
    with closing(Door(address.parse(old))) as door:
        door.write(lambda connection: migrate.migrate(connection, of))
        assert door.read(migrate.version) == of
    assert _rows(old) == before
    _upgrade(old)
    assert _rows(old) == after
    assert (before == after) == (of == "0005")  # 0006 has another view of the same rows


def _deliver_again(old: Store, fresh: Store) -> None:
    """All runs of a store, oldest first, as if they were only now written."""
    for entry in reversed(old.runs()):
        stored = old.load_run(entry.run.uid)
        uid, cases = stored.run.uid, {case.key: case for case in stored.cases}
        devices = {one.uuid: one for one in stored.devices} | {"": stored.devices[0]}  # "": it was lost at once
        fresh.begin_run(msgspec.structs.replace(stored.run, state="running", finished_us=None))
        for attempt, _ in old.attempts(uid):
            fresh.add_job(uid, cases[attempt.case_key], attempt, devices[attempt.device_uuid])
        assert stored.run.finished_us is not None
        fresh.finish_run(
            uid,
            state=stored.run.state,
            finished_us=stored.run.finished_us,
            summaries=stored.summaries,
            findings=stored.findings,
        )


@pytest.mark.parametrize("of", schema.REVISIONS)
def test_a_store_built_by_upgrades_says_what_a_fresh_one_says(empty_url: str, tmp_path: Path, of: str) -> None:
    old, fresh = _filled(empty_url, tmp_path, of), str(tmp_path / "fresh.db")
    if of != migrate.HEAD:
        _upgrade(old)
    with Store.open(old) as upgraded, Store.open(fresh) as new:
        _deliver_again(upgraded, new)
        one, other = Database(upgraded), Database(new)
        expired = upgraded.kept(UID)  # what is left of samples that have expired can only be upgraded
        for name in ("results", "speedups", "runs", "devices", "latest", *(() if expired else ("rounds",))):
            assert_frame_equal(getattr(one, name)(), getattr(other, name)(), obj=name, check_exact=True)
        assert new.load_run(UID) == upgraded.load_run(UID)


def test_a_file_is_copied_before_it_is_upgraded(tmp_path: Path) -> None:
    path = _old_file(tmp_path)
    before = _rows_of_file(path)
    (tmp_path / f"old.db.before-{migrate.HEAD}").write_text("somebody's own")
    path.chmod(0o640)
    done = CliRunner().invoke(app, ["db", "upgrade", "--db", str(path)])
    copy = tmp_path / f"old.db.before-{migrate.HEAD}-2"
    assert done.output.splitlines() == [f"0001 -> {migrate.HEAD}", f"as it was before: {copy}"]
    assert (tmp_path / f"old.db.before-{migrate.HEAD}").read_text() == "somebody's own"
    assert copy.stat().st_mode & 0o777 == 0o640
    assert _rows_of_file(copy) == before
    with Store.open(str(copy), create=False, checked=False) as store:
        assert store.current() == "0001"
    with closing(sqlite3.connect(path)) as connection:  # the pages of tables that were copied are given back
        assert connection.execute("PRAGMA freelist_count").fetchone() == (0,)
    again = CliRunner().invoke(app, ["db", "upgrade", "--db", str(path)])
    assert again.output.splitlines() == [f"{migrate.HEAD}, nothing to do"]
    assert sorted(each.name for each in tmp_path.glob("*.before-*")) == [f"old.db.before-{migrate.HEAD}", copy.name]


def test_without_a_copy_nothing_is_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _old_file(tmp_path)
    before = _rows_of_file(path)

    def refuse(*_: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("shutil.copymode", refuse)
    with pytest.raises(StoreError, match=rf"old\.db cannot be copied to .*before-{migrate.HEAD} .*not permitted"):
        _upgrade(str(path))
    assert _rows_of_file(path) == before
    assert list(tmp_path.glob("*before*")) == []


def test_a_copy_that_was_being_made_when_the_program_was_killed_has_not_the_name_of_a_whole_one(tmp_path: Path) -> None:
    path = _old_file(tmp_path)
    before = _rows_of_file(path)
    command = [sys.executable, store_process.__file__, "killed_copy", str(path), f"before-{migrate.HEAD}"]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert any(each.stat().st_size for each in tmp_path.glob(".old.db.*"))  # it had begun
    assert list(tmp_path.glob("old.db.*")) == []
    _upgrade(str(path))
    assert _rows_of_file(tmp_path / f"old.db.before-{migrate.HEAD}") == before

"""Writing: harmless to repeat, never overwriting, refusing what must not be stored."""

import math
import threading
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import sqlalchemy as sa
import store_builders as build

from perftrack.errors import StoreError, UsageError
from perftrack.judge.value import Interval
from perftrack.model import Status
from perftrack.store import Store, schema


def _count(store: Store, table: sa.Table) -> int:
    return store.read(lambda connection: connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one())


def _finish(store: Store, uid: str, *summaries: Any) -> None:
    store.finish_run(uid, state="complete", finished_us=1, summaries=list(summaries), findings=[])


@pytest.fixture
def run_uid(store: Store) -> str:
    run = build.run()
    store.begin_run(run)
    return run.uid


def test_a_second_write_of_a_run_changes_nothing(store: Store) -> None:
    run = build.run()
    assert store.begin_run(run) is True
    later = msgspec.structs.replace(run, state="interrupted", problems=("other",), finished_us=5)
    assert store.begin_run(later) is False
    assert store.load_run(run.uid).run == run


@pytest.mark.parametrize(
    "changes", [{"head": build.revision(9)}, {"base": None}, {"started_us": 5}, {"repo": "another"}]
)
def test_another_run_of_the_same_uid_is_refused(store: Store, changes: dict[str, Any]) -> None:
    run = build.run()
    store.begin_run(run)
    with pytest.raises(StoreError, match=f"run {run.uid} is stored already with another"):
        store.begin_run(msgspec.structs.replace(run, **changes))
    assert store.load_run(run.uid).run == run


@pytest.mark.fault
def test_a_second_delivery_of_a_job_is_a_no_op(store: Store, run_uid: str) -> None:
    assert store.add_job(run_uid, build.case(), build.job(), build.device()) is True
    assert store.add_job(run_uid, build.case(), build.job(), build.device()) is False
    assert _count(store, schema.job_attempt) == 1
    assert _count(store, schema.measurement) == _count(store, schema.sample) == 6


def test_other_content_under_the_same_key_is_refused(store: Store, run_uid: str) -> None:
    store.add_job(run_uid, build.case(), build.job(), build.device())
    with pytest.raises(StoreError, match=r"add\[dtype=float32,n=1024\].*round 1, attempt 1.*other content"):
        store.add_job(run_uid, build.case(), build.job(wall_s=9.0), build.device())
    assert store.jobs(run_uid) == [build.job()]


def test_a_store_opened_again_knows_what_the_first_one_wrote(url: str) -> None:
    run = build.run()
    with Store.open(url) as first:
        first.begin_run(run)
        first.add_job(run.uid, build.case(), build.job(), build.device())
    with Store.open(url) as second:
        assert second.begin_run(run) is False
        assert second.add_job(run.uid, build.case(), build.job(), build.device()) is False
        assert _count(second, schema.device) == _count(second, schema.declaration) == 1


def test_a_job_of_an_unknown_run_is_refused(store: Store) -> None:
    with pytest.raises(UsageError, match="has no run deadbeef"):
        store.add_job("deadbeef", build.case(), build.job(), build.device())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"case_key": "mul[n=1]"}, "case 'mul"),
        ({"suite": "other"}, "suite 'other'"),
        ({"device_class": "H200"}, "device class 'H200'"),
        ({"device_uuid": "CPU-9"}, "device 'CPU-9'"),
    ],
)
def test_a_result_of_something_else_is_refused(store: Store, run_uid: str, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(StoreError, match=words):
        store.add_job(run_uid, build.case(), build.job(**changes), build.device())


def test_equal_compiled_code_is_stored_once(store: Store, run_uid: str) -> None:
    for number in (1, 2, 3):
        store.add_job(run_uid, build.case(), build.job(round=number), build.device())
    assert _count(store, schema.measurement) == 18
    assert _count(store, schema.resources) == 1


def test_a_changed_declaration_keeps_the_identity_of_the_case(store: Store) -> None:
    for number, doc in ((1, "old"), (2, "new")):
        run = build.run(number)
        store.begin_run(run)
        store.add_job(run.uid, build.case(doc=doc), build.job(), build.device())
        assert [case.doc for case in store.load_run(run.uid).cases] == [doc]
    assert _count(store, schema.kernel_case) == 1


def test_a_case_that_is_issued_otherwise_is_another_series(store: Store) -> None:
    for number, issue in ((1, "queued"), (2, "eager")):
        run = build.run(number)
        store.begin_run(run)
        store.add_job(run.uid, build.case(issue=issue), build.job(), build.device())
        _finish(store, run.uid, build.summary())
        assert [case.issue for case in store.load_run(run.uid).cases] == [issue]
    assert _count(store, schema.kernel_case) == 1
    assert _count(store, schema.series) == 2


def test_a_shallow_clones_gaps_are_filled_later(store: Store) -> None:
    store.begin_run(build.run(1, head=build.revision(7, position=None, parent=None)))
    store.begin_run(build.run(2, head=build.revision(7)))
    assert store.load_run(build.run(1).uid).run.head == build.revision(7)
    store.begin_run(build.run(3, head=build.revision(7, position=None, parent=None)))
    assert store.load_run(build.run(3).uid).run.head == build.revision(7)


def test_finishing_again_replaces_the_answers(store: Store, run_uid: str) -> None:
    store.add_job(run_uid, build.case(), build.job(), build.device())
    store.finish_run(
        run_uid, state="interrupted", finished_us=1, summaries=[build.summary()], findings=[build.finding("fused")]
    )
    store.finish_run(
        run_uid,
        state="complete",
        finished_us=2,
        summaries=[build.summary(variant="steps")],
        findings=[build.finding("steps")],
    )
    stored = store.load_run(run_uid)
    assert (stored.run.state, stored.run.finished_us) == ("complete", 2)
    assert stored.run.problems == build.run().problems
    assert [one.variant for one in stored.summaries] == ["steps"]
    assert [one.variant for one in stored.findings] == ["steps"]


def test_finishing_one_run_leaves_another_of_the_same_commit_alone(store: Store) -> None:
    for number in (1, 2):
        run = build.run(number)
        store.begin_run(run)
        store.add_job(run.uid, build.case(), build.job(), build.device())
        _finish(store, run.uid, build.summary())
    _finish(store, build.run(2).uid)
    assert store.load_run(build.run(1).uid).summaries == [build.summary()]


@pytest.mark.parametrize(
    ("summary", "words"),
    [
        (build.summary(case_key="never[n=1]"), "job of elementwise never"),
        (build.summary(device_uuid="CPU-9"), "device of elementwise add"),
        (build.summary(environment_digest="f00"), "environment of elementwise add"),
    ],
)
def test_a_summary_without_its_job_is_refused(store: Store, run_uid: str, summary: Any, words: str) -> None:
    store.add_job(run_uid, build.case(), build.job(), build.device())
    with pytest.raises(StoreError, match=f"the {words}.* was not stored before"):
        _finish(store, run_uid, summary)


def test_a_summary_of_a_base_that_is_not_there_is_refused(store: Store) -> None:
    run = build.run(base=None)
    store.begin_run(run)
    store.add_job(run.uid, build.case(), build.job(), build.device())
    with pytest.raises(StoreError, match="of the base, but the run has none"):
        _finish(store, run.uid, build.summary("base"))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    ("where", "job"),
    [
        ("result.timed_s", lambda value: build.job(timed_s=value)),
        ("result.canary_s[1]", lambda value: build.job(canary_s=(1.0, value))),
        (
            "result.measurements[0].samples_s[2]",
            lambda value: build.job(measurements=(build.measurement(samples_s=(1.0, 2.0, value)),)),
        ),
        ("result.measurements[0].error_l2", lambda value: build.job(measurements=(build.measurement(error_l2=value),))),
    ],
)
def test_what_is_not_finite_is_refused_by_name(sqlite_store: Store, where: str, job: Any, value: float) -> None:
    sqlite_store.begin_run(build.run())
    with pytest.raises(StoreError) as caught:
        sqlite_store.add_job(build.run().uid, build.case(), job(value), build.device())
    assert f"elementwise add[dtype=float32,n=1024] on EPYC-9654-2c, round 1: {where} is {value}" in str(caught.value)
    assert sqlite_store.jobs(build.run().uid) == []


@pytest.fixture
def sqlite_store(sqlite_template: Path, tmp_path: Path) -> Any:
    import shutil

    with Store.open(str(shutil.copy(sqlite_template, tmp_path / "perf.db"))) as opened:
        yield opened


@pytest.mark.parametrize("value", [np.int64(1), np.int32(1), np.bool_(True), np.float32(1.0)])
def test_numpy_scalars_are_refused_by_name(sqlite_store: Store, value: Any) -> None:
    sqlite_store.begin_run(build.run())
    with pytest.raises(StoreError, match=rf"result\.seed is a numpy\.{type(value).__name__}"):
        sqlite_store.add_job(build.run().uid, build.case(), build.job(seed=value), build.device())


def test_numpys_double_is_a_float(store: Store, run_uid: str) -> None:
    assert store.add_job(run_uid, build.case(), build.job(wall_s=np.float64(2.5)), build.device())
    assert not store.add_job(run_uid, build.case(), build.job(wall_s=2.5), build.device())
    _finish(store, run_uid, build.summary(time_s=np.float64(1e-5)))
    assert store.load_run(run_uid).summaries == [build.summary(time_s=1e-5)]


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1])
def test_an_integer_of_more_than_64_bits_is_refused(sqlite_store: Store, value: int) -> None:
    sqlite_store.begin_run(build.run())
    with pytest.raises(StoreError, match="needs more than 64 bits"):
        sqlite_store.add_job(build.run().uid, build.case(), build.job(seed=value), build.device())


@pytest.mark.parametrize("column", ["seed", "wall_s", "status"])
def test_strict_tables_refuse_numpys_bytes(sqlite_store: Store, column: str) -> None:
    """Should validation ever be bypassed: the driver turns NumPy's integers into bytes, the table takes none."""
    sqlite_store.begin_run(build.run())
    sqlite_store.add_job(build.run().uid, build.case(), build.job(), build.device())
    statement = f"UPDATE job_attempt SET {column} = ?"  # noqa: S608 (a name from above)
    with pytest.raises(StoreError, match=f"cannot store BLOB value in .* column job_attempt.{column}"):
        sqlite_store._door.write(lambda connection: connection.exec_driver_sql(statement, (np.int64(1),)))


@pytest.mark.parametrize(
    "changes",
    [
        {"time_s": 0.0},
        {"time_s": -1e-5},
        {"time_s": None},
        {"q10_s": 0.0},
        {"speedup": Interval(0.0, 1.0, 1.0)},
        {"speedup": Interval(1.0, -1.0, 1.0)},
        {"fusion_gain": Interval(1.0, 1.0, 1e301)},
        {"status": Status.FAILED},
        {"side": "left"},
        {"error_l2": -1.0},
    ],
    ids=str,
)
def test_the_database_refuses_impossible_results(shared_store: Store, changes: dict[str, Any]) -> None:
    run = build.run(abs(hash(str(changes))) % 10**9)
    shared_store.begin_run(run)
    shared_store.add_job(run.uid, build.case(), build.job(), build.device())
    with pytest.raises(StoreError, match=r"refuses a value.*ck_(result|run_side)_"):
        _finish(shared_store, run.uid, build.summary(**changes))
    assert shared_store.load_run(run.uid).run.state == "running"


@pytest.mark.parametrize("value", [math.nan, math.inf, 0.0, -1.0])
def test_postgresql_refuses_them_in_raw_sql_too(postgresql_url: str, value: float) -> None:
    with Store.open(postgresql_url) as opened:
        run = build.run()
        opened.begin_run(run)
        opened.add_job(run.uid, build.case(), build.job(), build.device())
        _finish(opened, run.uid, build.summary())
        with pytest.raises(StoreError, match="ck_result_time_s"):
            opened._door.write(lambda connection: connection.exec_driver_sql("UPDATE result SET time_s = %s", (value,)))


def test_foreign_keys_are_on(store: Store, run_uid: str) -> None:
    store.add_job(run_uid, build.case(), build.job(), build.device())
    for table in (schema.revision, schema.device, schema.kernel_case, schema.method, schema.run, schema.measurement):
        with pytest.raises(StoreError, match=r"refuses a value.*(FOREIGN KEY|foreign key)"):
            store._door.write(lambda connection, table=table: connection.execute(sa.delete(table)))


def test_a_reader_cannot_write(sqlite_store: Store) -> None:
    with pytest.raises(UsageError, match="readonly"):
        sqlite_store.read(lambda connection: connection.exec_driver_sql("DELETE FROM run"))


def test_a_transaction_that_fails_in_the_middle_leaves_nothing(store: Store, run_uid: str) -> None:
    """Of two measurements of one variant the second breaks the key, after job and first are in."""
    twice = (build.measurement(), build.measurement())
    with pytest.raises(StoreError, match="refuses a value"):
        store.add_job(run_uid, build.case(), build.job(measurements=twice), build.device())
    assert store.jobs(run_uid) == []
    assert _count(store, schema.job_attempt) == _count(store, schema.measurement) == 0


def test_eight_threads_share_a_store(store: Store, run_uid: str) -> None:
    errors: list[BaseException] = []

    def work(thread: int) -> None:
        try:
            for number in range(5):
                key = f"add[n={number}]"
                result = build.job(case_key=key, round=thread + 1)
                store.add_job(run_uid, build.case(key), result, build.device())
        except BaseException as error:  # noqa: BLE001 (whatever a thread raised is the finding)
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(store.jobs(run_uid)) == 40
    assert _count(store, schema.kernel_case) == 5

"""The pandas API: columns, units, dtypes, order; an empty frame has the shape of a full one."""

import io
import pickle
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pytest
import sqlalchemy as sa
import store_builders as build

import perftrack
from perftrack.errors import UsageError
from perftrack.judge.value import Interval
from perftrack.model import Cause, Status, Verdict
from perftrack.store import Store, frames_columns, frames_filters, schema
from perftrack.store.frames import UNPLACED, Database


def _measure(store: Store, number: int, *, time_s: float = 1e-5, findings: Any = (), **changes: Any) -> str:
    """A finished run of the commit at position `number`: `fused` at `time_s`, `unfused` at 20 µs."""
    run = build.run(number, **({"head": build.revision(number), "base": None} | changes))
    store.begin_run(run)
    store.add_job(run.uid, build.case(), build.job(), build.device())
    ratio = 2e-5 / time_s
    summaries = [
        build.summary(
            time_s=time_s,
            q10_s=time_s * 0.999,
            q90_s=time_s * 1.001,
            speedup=Interval(ratio, ratio * 0.99, ratio * 1.01),
        ),
        build.summary(variant="unfused", time_s=2e-5, q10_s=1.99e-5, q90_s=2.01e-5, speedup=None),
        build.failed_summary(variant="steps"),
    ]
    store.finish_run(
        run.uid, state="complete", finished_us=1_700_000_200_000_000, summaries=summaries, findings=findings
    )
    return run.uid


@pytest.fixture
def database(url: str) -> Iterator[tuple[Store, Database]]:
    with Store.open(url) as store, perftrack.open(url) as opened:
        yield store, opened


def _all_frames(database: Database, **narrow: Any) -> dict[str, pd.DataFrame]:
    base, head = "0000001", "0000002"
    return {
        "results": database.results(**narrow),
        "history": database.history(narrow.get("case", build.case().key)),
        "speedups": database.speedups(**narrow),
        "devices": database.devices(),
        "runs": database.runs(last=0) if narrow else database.runs(),
        "compare": database.compare(base, head, device="none" if narrow else None),
        "rounds": database.rounds(),
    }


def test_an_empty_frame_has_the_columns_and_dtypes_of_a_full_one(database: tuple[Store, Database]) -> None:
    store, opened = database
    no_devices, no_rounds = opened.devices(), opened.rounds()
    assert len(no_devices) == 0
    _measure(store, 1)
    _measure(store, 2)
    full, empty = _all_frames(opened), _all_frames(opened, case="none")
    empty["devices"], empty["rounds"] = no_devices, no_rounds
    for name in full:
        assert len(full[name]) > 0
        assert len(empty[name]) == 0
        assert full[name].index.names == empty[name].index.names
        assert _dtypes(full[name].reset_index()) == _dtypes(empty[name].reset_index()) or name == "speedups"
    assert empty["speedups"].columns.names == ["commit_seq", "commit"]
    assert [str(level.dtype) for level in empty["speedups"].columns.levels] == ["int64", "str"]
    assert [str(level.dtype) for level in empty["speedups"].index.levels] == ["str"] * 3


def _dtypes(frame: pd.DataFrame) -> dict[str, str]:
    return {str(name): str(dtype) for name, dtype in frame.dtypes.items()}


def test_results_have_the_promised_columns_and_units(database: tuple[Store, Database]) -> None:
    store, opened = database
    uid = _measure(store, 7, base=build.revision(6), findings=[build.finding()])
    frame = opened.results()
    assert list(frame.columns) == list(frames_columns.RESULTS)
    promised = {
        "commit": "str", "commit_seq": "int64", "commit_time": "datetime64[us, UTC]",
        "measured_at": "datetime64[us, UTC]", "branch": "category", "suite": "category", "device": "category",
        "variant": "category", "status": "category", "cause": "category", "case": "str", "run_id": "str",
        "device_uuid": "str", "node": "str", "env_key": "str", "method_key": "str", "params": "str",
        "median_us": "float64", "n_samples": "int64", "gbps": "float64", "tflops": "float64", "cold": "bool",
    }  # fmt: skip
    assert promised.items() <= _dtypes(frame).items()
    row = frame[frame["variant"] == "fused"].iloc[0]
    values = {
        "repo": "kernels", "commit": build.revision(7).sha, "commit_seq": 7, "branch": "main", "side": "head",
        "case": "add[dtype=float32,n=1024]", "device": "EPYC-9654-2c", "status": "ok", "verdict": "slower",
        "cause": "fused-slower", "run_id": uid, "device_uuid": "CPU-1", "node": "node-1", "baseline": "unfused",
        "env_key": build.ENVIRONMENT.digest, "n_samples": 150, "cold": False, "cached": True, "registers": 32,
        "params": '{"dtype":"float32","fast":true,"n":1024,"scale":1.0}',
    }  # fmt: skip
    assert {name: row[name] for name in values} == values
    assert row["commit_time"] == pd.Timestamp(1_700_000_000_000_007, unit="us", tz="UTC")
    numbers = {"median_us": 10.0, "p10_us": 9.99, "baseline_us": 20.0, "speedup": 2.0, "gbps": 1.2288}
    numbers |= {"tflops": 2.048e-4, "host_us": 3.0, "fusion_gain_low": 1.49, "utilization": 0.9, "occupancy": 0.75}
    assert {name: row[name] for name in numbers} == pytest.approx(numbers)


def test_a_failure_has_no_time_and_a_message(database: tuple[Store, Database]) -> None:
    store, opened = database
    _measure(store, 1)
    row = opened.results(variant="steps").iloc[0]
    assert (row["status"], row["message"]) == ("failed", "exit code -11")
    assert np.isnan(row["median_us"])
    assert np.isnan(row["speedup"])
    assert row["registers"] is pd.NA


def test_commits_are_in_topological_order_and_unplaced_ones_last(database: tuple[Store, Database]) -> None:
    store, opened = database
    _measure(store, 3, head=build.revision(3, committed_us=1))
    _measure(store, 1, head=build.revision(1, committed_us=9))
    _measure(store, 9, head=build.revision(9, position=None, committed_us=0))
    _measure(store, 2, head=build.revision(2, committed_us=5))
    assert list(opened.results(variant="fused")["commit_seq"]) == [1, 2, 3, UNPLACED]
    wide = opened.speedups()
    assert list(wide.columns.get_level_values("commit_seq")) == [1, 2, 3, UNPLACED]
    assert opened.history(build.case().key, variant="fused").index.tolist() == [1, 2, 3, UNPLACED]


def test_many_commits_are_read_series_by_series_and_are_the_same(
    database: tuple[Store, Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, opened = database
    for number in (1, 2, 3):
        _measure(store, number, head=build.revision(number))
    asked = ({"last": 2}, {"since": "0000002"}, {"last": 2, "variant": "fused"}, {"last": 3})
    frames = [opened.results(**each) for each in asked]
    monkeypatch.setattr(frames_filters, "_MANY_SIDES", 1)
    for each, frame in zip(asked, frames, strict=True):
        pd.testing.assert_frame_equal(opened.results(**each), frame)
    if store.dialect.name == "sqlite":
        question = sa.select(schema.result).where(*frames_filters.where(store, {"last": 2}))
        plan = store.read(lambda connection: connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {question}").all())
        assert "SEARCH result USING PRIMARY KEY" in plan[0][3]


def test_results_can_be_narrowed(database: tuple[Store, Database]) -> None:
    store, opened = database
    for number in (1, 2, 3):
        _measure(store, number, head=build.revision(number, branch="main" if number < 3 else "topic"))
    assert len(opened.results()) == 9
    assert len(opened.results(case="add*", suite="elementwise", device="EPYC*", variant="fused")) == 3
    assert len(opened.results(case="add[dtype=float32,n=1024]")) == 9
    for nothing in ({"case": "add"}, {"suite": "gemm"}, {"device": "H200*"}, {"branch": "x"}, {"repo": "x"}):
        assert len(opened.results(**nothing)) == 0
    assert set(opened.results(since="0000002")["commit_seq"]) == {2, 3}
    assert set(opened.results(last=1)["commit_seq"]) == {3}
    assert set(opened.results(last=1, branch="main")["commit_seq"]) == {2}
    assert len(opened.results(last=0)) == 0
    with pytest.raises(UsageError, match="no results of a revision 'beef'"):
        opened.results(since="beef")


def test_speedups_are_wide_and_the_newest_measurement_of_a_commit_counts(database: tuple[Store, Database]) -> None:
    store, opened = database
    _measure(store, 1, time_s=1e-5)
    _measure(store, 2, time_s=2e-5)
    _measure(store, 3, time_s=4e-5, head=build.revision(2))
    wide = opened.speedups()
    assert wide.index.tolist() == [("elementwise", "add[dtype=float32,n=1024]", "EPYC-9654-2c")]
    assert wide.columns.tolist() == [(1, build.revision(1).sha), (2, build.revision(2).sha)]
    assert wide.iloc[0].tolist() == pytest.approx([2.0, 0.5])
    assert wide[1].shape == (1, 1)
    assert set(wide.dtypes) == {np.dtype("float64")}
    assert np.isnan(opened.speedups(variant="steps").iloc[0, 0])


def test_a_dirty_tree_is_a_column_of_its_own(database: tuple[Store, Database]) -> None:
    store, opened = database
    _measure(store, 1)
    _measure(store, 2, head=build.revision(1, dirty=True, tree="d" * 40))
    sha = build.revision(1).sha
    assert opened.speedups().columns.tolist() == [(1, sha), (1, f"{sha}+dirty")]


def test_compare_draws_a_cautious_verdict_where_the_two_were_not_paired(database: tuple[Store, Database]) -> None:
    store, opened = database
    times = {1: 1e-5, 2: 1.001e-5, 3: 1.2e-5, 4: 0.8e-5, 5: 1.0205e-5}
    for number, time_s in times.items():
        _measure(store, number, time_s=time_s)
    rows = {number: opened.compare("0000001", f"000000{number}").loc[_FUSED] for number in times}
    verdicts = {number: (str(row["verdict"]), str(row["cause"])) for number, row in rows.items()}
    assert verdicts == {
        1: ("same", ""), 2: ("same", ""), 3: ("slower", "fused-slower"), 4: ("faster", "fused-faster"),
        5: ("slower", "fused-slower"),
    }  # fmt: skip
    row = rows[3]
    assert bool(row["paired"]) is False
    assert (row["fused_us_base"], row["fused_us_head"]) == pytest.approx((10.0, 12.0))
    assert (row["speedup_base"], row["speedup_head"]) == pytest.approx((2.0, 2 / 1.2))
    assert (row["change_pct"], row["time_change_pct"]) == pytest.approx((-100 / 6, 20.0))
    assert row["time_change_low_pct"] < row["time_change_pct"] < row["time_change_high_pct"]


_FUSED = ("elementwise", "add[dtype=float32,n=1024]", "EPYC-9654-2c", "fused")


def test_compare_takes_the_verdict_of_the_run_that_paired_the_two(database: tuple[Store, Database]) -> None:
    store, opened = database
    _measure(store, 6)
    finding = build.finding(verdict=Verdict.AMBIGUOUS, cause=Cause.NONE, message="the rounds disagree")
    _measure(store, 7, base=build.revision(6), findings=[finding])
    row = opened.compare("0000006", "0000007").loc[_FUSED]
    assert (row["verdict"], row["paired"], row["message"]) == ("ambiguous", True, "the rounds disagree")
    assert row["time_change_low_pct"] == pytest.approx(9.0)
    back = opened.compare("0000007", "0000006").loc[_FUSED]
    assert bool(back["paired"]) is False


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"status": Status.WRONG, "time_s": None}, ("wrong", "")),
        ({"status": Status.INVALID, "time_s": None}, ("failed", "")),
        ({"status": Status.UNSTABLE, "time_s": None}, ("unstable", "")),
        ({"status": Status.SKIPPED, "time_s": None}, ("missing", "")),
        ({"time_s": 2e-5, "q10_s": 1e-5, "q90_s": 3e-5}, ("ambiguous", "")),
        ({"baseline_s": 1e-5}, ("same", "unfused-faster")),
        ({"baseline_s": 3e-5}, ("same", "unfused-slower")),
        ({"q10_s": None, "q90_s": None}, ("ambiguous", "")),
    ],
)
def test_verdicts_without_pairing(changes: dict[str, Any], expected: tuple[str, str]) -> None:
    from perftrack.store import unpaired
    from perftrack.store.value import StoredRevision, StoredSummary

    base = StoredSummary(
        revision=StoredRevision(id=1, repo="r", revision=build.revision(1)),
        run_uid="a", measured_us=1, baseline="unfused", method_digest="m", min_effect=0.02, summary=build.summary(),
    )  # fmt: skip
    head = msgspec.structs.replace(base, summary=build.summary(**changes))
    assert tuple(map(str, unpaired.verdict(base, head))) == expected
    assert unpaired.verdict(None, base) == (Verdict.NEW, Cause.NONE)
    assert unpaired.verdict(base, None) == (Verdict.MISSING, Cause.NONE)


def test_no_alarm_across_a_border_of_method_or_environment(database: tuple[Store, Database]) -> None:
    from perftrack.model import Environment, Method, RunOptions

    store, opened = database
    _measure(store, 1)
    _measure(store, 2, time_s=2e-5, options=RunOptions(methods={"cpu": Method(version=2)}))
    row = opened.compare("0000001", "0000002").loc[_FUSED]
    assert (row["verdict"], row["cause"]) == ("ambiguous", "method")
    other = Environment(entries={"driver": "590"})
    run = build.run(3, head=build.revision(3), base=None)
    store.begin_run(run)
    store.add_job(run.uid, build.case(), build.job(environment=other), build.device())
    slow = build.summary(time_s=2e-5, q10_s=2e-5, q90_s=2e-5, environment_digest=other.digest)
    store.finish_run(run.uid, state="complete", finished_us=1, summaries=[slow], findings=[])
    row = opened.compare("0000001", "0000003").loc[_FUSED]
    assert (row["verdict"], row["cause"]) == ("ambiguous", "environment")


def test_runs_and_devices(database: tuple[Store, Database]) -> None:
    store, opened = database
    unfinished = build.run(5, head=build.revision(5, branch=None), base=None, problems=())
    store.begin_run(unfinished)
    _measure(store, 7, base=build.revision(6), findings=[build.finding()])
    runs = opened.runs()
    assert runs["run_id"].tolist() == [build.run(7).uid, unfinished.uid]
    assert runs["slower"].tolist() == [1, 0]
    assert runs["state"].tolist() == ["complete", "running"]
    assert runs["finished_at"].isna().tolist() == [False, True]
    assert runs["base"].isna().tolist() == [False, True]
    assert runs["problems"].tolist() == [1, 0]
    assert len(opened.runs(last=1)) == 1
    (device,) = opened.devices().to_dict("records")
    assert (device["uuid"], device["jobs"], device["memory_bytes"]) == ("CPU-1", 1, 2**35)
    assert device["environment"] == '{"clock":1.5,"driver":"580.65","locked":true,"threads":2}'


def test_rounds_have_every_measurement_of_every_attempt(database: tuple[Store, Database]) -> None:
    store, opened = database
    run = build.run(3)
    store.begin_run(run)
    store.add_job(run.uid, build.case(), build.failed(status=Status.INFRA, message="lost"), build.device())
    store.add_job(run.uid, build.case(), build.job(attempt=2, device_uuid="CPU-2"), build.device(2))
    rounds = opened.rounds(run.uid[:8])
    lost, *measured = rounds.to_dict("records")
    assert (lost["attempt"], lost["counts"], lost["job_status"], lost["job_message"]) == (1, False, "infra", "lost")
    assert (pd.isna(lost["side"]), pd.isna(lost["median_us"]), lost["n_samples"]) == (True, True, 0)
    assert [(one["side"], one["variant"]) for one in measured] == [
        (side, variant) for variant in ("unfused", "fused", "steps") for side in ("head", "base")
    ]
    first = measured[0]
    # blocks 0 and 2 to 24 are good: the median of their medians, of samples 1 ns apart
    assert first["median_us"] == pytest.approx(10.0255, abs=1e-6)
    assert (first["counts"], first["device_uuid"], first["bad_blocks"], first["blocks"]) == (True, "CPU-2", 1, 2)
    assert (first["canary_us"], first["ceiling_gbps"]) == (pytest.approx(100.0), pytest.approx(30.0))
    assert first["clock_mhz"] == 1597.5
    assert (first["wall_s"], first["timed_s"], first["throttled"]) == (2.5, 1.25, "power cap")


def test_every_frame_can_be_written_unchanged(database: tuple[Store, Database]) -> None:
    store, opened = database
    _measure(store, 1)
    _measure(store, 2)
    for frame in _all_frames(opened).values():
        pd.testing.assert_frame_equal(pickle.loads(pickle.dumps(frame)), frame)  # noqa: S301 (our own)
        text = frame.to_csv()
        assert len(pd.read_csv(io.StringIO(text))) >= len(frame)


def test_the_address_comes_from_the_environment(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFTRACK_DB", url)
    with perftrack.open() as opened:
        assert len(opened.runs()) == 0
        assert repr(opened).startswith("<perftrack database ")


def test_without_an_address_it_is_the_users_own_database(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.delenv("PERFTRACK_DB", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with pytest.raises(UsageError, match=f"there is no database {tmp_path}/perftrack/perftrack.db yet"):
        perftrack.open()


def test_importing_perftrack_imports_neither_pandas_nor_sqlalchemy() -> None:
    import subprocess
    import sys

    code = "import sys, perftrack; print(sorted({'pandas', 'sqlalchemy', 'alembic', 'ray'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_reading_a_run_imports_neither_pandas_nor_alembic(url: str) -> None:
    import subprocess
    import sys

    with Store.open(url) as store:
        store.begin_run(build.run())
    code = (
        "import sys; from perftrack.store import Store; s = Store.open(sys.argv[1], create=False);"
        "s.load_run(s.find_run('latest')); s.close();"
        "print(sorted({'pandas', 'alembic', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, url], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

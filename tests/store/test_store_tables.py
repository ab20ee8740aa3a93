"""Results in parts, as files, by SQL, and as speedups set against each other: all of them, in the frame's units."""

import io
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import store_builders as build
from click.testing import CliRunner

import perftrack
from perftrack.cli.app import app
from perftrack.errors import UsageError
from perftrack.judge.value import Interval
from perftrack.model import RunOptions
from perftrack.store import Store, frames_columns, frames_results
from perftrack.store.dimensions import Dimensions
from perftrack.store.frames import Database


def _measure(store: Store, number: int, speedups: dict[str, float], branch: str = "main") -> str:
    """A run of the commit at `number`; `speedups` of `fused` by case key."""
    run = build.run(number, head=build.revision(number, branch=branch), base=None)
    store.begin_run(run)
    summaries = [build.failed_summary(variant="steps", case_key=next(iter(speedups)))]
    for key, ratio in speedups.items():
        store.add_job(run.uid, build.case(key), build.job(case_key=key), build.device())
        summaries.append(build.summary(case_key=key, speedup=Interval(ratio, ratio * 0.99, ratio * 1.01)))
    store.finish_run(run.uid, state="complete", finished_us=run.started_us + 1, summaries=summaries, findings=[])
    return run.uid


@pytest.fixture
def database(url: str) -> Iterator[tuple[Store, Database]]:
    with Store.open(url) as store, perftrack.open(url) as opened:
        _measure(store, 1, {"add[n=1]": 2.0, "add[n=2]": 8.0, "mul[n=1]": 3.0})
        _measure(store, 2, {"add[n=1]": 4.0, "add[n=2]": 8.0}, branch="topic/a")
        _measure(store, 3, {"add[n=1]": 1.0, "add[n=2]": 16.0, "mul[n=1]": 3.0, "mul[n=2]": 5.0}, branch="topic/b")
        yield store, opened


def _as_read(text: bytes) -> pd.DataFrame:
    """A CSV of results with the dtypes of the frame."""
    frame = pd.read_csv(io.BytesIO(text), keep_default_na=False, dtype="str")
    columns = {}
    for name, kind in frames_columns.RESULTS.items():
        column = frame[name]
        if kind == frames_columns.TIME:
            columns[name] = pd.to_datetime(column, format="ISO8601").dt.as_unit("us")
        elif kind in ("float64", "Int64"):
            columns[name] = pd.to_numeric(column.replace("", np.nan)).astype(kind)
        elif kind == "bool":
            columns[name] = column == "true"
        else:
            columns[name] = column.astype(kind)
    return pd.DataFrame(columns)


@pytest.mark.parametrize("narrow", [{}, {"case": "add*"}, {"case": "none"}])
def test_a_csv_says_what_the_frame_says(database: tuple[Store, Database], narrow: dict[str, str]) -> None:
    _, opened = database
    file, expected = io.BytesIO(), opened.results(**narrow)
    assert opened.export(file, "csv", **narrow) == len(expected)
    back = _as_read(file.getvalue())
    for name in frames_columns.RESULTS:
        same = expected[name].astype("str").fillna("").tolist() == back[name].astype("str").fillna("").tolist()
        assert same, name


def test_the_command_writes_a_table(database: tuple[Store, Database], url: str, tmp_path: Path) -> None:
    store, opened = database
    run = CliRunner().invoke
    every = run(app, ["export", "--format", "csv", "--db", url], standalone_mode=False)
    assert len(every.stdout.splitlines()) == 1 + len(opened.results()) == 13
    newest = ["export", "latest", "--format", "csv", "--case", "mul*", "-o", str(tmp_path / "a.csv"), "--db", url]
    assert run(app, newest, standalone_mode=False).exception is None
    assert len((tmp_path / "a.csv").read_text().splitlines()) == 3
    for options, rows in ((["--branch", "topic/*"], 8), (["--since", "0000002", "--last", "1"], 5), (["-d", "H*"], 0)):
        done = run(app, ["export", "--format", "csv", *options, "--db", url], standalone_mode=False)
        assert len(done.stdout.splitlines()) == 1 + rows
    error = run(
        app, ["export", "--format", "openmetrics", "--suite", "x", "--db", url], standalone_mode=False
    ).exception
    assert isinstance(error, UsageError)
    assert str(error) == "--suite chooses rows of a table, and openmetrics is none: leave it out"
    assert store.problems() == []


def test_patterns_narrow(database: tuple[Store, Database]) -> None:
    _, opened = database
    assert len(opened.results(suite="elem*", variant="fuse?")) == 9
    assert set(opened.results(branch="topic/*")["branch"]) == {"topic/a", "topic/b"}
    assert len(opened.results(branch="topic")) == len(opened.results(variant="f?sed*", suite="*x")) == 0
    assert set(opened.results(run="latest")["commit_seq"]) == {3}
    with pytest.raises(UsageError, match="has no run 'xyz'"):
        opened.results(run="xyz")


def test_arrow_batches_hold_every_row_in_order(database: tuple[Store, Database]) -> None:
    pa = pytest.importorskip("pyarrow")
    _, opened = database
    batches = list(opened.iter_results(batch_rows=5))
    assert [batch.num_rows for batch in batches] == [5, 5, 2]
    table, frame = pa.Table.from_batches(batches), opened.results()
    assert table.column_names == list(frame.columns)
    for name in ("case", "commit", "status", "device", "cold", "dirty", "n_samples", "measured_at"):
        assert table[name].to_pylist() == frame[name].tolist(), name
    for name in ("median_us", "gbps", "tflops", "speedup_low", "clock_mhz"):
        there = np.array([np.nan if value is None else value for value in table[name].to_pylist()])
        assert np.array_equal(there, frame[name].to_numpy(), equal_nan=True), name
    assert table["registers"].to_pylist() == [None if value is pd.NA else value for value in frame["registers"]]
    units = {field.name: field.metadata[b"unit"] for field in table.schema if field.metadata}
    assert (units["median_us"], units["gbps"], units["build_s"]) == (b"us", b"10^9 B/s", b"s")
    assert "speedup" not in units
    assert list(opened.iter_results(case="none")) == []
    with pytest.raises(UsageError, match="has no results of a revision 'beef'"):
        opened.iter_results(since="beef")
    with pytest.raises(UsageError, match="batch_rows is 0"):
        opened.iter_results(batch_rows=0)


def test_parquet_and_arrow_files(database: tuple[Store, Database], tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    _, opened = database
    expected = pa.Table.from_batches(opened.iter_results())
    with (tmp_path / "r.parquet").open("wb") as file:
        assert opened.export(file, "parquet") == 12
    back = parquet.read_table(tmp_path / "r.parquet")
    assert back.equals(expected)
    assert back.schema.metadata[b"schema"] == b"perftrack.results/1"
    assert back.schema.field("median_us").metadata[b"unit"] == b"us"
    file = io.BytesIO()
    opened.export(file, "arrow", case="none")
    empty = pa.ipc.open_stream(file.getvalue()).read_all()
    assert (empty.num_rows, empty.schema) == (0, expected.schema)


def test_a_stream_is_of_one_instant(database: tuple[Store, Database]) -> None:
    store, opened = database
    parts = opened._parts(4, {})
    first = next(parts)
    _measure(store, 4, {"add[n=1]": 2.0})
    assert len(first) + sum(len(part) for part in parts) == 12
    assert len(opened.results()) == 14


def test_sql_reads(database: tuple[Store, Database]) -> None:
    _, opened = database
    frame = opened.sql("SELECT case_key, avg(speedup) AS mean FROM results WHERE status = 'ok' GROUP BY 1 ORDER BY 1;")
    assert frame.columns.tolist() == ["case_key", "mean"]
    assert frame["case_key"].tolist() == ["add[n=1]", "add[n=2]", "mul[n=1]", "mul[n=2]"]
    assert frame["mean"].tolist() == pytest.approx([7 / 3, 32 / 3, 3.0, 5.0])
    assert opened.sql("SELECT '100%' AS share, ':x' AS colon").to_numpy().tolist() == [["100%", ":x"]]
    assert opened.sql("SELECT 1 AS one WHERE 1 = 0").columns.tolist() == ["one"]


WRITING = [
    "DELETE FROM finding",
    "UPDATE run SET state = 'complete'",
    "SELECT 1; DELETE FROM result",
    "COMMIT",
    "CREATE TABLE mine (a integer)",
    "WITH gone AS (DELETE FROM result RETURNING *) SELECT * FROM gone",
    "not a query",
    "SELECT nothing FROM nowhere",
    "",
    "PRAGMA query_only=0",
    "ATTACH DATABASE 'x.db' AS x",
    "VACUUM INTO 'x.db'",
]


@pytest.mark.parametrize("query", WRITING)
def test_sql_never_writes(database: tuple[Store, Database], query: str, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    store, opened = database
    with pytest.raises(UsageError, match="write one SELECT, which reads and changes nothing"):
        opened.sql(query)
    assert len(opened.results()) == 12
    assert not (tmp_path / "x.db").exists()
    _measure(store, 5, {"add[n=1]": 2.0})  # the connections are as they were
    assert len(opened.sql("SELECT * FROM results")) == 14


@pytest.mark.parametrize("before", ["", "-- harmless\n", "/* also /* inside */ */", "(SELECT 1); "])
@pytest.mark.parametrize("to", ["'{file}'", "PROGRAM 'cat > {file}'"])
def test_sql_never_writes_files_of_the_server(database: tuple[Store, Database], before: str, to: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)  # the server may be another user
        file = Path(folder) / "copy"
        with pytest.raises(UsageError, match="write one SELECT, which reads and changes nothing"):
            database[1].sql(f"{before}COPY (SELECT 1) TO {to.format(file=file)}")
        assert not file.exists()


def test_sql_takes_every_kind_of_select(database: tuple[Store, Database]) -> None:
    for query in (
        "VALUES (1)",
        "WITH one AS (SELECT 1) SELECT * FROM one",
        "-- one\nSELECT 1 -- and\n;",
        "/* */SELECT 1",
    ):
        assert database[1].sql(query).to_numpy().tolist() == [[1]]


def test_the_accessor_makes_speedups_of_results(database: tuple[Store, Database]) -> None:
    _, opened = database
    wide = opened.speedups()
    assert opened.results(variant="fused").perftrack.speedup().equals(wide)
    assert opened.results().perftrack.speedup("fused").equals(wide)
    pd.testing.assert_frame_equal(opened.history("add[n=1]").perftrack.speedup(), wide.iloc[:1])
    with pytest.raises(UsageError, match="this frame has no column 'suite'"):
        opened.devices().perftrack.speedup()


def test_speedups_against_a_commit(database: tuple[Store, Database]) -> None:
    _, opened = database
    against = opened.speedups().perftrack.vs(build.revision(1).sha[:9])
    assert against.loc[("elementwise", "add[n=1]")].to_numpy().tolist() == [[1.0, 2.0, 0.5]]
    missing = against.loc[("elementwise", "mul[n=2]")].to_numpy()
    assert np.isnan(missing).all()
    for text, words in (("beef", "no commit"), ("0", "more than one commit"), ("", "no commit")):
        with pytest.raises(UsageError, match=words):
            opened.speedups().perftrack.vs(text)


def test_a_mean_is_over_what_all_commits_have(database: tuple[Store, Database]) -> None:
    _, opened = database
    mean = opened.speedups().perftrack.geomean()
    # of four lines only add[n=1] and add[n=2] were measured at all three commits
    assert mean["geomean"].tolist() == pytest.approx([4.0, np.sqrt(32.0), 4.0])
    assert (mean["n"].unique().tolist(), mean["of"].unique().tolist()) == ([2], [4])
    assert mean.index.get_level_values("commit_seq").tolist() == [1, 2, 3]
    by = opened.speedups().perftrack.geomean(by="case")
    assert by.loc["mul[n=1]"]["n"].tolist() == [0, 0, 0]
    assert by.loc["mul[n=1]"]["geomean"].isna().all()
    assert by.loc["add[n=2]"]["geomean"].tolist() == pytest.approx([8.0, 8.0, 16.0])
    none = opened.speedups(case="none").perftrack
    assert len(none.geomean()) == len(none.geomean(by="suite")) == 0
    with pytest.raises(UsageError, match="the lines have suite, case, device"):
        opened.speedups().perftrack.geomean(by="vendor")


def test_without_pyarrow_the_error_names_what_to_install(
    database: tuple[Store, Database], url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    _, opened = database
    (tmp_path / "r.parquet").write_text("of yesterday")
    with pytest.raises(UsageError, match=r"pip install 'perftrack\[arrow\]'"):
        opened.iter_results()
    command = ["export", "--format", "parquet", "-o", str(tmp_path / "r.parquet"), "--db", url]
    error = CliRunner().invoke(app, command, standalone_mode=False).exception
    assert isinstance(error, UsageError)
    assert [(one.name, one.read_text()) for one in tmp_path.glob("*r.parquet*")] == [("r.parquet", "of yesterday")]
    assert len(opened.results()) == 12


def _by_the_database(store: Store, **filters) -> pd.DataFrame:
    """The frame that the joined and sorted rows of the stream make."""
    question = frames_results.question(store, **filters)
    rows = store.read(lambda connection: connection.execute(question).all())
    return frames_columns.frame(frames_columns.RESULTS, frames_results.decoded(rows))


@pytest.mark.parametrize(
    "filters",
    [
        {},
        {"case": "none"},
        {"case": "add*", "last": 2},
        {"branch": "topic/*", "variant": "fused"},
        {"since": "0000002", "repo": "kernels"},
        {"run": "latest"},
        {"last": 0},
        {"variant": "steps"},
    ],
)
def test_the_frame_is_what_the_database_joins_and_sorts(database: tuple[Store, Database], filters) -> None:
    store, opened = database
    _odd_rows(store)
    pd.testing.assert_frame_equal(opened.results(**filters), _by_the_database(store, **filters))


def _odd_rows(store: Store) -> None:
    """A base, a finding, a dirty tree of an unknown place, an unknown mode, a card that nobody knows."""
    head = build.revision(4, dirty=True, position=None, branch=None)
    run = build.run(9, head=head, base=build.revision(2, branch="topic/a"))
    store.begin_run(run)
    store.add_job(run.uid, build.case("mul[n=2]"), build.job(case_key="mul[n=2]"), build.device())
    summaries = [
        build.summary(side, variant, case_key="mul[n=2]", mode="another", error_l2=None, device_uuid="")
        for side in ("head", "base")
        for variant in ("unfused", "steps", "fused")
    ]
    findings = [build.finding(case_key="mul[n=2]")]
    store.finish_run(run.uid, state="complete", finished_us=1, summaries=summaries, findings=findings)


def test_some_columns_are_those_of_all(database: tuple[Store, Database]) -> None:
    store, opened = database
    _odd_rows(store)
    everything = opened.results()
    for some in (["median_us", "case"], ["vectorisation", "message", "mode"], ["verdict", "registers"], ["branch"]):
        pd.testing.assert_frame_equal(opened.results(columns=some), everything[some])
    assert opened.results(columns=[]).shape == (len(everything), 0)
    with pytest.raises(UsageError, match="results have no column 'medain_us'; they have repo, commit"):
        opened.results(columns=["medain_us"])


def test_the_newest_result_of_each_series_against_a_commit(database: tuple[Store, Database]) -> None:
    opened = database[1]
    rows = opened.latest("0000001").xs("fused", level="variant").droplevel(["suite", "device"])
    assert rows.index.tolist() == ["add[n=1]", "add[n=2]", "mul[n=1]", "mul[n=2]"]
    assert rows["commit_seq"].tolist() == [3, 3, 3, 3]
    assert rows["speedup"].tolist() == [1.0, 16.0, 3.0, 5.0]
    assert rows["speedup_base"].fillna(0).tolist() == [2.0, 8.0, 3.0, 0.0]
    assert rows["time_change_pct"].fillna(-1).tolist() == [0.0, 0.0, 0.0, -1.0]
    older = opened.latest(branch="topic/a")
    assert older["commit_seq"].tolist() == [2, 2, 2]
    assert older["median_us_base"].isna().all()
    nothing = opened.latest(case="none")
    assert len(nothing) == 0
    assert nothing.dtypes.equals(opened.latest().dtypes)


def test_an_empty_store_has_no_newest_results(url: str) -> None:
    with Store.open(url) as store, perftrack.open(url) as opened:
        nothing = opened.latest()
        _measure(store, 1, {"add[n=1]": 2.0})
        something = opened.latest()
    assert (len(nothing), len(something)) == (0, 2)
    assert nothing.dtypes.equals(something.dtypes)
    assert nothing.index.names == something.index.names


def test_a_series_that_was_given_up_long_ago_has_its_newest_result_too(database: tuple[Store, Database]) -> None:
    """Before all commits that are asked for every series, and the newest of two there."""
    store, opened = database
    known = Dimensions(store._door)
    for number in range(4, 134):
        known.revision("kernels", build.revision(number))
    _measure(store, 134, {"add[n=1]": 7.0})
    rows = opened.latest("0000001", variant="fused").reset_index().set_index("case")
    assert rows["commit_seq"].to_dict() == {"add[n=1]": 134, "add[n=2]": 3, "mul[n=1]": 3, "mul[n=2]": 3}
    assert rows["speedup"].to_dict() == {"add[n=1]": 7.0, "add[n=2]": 16.0, "mul[n=1]": 3.0, "mul[n=2]": 5.0}
    assert rows["speedup_base"].fillna(0).tolist() == [2.0, 8.0, 3.0, 0.0]


def test_the_newest_result_is_the_last_of_its_name_in_results(database: tuple[Store, Database]) -> None:
    """Also where a commit was measured twice, against itself, by another method, or under another name."""
    store, opened = database
    _odd_rows(store)
    itself = build.run(20, head=build.revision(2), base=build.revision(2), options=RunOptions(methods={}))
    store.begin_run(itself)
    store.add_job(itself.uid, build.case("mul[n=2]"), build.job(case_key="mul[n=2]"), build.device())
    both = [
        build.summary(side, case_key="mul[n=2]", time_s=time_s) for side, time_s in (("head", 4e-6), ("base", 5e-6))
    ]
    store.finish_run(itself.uid, state="complete", finished_us=1, summaries=both, findings=[])
    store.rename("add[n=1]", "mul[n=1]")
    names = ["suite", "case", "device", "variant"]
    shown = ["repo", "commit", "commit_seq", "status", "median_us", "speedup"]
    for filters in ({}, {"branch": "topic/a"}, {"case": "mul*", "last": 2}, {"since": "0000003"}):
        for base in (1, 2):
            found = opened.latest(f"{base:07x}", **filters)
            every = opened.results(**filters).astype(dict.fromkeys((*names, "repo"), "str"))
            last = every.drop_duplicates(names, keep="last").set_index(names).sort_index()
            pd.testing.assert_frame_equal(found[shown], last[shown])
            there = every[every["commit"] == build.revision(base).sha]
            before = there.drop_duplicates(names, keep="last").set_index(names).reindex(last.index)
            assert found["median_us_base"].equals(before["median_us"].rename("median_us_base"))
            assert found["speedup_base"].equals(before["speedup"].rename("speedup_base"))

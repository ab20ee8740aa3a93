"""The history detector's time, and a small share of its scores (all of them: make bench-detector)."""

import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from detector_scores import KINDS, SPREADS, generator, score, total, track

from perftrack.judge.history import change_points
from perftrack.judge.replay import replay
from perftrack.pipeline.replays import replay_of
from perftrack.store import Store
from perftrack.store.value import FinishedJob

sys.path.insert(0, str(Path(__file__).parents[1] / "store"))
import store_builders as build

METHOD = build.run().options.methods["cpu"]


@pytest.mark.parametrize("count", [300, 3000])
def test_bench_change_points(benchmark: Any, count: int) -> None:
    values, inside = track("heavy", count, 0.01, [(count // 3, 0.05), (2 * count // 3, -0.05)], generator(1))
    assert benchmark(change_points, values, inside)


def test_bench_replay(benchmark: Any) -> None:
    values, _ = track("gauss", 500, 0.01, [(250, 0.1)], generator(2))
    assert [one.start for one in benchmark.pedantic(replay, (values,), rounds=1)] == [250]


def test_bench_replay_a_store(benchmark: Any, tmp_path: Path) -> None:
    """500 series of 500 commits, from the database to the report, on every core there is: 60 s on two are wanted."""
    count, size = (500, 500) if benchmark.enabled else (4, 60)
    values = [
        track(KINDS[at % 5], size, SPREADS[at % 4], [(size // 2, 0.2)] if at % 2 else [], generator("s", at))[0]
        for at in range(count)
    ]
    path = tmp_path / "perf.db"
    with Store.open(str(path)) as store:
        _fill(store, path, values)
        made = benchmark.pedantic(replay_of, (store, ""), {"device": "", "since": "", "start": tmp_path}, rounds=1)
    assert (made.series, made.commits, made.values) == (count, size, count * size)
    assert len(made.told) >= count // 4


def _fill(store: Store, path: Path, values: Sequence[np.ndarray]) -> None:
    """The first commit as a run is stored, the others as copies of its rows: stored one by one they take minutes."""
    runs = [build.run(at + 1, head=build.revision(at), base=None) for at in range(len(values[0]))]
    for run in runs:
        store.begin_run(run)
    cases = [build.case(f"add[n={at:03d}]") for at in range(len(values))]
    store.add_finished(runs[0].uid, [_finished(case) for case in cases])
    with sqlite3.connect(path) as connection:
        connection.row_factory = sqlite3.Row
        (side,) = connection.execute("select * from run_side").fetchall()
        numbers = connection.execute("select run.id, head_id from run order by started_us").fetchall()
        connection.executemany(
            "insert into run_side (id, run_id, revision_id, side) values (?, ?, ?, 'head')",
            [(side["id"] + at, *pair) for at, pair in enumerate(numbers) if at],
        )
        first = [dict(row) for row in connection.execute("select * from result order by series_id")]
        connection.execute("delete from result")
        marks = ", ".join(f":{name}" for name in first[0])
        connection.executemany(
            f"insert into result ({', '.join(first[0])}) values ({marks})",  # noqa: S608 - columns of the table
            (
                {**row, "run_side_id": side["id"] + at, "time_s": 1e-6 * float(series[at])}
                for at in range(len(numbers))
                for row, series in zip(first, values, strict=True)
            ),
        )


def _finished(case: Any) -> FinishedJob:
    job = build.job(case_key=case.key, measurements=(build.measurement(samples_s=(), blocks=()),))
    return FinishedJob(
        case=case, attempts=((job, build.device()),), answers=((build.summary(case_key=case.key), METHOD),)
    )


@pytest.mark.parametrize(("step", "least", "most"), [(0.0, 0, 1), (0.1, 8, 1)])
def test_bench_found_and_wrong(benchmark: Any, step: float, least: int, most: int) -> None:
    tracks = [
        track(kind, 160, 0.01, [(80, step)], generator(kind, number))
        for kind in ("gauss", "heavy", "two modes", "drift")
        for number in range(3)
    ]
    truth = [(80, 1)] if step else []
    found = benchmark.pedantic(lambda: total(score(change_points(*one), truth) for one in tracks), rounds=1)
    assert found.right >= least
    assert found.wrong <= most

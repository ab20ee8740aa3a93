"""The history detector's time, and a small share of its scores (all of them: make bench-detector)."""

from typing import Any

import pytest
from detector_scores import generator, score, total, track

from perftrack.judge.history import change_points
from perftrack.judge.replay import replay


@pytest.mark.parametrize("count", [300, 3000])
def test_bench_change_points(benchmark: Any, count: int) -> None:
    values, inside = track("heavy", count, 0.01, [(count // 3, 0.05), (2 * count // 3, -0.05)], generator(1))
    assert benchmark(change_points, values, inside)


def test_bench_replay(benchmark: Any) -> None:
    values, _ = track("gauss", 500, 0.01, [(250, 0.1)], generator(2))
    assert [one.start for one in benchmark.pedantic(replay, (values,), rounds=1)] == [250]


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

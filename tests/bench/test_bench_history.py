"""The history detector: its time, and its right and wrong alerts on seeded synthetic series (shown by pytest -s)."""

import math
import zlib
from typing import Any

import numpy as np
import pytest

from perftrack.judge.history import change_points

NOISES = ("gauss", "heavy", "modes", "drift")
STEPS = (0.02, 0.05, 0.1, 0.2)
SPREAD = 0.01


def noise(kind: str, count: int, generator: np.random.Generator) -> np.ndarray:
    """Relative noise of one kind whose core scatters by 1 %."""
    core = SPREAD * generator.standard_normal(count)
    if kind == "heavy":
        spikes = (generator.random(count) < 0.03) * generator.uniform(5, 30, count)
        return SPREAD * (generator.standard_t(3, count) / math.sqrt(3) - spikes)
    if kind == "modes":
        return core - (generator.random(count) < 0.35) * SPREAD * generator.uniform(3, 8)
    if kind == "drift":
        for at in range(1, count):
            core[at] = 0.5 * core[at - 1] + math.sqrt(0.75) * core[at]
        return core + SPREAD * np.sin(2 * math.pi * np.arange(count) / count)
    return core


def series(kind: str, step: float, number: int) -> np.ndarray:
    """160 values with a step down at 80."""
    generator = np.random.default_rng(zlib.crc32(repr((kind, step, number)).encode()))
    values = 2.5 * np.exp(noise(kind, 160, generator))
    values[80:] /= 1 + step
    return values


def score(step: float) -> tuple[int, int, int]:
    """Of 16 series: steps found within two values, other alerts, steps alerted within five values."""
    found = wrong = soon = 0
    for kind in NOISES:
        for number in range(4):
            values = series(kind, step, number)
            places = [place for place, _ in change_points(values)]
            right = [place for place in places if step and abs(place - 80) <= 2]
            found, wrong = found + bool(right), wrong + len(places) - len(right)
            soon += any(abs(place - 80) <= 2 for place, _ in change_points(values[:85]))
    return found, wrong, soon


@pytest.mark.parametrize("count", [300, 3000])
def test_bench_change_points(benchmark: Any, count: int) -> None:
    values = np.concatenate([series("heavy", 0.05, number) for number in range(20)])[:count]
    assert benchmark(change_points, values)


def test_bench_right_and_wrong_alerts(benchmark: Any) -> None:
    table = benchmark.pedantic(lambda: {step: score(step) for step in (0.0, *STEPS)}, rounds=1)
    for step, (found, wrong, soon) in table.items():
        print(f"step {step:4.0%}: found {found}/16, wrong alerts {wrong}, within five values {soon}/16")  # noqa: T201
    assert table[0.0][1] <= 2
    assert table[0.2][0] >= 14

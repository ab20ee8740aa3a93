"""Replay of a stored history: what is told when, from the past alone."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perftrack.judge.history import change_points
from perftrack.judge.replay import Alert, replay


def noisy(*levels: tuple[float, int], spread: float = 0.004, seed: int = 7) -> np.ndarray:
    level = np.concatenate([np.full(count, value) for value, count in levels])
    return level * np.exp(spread * np.random.default_rng(seed).standard_normal(len(level)))


def test_a_plain_step_is_told_once_with_its_third_value() -> None:
    (alert,) = replay(noisy((100, 60), (120, 60)))
    assert alert == Alert(start=60, direction=1, seen=62)
    assert alert.delay == 2


def test_each_change_is_told_in_its_turn_and_steady_noise_never() -> None:
    alerts = replay(noisy((100, 50), (90, 50), (99, 50)))
    assert [(one.start, one.direction) for one in alerts] == [(50, -1), (100, 1)]
    assert all(one.delay <= 3 for one in alerts)
    assert replay(noisy((100, 150))) == []
    assert replay([7.0] * 60) == []
    assert replay([]) == []


def test_gaps_and_borders_keep_their_indices() -> None:
    values = noisy((100, 40), (130, 40), (160, 40))
    values[10:14] = math.nan
    assert [(one.start, one.seen) for one in replay(values, borders=[80])] == [(40, 42)]
    assert [(one.start, one.seen) for one in replay(values, borders=[40])] == [(80, 82)]


def test_cards_that_alternate_are_levelled() -> None:
    cards = ["GPU-a", "GPU-b"] * 60
    values = noisy((100, 80), (110, 40)) * np.array([1.0, 0.96] * 60)
    assert [(one.start, one.direction) for one in replay(values, cards=cards)] == [(80, 1)]


def test_exact_counts() -> None:
    assert replay([32] * 40 + [40] * 40) == [Alert(40, 1, 42)]


def test_wrong_shapes_are_told() -> None:
    with pytest.raises(ValueError, match="dimensions"):
        replay(np.ones((2, 3)))
    with pytest.raises(ValueError, match="one a value"):
        replay([1, 2, 3], [1, 2])


@given(
    levels=st.lists(
        st.tuples(st.sampled_from([90.0, 100.0, 103.0, 150.0]), st.integers(5, 40)), min_size=1, max_size=4
    ),
    seed=st.integers(0, 99),
    cut=st.integers(0, 120),
)
@settings(max_examples=15, deadline=None)
def test_no_alert_depends_on_what_came_later(levels: list[tuple[float, int]], seed: int, cut: int) -> None:
    values = noisy(*levels, seed=seed)
    alerts = replay(values)
    assert replay(values[:cut]) == [one for one in alerts if one.seen < cut]
    for one in alerts:
        assert one.delay >= 0
        assert any(abs(place - one.start) <= 1 for place, _ in change_points(values[: one.seen + 1]))

"""What people said of slowdowns, in the changes of a history."""

import math

import numpy as np
import pytest

from perftrack.judge.history import change_points
from perftrack.judge.marks import marked_changes


def series(levels: list[float], *, seed: int = 1, spread: float = 0.003) -> list[float]:
    return (np.array(levels) * np.exp(spread * np.random.default_rng(seed).standard_normal(len(levels)))).tolist()


STEP = series([10.0] * 20 + [11.0] * 20)
SMALL = series([10.0] * 20 + [10.02] * 20)


def test_without_marks_it_is_the_detector_s_answer() -> None:
    assert marked_changes(STEP) == change_points(STEP) == [(20, 1)]


def test_an_accepted_step_is_a_change_at_its_commit_even_where_the_times_do_not_show_it() -> None:
    assert marked_changes(STEP, steps=[20]) == [(20, 1)]
    assert change_points(SMALL) == []
    assert marked_changes(SMALL, steps=[20]) == [(20, 1)]


def test_an_accepted_step_hides_no_other_change() -> None:
    values = series([10.0] * 20 + [11.0] * 20 + [9.0] * 20)
    assert marked_changes(values, steps=[20]) == [(20, 1), (40, -1)]


@pytest.mark.parametrize("place", [18, 20, 22])
def test_no_rise_is_reported_near_what_was_called_invalid(place: int) -> None:
    assert marked_changes(STEP, invalid=[place]) == []


def test_a_fall_near_an_invalid_slowdown_is_reported() -> None:
    falls = series([11.0] * 20 + [10.0] * 20)
    assert marked_changes(falls, invalid=[20]) == [(21, -1)]


def test_a_mark_on_a_gap_is_that_of_the_next_value_and_one_at_the_ends_or_a_border_is_none() -> None:
    gap = [*STEP[:20], math.nan, *STEP[21:]]
    assert marked_changes(gap, steps=[20]) == [(21, 1)]
    assert marked_changes(STEP, steps=[0]) == [(20, 1)]
    assert marked_changes(STEP, borders=[20], steps=[20]) == []
    assert marked_changes([*STEP, math.nan], steps=[40]) == [(20, 1)]
    assert marked_changes([], steps=[0], invalid=[0]) == []

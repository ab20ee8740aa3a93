"""The history detector: right answers on literal series, laws on drawn ones, and the labelled real series."""

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perftrack.judge import change_points

SERIES = Path(__file__).parents[3] / "shared" / "data" / "series"
NAN, INF = math.nan, math.inf


def noisy(*levels: tuple[float, int], spread: float = 0.004, seed: int = 7) -> np.ndarray:
    """Levels (value, how many) with Gaussian noise of the given relative spread."""
    level = np.concatenate([np.full(count, value) for value, count in levels])
    return level * np.exp(spread * np.random.default_rng(seed).standard_normal(len(level)))


@pytest.mark.parametrize(
    ("levels", "changes"),
    [
        ([(100, 80)], []),
        ([(100, 40), (110, 40)], [(40, 1)]),
        ([(100, 40), (90, 40)], [(40, -1)]),
        ([(100, 40), (120, 8), (140, 40)], [(40, 1), (48, 1)]),
        ([(100, 40), (110, 30), (100, 30)], [(40, 1), (70, -1)]),
        ([(100, 40), (102, 40)], [(40, 1)]),
        ([(100, 40), (100.2, 40)], []),
        ([(100, 40), (130, 1), (100, 40)], []),
        ([(100, 40), (130, 3), (100, 40)], []),
        ([(-100, 40), (-90, 40)], [(40, 1)]),
        ([(1e-9, 40), (2e-9, 40)], [(40, 1)]),
        ([(1e300, 40), (2e300, 40)], [(40, 1)]),
    ],
    ids=[
        "steady", "up", "down", "two close steps", "there and back", "2 %", "0.2 % is below the effect", "outlier",
        "burst of three", "negative", "nanoseconds", "huge",
    ],
)  # fmt: skip
def test_levels(levels: list[tuple[float, int]], changes: list[tuple[int, int]]) -> None:
    assert change_points(noisy(*levels)) == changes


@pytest.mark.parametrize("seed", range(1, 9))
def test_noise_that_grows_or_shrinks_is_no_change_of_level(seed: int) -> None:
    quiet, loud = noisy((100, 60), spread=0.003, seed=seed), noisy((100, 60), spread=0.02, seed=100 + seed)
    for first, second in ((quiet, loud), (loud, quiet)):
        assert change_points(np.concatenate([first, second])) == []
        assert change_points(np.concatenate([first, 1.1 * second])) == [(60, 1)], "a step beside it is one"


@pytest.mark.parametrize(("newest", "changes"), [(1, []), (2, [(100, 1)]), (3, [(100, 1)])])
def test_a_plain_step_needs_two_newest_values(newest: int, changes: list[tuple[int, int]]) -> None:
    assert change_points(noisy((100, 100), (130, newest))) == changes


@pytest.mark.parametrize("past", [20, 60])
def test_after_a_shorter_past_two_newest_values_may_be_outliers(past: int) -> None:
    assert change_points(noisy((100, past), (130, 2))) == []
    assert change_points(noisy((100, past), (130, 3))) == [(past, 1)]


@pytest.mark.parametrize("values", [[], [5.0], [5.0, 9.0], [5.0] * 3 + [9.0] * 3, [5.0] * 50, [0.0] * 50, [-1.0] * 9])
def test_too_few_or_equal_values_have_no_change(values: list[float]) -> None:
    assert change_points(values) == []


@pytest.mark.parametrize(("before", "after"), [(32, 40), (0, 16), (0, -16), (-3, 3), (1, 0)])
def test_counts_without_noise(before: float, after: float) -> None:
    """Registers, spilled bytes: the step is exact, zero and negative numbers are values like others."""
    assert change_points([before] * 20 + [after] * 20) == [(20, 1 if after > before else -1)]


def test_lone_zero_is_an_outlier() -> None:
    values = noisy((100, 60))
    values[30] = 0
    assert change_points(values) == []


@pytest.mark.parametrize("gap", [NAN, INF, -INF, None])
def test_gaps_are_left_out_and_indices_stay(gap: Any) -> None:
    values: list[Any] = noisy((100, 40), (110, 40)).tolist()
    values[5:8] = [gap] * 3
    values[39] = values[40] = gap
    assert change_points(values) == [(41, 1)]
    assert change_points([gap] * 30) == []


def test_two_modes_are_no_changes_and_a_step_under_them_is_seen() -> None:
    generator = np.random.default_rng(3)
    lower = generator.random(160) < 0.4
    values = 100 * np.exp(0.004 * generator.standard_normal(160) - 0.03 * lower)
    assert change_points(values) == []
    values[80:] *= 0.98
    ((place, direction),) = change_points(values)
    assert (abs(place - 80) <= 2, direction) == (True, -1)


@pytest.mark.parametrize("share", [0.4, 0.0])
def test_a_step_by_the_gap_of_two_modes_is_seen_where_both_stay_long(share: float) -> None:
    """Sixty values in one mode and sixty in the other are no modes, even if the past flipped run by run."""
    generator = np.random.default_rng(5)
    lower = np.concatenate([generator.random(80) < share, np.zeros(60, bool), np.ones(60, bool)])
    values = 100 * np.exp(0.003 * generator.standard_normal(200) - 0.05 * lower)
    assert (140, -1) in change_points(values)


def test_modes_that_last_some_commits_are_no_changes() -> None:
    generator = np.random.default_rng(11)
    lower = np.logical_xor.accumulate(generator.random(180) < 0.2)
    assert change_points(100 * np.exp(0.004 * generator.standard_normal(180) - 0.02 * lower)) == []


@pytest.mark.parametrize("seed", [1, 7, 11])
def test_a_step_below_modes_that_last_is_seen_in_five_values(seed: int) -> None:
    """The modes are four deviations apart: one by one, their differences hardly tell them from one mode."""
    generator = np.random.default_rng(seed)
    lower = np.logical_xor.accumulate(generator.random(125) < 0.2)
    values = 100 * np.exp(0.004 * generator.standard_normal(125) - 0.016 * lower)
    values[120:] *= 0.974
    assert change_points(values[:120]) == []
    ((place, direction),) = change_points(values)
    assert (abs(place - 120) <= 2, direction) == (True, -1)


@pytest.mark.parametrize("seed", [3, 6])
def test_a_stretch_of_two_modes_makes_no_mode_of_an_earlier_step(seed: int) -> None:
    generator = np.random.default_rng(seed)
    steady = np.repeat([0, 0.05, 0], [60, 15, 30]) + 0.01 * generator.standard_normal(105)
    modes = 0.01 * generator.standard_normal(60) + 0.05 * (generator.random(60) < 0.3)
    quiet = 0.004 * generator.standard_normal(100)
    assert change_points(np.exp(np.concatenate([steady, modes, quiet]))) == [(60, 1), (75, -1)]


@pytest.mark.parametrize(("visits", "changes"), [([72, 80, 88, 95], [(100, 1)]), ([72, 73, 74, 75], [])])
def test_a_level_seen_lately_is_new_where_it_was_left(visits: list[int], changes: list[tuple[int, int]]) -> None:
    """Five newest values at 105: four lone outliers do not come in a row, a mode that stayed for four values does."""
    values = noisy((100, 100), (105, 5))
    values[visits] *= 1.05
    assert change_points(values) == changes


@pytest.mark.parametrize(("bursts", "changes"), [([], [(60, 1), (66, -1)]), ([20, 90], [])])
def test_six_values_are_a_level_where_bursts_are_not_usual(bursts: list[int], changes: list[tuple[int, int]]) -> None:
    values = noisy((100, 60), (104, 6), (100, 60))
    for start in bursts:
        values[start : start + 3] *= 1.04
    assert change_points(values) == changes


def test_levels_that_change_up_and_down_after_ten_commits_each_are_changes() -> None:
    values = noisy((100, 30), (120, 10), (100, 10), (120, 10), (100, 30))
    assert change_points(values) == [(30, 1), (40, -1), (50, 1), (60, -1)]


@pytest.mark.parametrize("rise", [0.02, 0.05, -0.05])
def test_slow_drift_is_no_change(rise: float) -> None:
    assert change_points(noisy((100, 200)) * np.exp(np.linspace(0, rise, 200))) == []


def test_cards_that_alternate_are_levelled() -> None:
    cards = [("GPU-a", "GPU-b", "GPU-c")[at * at % 5 % 3] for at in range(120)]
    factor = np.array([{"GPU-a": 1.0, "GPU-b": 0.97, "GPU-c": 1.02}[card] for card in cards])
    steady, changed = noisy((100, 120)) * factor, noisy((100, 80), (98.5, 40)) * factor
    assert change_points(steady, cards=cards) == []
    assert change_points(changed, cards=cards) == [(80, -1)]


def test_a_card_that_gives_way_to_another_for_good_is_no_change() -> None:
    values = noisy((100, 40), (110, 40), (121, 40))
    cards = ["GPU-a"] * 80 + ["GPU-b"] * 40
    assert change_points(values) == [(40, 1), (80, 1)]
    assert change_points(values, cards=cards) == [(40, 1)]


def test_no_change_across_a_border() -> None:
    values = noisy((100, 40), (110, 40), (120, 40))
    assert change_points(values) == [(40, 1), (80, 1)]
    assert change_points(values, borders=[80]) == [(40, 1)]
    assert change_points(values, borders=[40, 80, 0, 120, 500]) == []


def test_noise_inside_runs_hides_a_step() -> None:
    values = noisy((100, 40), (102, 40))
    assert change_points(values, 0.1 * values) == []
    assert change_points(values, np.full(80, NAN)) == [(40, 1)]


def test_wrong_shapes_are_told() -> None:
    with pytest.raises(ValueError, match="one row of values"):
        change_points(np.ones((3, 4)))
    with pytest.raises(ValueError, match="2 deviations for 3 values"):
        change_points([1, 2, 3], [1, 2])
    with pytest.raises(ValueError, match="2 cards for 3 values"):
        change_points([1, 2, 3], cards=["GPU-a", "GPU-b"])


STEPS = st.lists(
    st.tuples(st.sampled_from([90.0, 97.0, 100.0, 110.0, 150.0]), st.integers(4, 40)), min_size=1, max_size=5
)


@given(levels=STEPS, seed=st.integers(0, 999), spread=st.sampled_from([0.0005, 0.004, 0.02]))
@settings(max_examples=20, deadline=None)
def test_laws(levels: list[tuple[float, int]], seed: int, spread: float) -> None:
    values = noisy(*levels, spread=spread, seed=seed)
    kept = values.copy()
    changes = change_points(values)
    assert change_points(values) == changes
    assert np.array_equal(values, kept)
    assert change_points(list(values)) == changes
    assert change_points(1024 * values) == changes
    places = [place for place, _ in changes]
    assert places == sorted(set(places))
    assert all(2 <= place <= len(values) - 2 and direction in {1, -1} for place, direction in changes)


@given(size=st.sampled_from([0.05, 0.2, 1.0]), at=st.integers(20, 40), seed=st.integers(0, 99))
@settings(max_examples=12, deadline=None)
def test_a_plain_step_is_found_mirrored_and_kept_as_the_series_grows(size: float, at: int, seed: int) -> None:
    values = noisy((100, at), (100 * (1 + size), 30), spread=0.001, seed=seed)
    assert change_points(values) == [(at, 1)]
    assert change_points(1 / values) == [(at, -1)]
    # after three values, as a rule; noise may ask for one or two more
    assert all(
        change_points(values[:end]) == ([] if end < at + 3 else [(at, 1)])
        for end in (at, at + 2, at + 5, at + 8, at + 20)
    )


@pytest.mark.parametrize("size", [0.05, 0.2, 1.0])
@pytest.mark.parametrize("at", [20, 28, 40])
@pytest.mark.parametrize("seed", range(0, 50, 5))
def test_a_plain_step_is_told_after_three_values(size: float, at: int, seed: int) -> None:
    values = noisy((100, at), (100 * (1 + size), 3), spread=0.001, seed=seed)
    assert change_points(values[:-1]) == []
    assert change_points(values) == [(at, 1)]


RUNS = st.lists(
    st.tuples(st.floats() | st.sampled_from([0.0, 1.0, 1e308, 5e-324]), st.floats(), st.sampled_from("ab")), max_size=40
)


@given(runs=RUNS)
@settings(max_examples=60, deadline=None)
def test_any_numbers_are_answered(runs: list[tuple[float, float, str]]) -> None:
    values, inside, cards = [one[0] for one in runs], [one[1] for one in runs], [one[2] for one in runs]
    for changes in (change_points(values), change_points(values, inside, cards=cards, borders=[7, -2])):
        assert all(0 < place < len(values) for place, _ in changes)


def test_the_package_stays_light() -> None:
    code = "import sys, perftrack.judge as j; assert 'numpy' not in sys.modules; assert j.change_points([1]) == []"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.skipif(not SERIES.is_dir(), reason="the labelled series are not here")
def test_labelled_real_series() -> None:
    """Within two commits; what lies in a window that the rater could not decide counts neither way."""
    right = wrong = missed = 0
    for file in sorted(SERIES.glob("*.json")):
        series = json.loads(file.read_text())
        for one in series if isinstance(series, list) else []:
            places = [place for place, _ in change_points(one["values"], one.get("std"))]
            truth, unsure = one["labels"]["changes"], one["labels"]["dont_care"]
            near = [place for place in places if any(abs(place - at) <= 2 for at in truth)]
            right += sum(any(abs(place - at) <= 2 for place in places) for at in truth)
            missed += sum(all(abs(place - at) > 2 for place in places) for at in truth)
            rest = set(places) - set(near)
            wrong += sum(not any(low - 2 <= place <= high + 2 for low, high in unsure) for place in rest)
    assert right / (right + wrong) >= 0.95
    assert right / (right + missed) >= 0.88

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perftrack import stats

RATIOS = st.lists(st.floats(0.5, 2.0), min_size=2, max_size=8)
TIMES = st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=30)


@pytest.mark.parametrize(
    ("degrees", "confidence", "expected"),
    [  # printed tables of Student's t
        (1, 0.95, 12.7062047),
        (2, 0.95, 4.3026527),
        (4, 0.95, 2.7764451),
        (10, 0.95, 2.2281389),
        (30, 0.95, 2.0422725),
        (1000, 0.95, 1.9623391),
        (2, 0.99, 9.9248432),
        (4, 0.99, 4.6040949),
        (4, 0.999, 8.6103016),
        (7, 0.90, 1.8945786),
        (1, 0.5, 1.0),
    ],
)
def test_student_t_quantiles_are_those_of_the_tables(degrees, confidence, expected):
    assert stats.student_t(degrees, confidence) == pytest.approx(expected, abs=6e-8)


@given(st.floats(0.01, 1e4))
def test_student_t_tail_has_its_closed_forms(t):
    assert stats.student_t_tail(t, 1) == pytest.approx(2 / math.pi * math.atan(1 / t), rel=1e-9)
    root = math.sqrt(t * t + 2)
    assert stats.student_t_tail(t, 2) == pytest.approx(2 / (root * (root + t)), rel=1e-9)
    assert stats.student_t_tail(-t, 2) == stats.student_t_tail(t, 2)
    sine, cosine = t / math.sqrt(t * t + 4), 2 / math.sqrt(t * t + 4)
    assert stats.student_t_tail(t, 4) == pytest.approx(1 - sine * (1 + cosine**2 / 2), abs=1e-14, rel=1e-6)


def test_student_t_tail_refuses_a_single_value():
    with pytest.raises(ValueError, match="at least 1 degree of freedom, not 0"):
        stats.student_t_tail(1.0, 0)


def test_quantiles_interpolate():
    assert stats.median([3.0, 1.0, 2.0]) == 2.0
    assert stats.median([1.0, 2.0, 3.0, 10.0]) == 2.5
    assert stats.quantile([1.0, 2.0, 3.0, 4.0, 5.0], 0.1) == pytest.approx(1.4)
    assert stats.quantile([7.0], 0.9) == 7.0
    assert stats.median_absolute_deviation([1.0, 1.0, 2.0, 2.0, 4.0]) == 1.0


@pytest.mark.parametrize("function", [stats.median, stats.median_absolute_deviation, stats.geometric_mean])
def test_nothing_has_no_middle(function):
    with pytest.raises(ValueError, match=r"no values|positive values"):
        function([])


def test_the_interval_of_three_ratios_by_hand():
    # logs -0.01, 0, 0.01: standard deviation 0.01, half-width 4.302653 * 0.01 / sqrt(3)
    ratios = [math.exp(x) for x in (-0.01, 0.0, 0.01)]
    half = 4.3026527 * 0.01 / math.sqrt(3)
    point, low, high = stats.ratio_interval(ratios)
    assert point == pytest.approx(1.0)
    assert low == pytest.approx(math.exp(-half), rel=1e-8)
    assert high == pytest.approx(math.exp(half), rel=1e-8)
    assert stats.detectable_effect(ratios) == pytest.approx(math.expm1(half), rel=1e-7)


def test_one_ratio_has_no_interval():
    with pytest.raises(ValueError, match="at least two"):
        stats.ratio_interval([1.0])


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan])
def test_a_ratio_must_be_positive(bad):
    with pytest.raises(ValueError, match="positive"):
        stats.ratio_interval([1.0, bad])


def test_wild_ratios_still_give_finite_bounds():
    bounds = stats.ratio_interval([1e-300, 1e300])
    assert all(math.isfinite(value) for value in (*bounds, stats.detectable_effect([1e-300, 1e300])))


@given(RATIOS, st.floats(0.1, 10), st.randoms())
def test_intervals_scale_and_do_not_depend_on_the_order(ratios, factor, chance):
    bounds = stats.ratio_interval(ratios)
    scaled = stats.ratio_interval([factor * ratio for ratio in ratios])
    assert scaled == pytest.approx(tuple(factor * value for value in bounds), rel=1e-6)
    assert stats.ratio_interval(chance.sample(ratios, len(ratios))) == pytest.approx(bounds, rel=1e-9)
    assert bounds.low <= bounds.point <= bounds.high


@given(RATIOS)
def test_inverse_ratios_mirror(ratios):
    point, low, high = stats.ratio_interval(ratios)
    mirrored = stats.ratio_interval([1 / ratio for ratio in ratios])
    assert mirrored == pytest.approx((1 / point, 1 / high, 1 / low), rel=1e-6)


@given(RATIOS)
def test_p_value_and_interval_agree(ratios):
    p = stats.ratio_p_value(ratios)
    _, low, high = stats.ratio_interval(ratios)
    if abs(p - 0.05) > 1e-6:
        assert (p < 0.05) == (low > 1 or high < 1)


def test_p_value_without_spread():
    assert stats.ratio_p_value([1.0, 1.0, 1.0]) == 1.0
    assert stats.ratio_p_value([2.0, 2.0, 2.0]) == 0.0


def test_the_interval_covers_as_often_as_it_says():
    chance = random.Random(7)  # noqa: S311 - noise for a simulation
    covered = 0
    for _ in range(4000):
        _, low, high = stats.ratio_interval([math.exp(chance.gauss(0.03, 0.01)) for _ in range(3)])
        covered += low <= math.exp(0.03) <= high
    assert covered / 4000 == pytest.approx(0.95, abs=0.012)


def test_benjamini_hochberg_by_hand():
    assert stats.benjamini_hochberg([0.01, 0.04, 0.03, 0.5]) == pytest.approx([0.04, 0.16 / 3, 0.16 / 3, 0.5])
    assert stats.benjamini_hochberg([0.2, 0.2, 0.2]) == pytest.approx([0.2, 0.2, 0.2])
    assert stats.benjamini_hochberg([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=10))
def test_benjamini_hochberg_lies_between_the_value_and_bonferroni(p_values):
    for p, adjusted in zip(p_values, stats.benjamini_hochberg(p_values), strict=True):
        assert p <= adjusted * (1 + 1e-12)
        assert adjusted <= min(1.0, len(p_values) * p) * (1 + 1e-12)
    assert max(stats.benjamini_hochberg(p_values)) == pytest.approx(max(p_values))


@given(TIMES, st.floats(0.1, 10))
def test_median_scales(times, factor):
    assert stats.median([factor * time for time in times]) == pytest.approx(factor * stats.median(times), rel=1e-9)
    assert min(times) <= stats.geometric_mean(times) * (1 + 1e-9)


def test_confidence_must_be_a_share():
    with pytest.raises(ValueError, match=r"confidence is 95; give a share between 0 and 1"):
        stats.student_t(4, 95)

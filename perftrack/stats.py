"""Numbers in, numbers out: robust summaries, and inference on ratios over a handful of rounds.

Ratios are judged by their logarithms, so that swapping numerator and denominator mirrors every answer.
With three or five rounds the normal distribution is far too narrow; Student's t is exact for Gaussian rounds.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

_LARGEST_EXPONENT = 700.0
"""exp() of more overflows, and infinity is no JSON."""

_TINY = 1e-300


class Bounds(NamedTuple):
    """A point with its confidence bounds."""

    point: float
    low: float
    high: float


def median(values: Sequence[float]) -> float:
    """Middle value, or the mean of the middle two."""
    return quantile(values, 0.5)


def quantile(values: Sequence[float], share: float) -> float:
    """Value below which `share` (0…1) of the values lie, with linear interpolation between neighbours."""
    if not values:
        raise ValueError("no values, so no quantile")
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    if ordered[below] == ordered[above]:
        return ordered[below]
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def median_absolute_deviation(values: Sequence[float]) -> float:
    """Median distance from the median (not scaled to a standard deviation)."""
    middle = median(values)
    return median([abs(value - middle) for value in values])


def geometric_mean(values: Sequence[float]) -> float:
    """The mean for ratios and speedups; all values must be positive."""
    logs = _logs(values)
    return math.exp(math.fsum(logs) / len(logs))


def ratio_interval(ratios: Sequence[float], confidence: float = 0.95) -> Bounds:
    """Geometric mean of at least two positive ratios, with Student's t interval in log space."""
    mean, error = _mean_and_error(ratios)
    half = student_t(len(ratios) - 1, confidence) * error
    return Bounds(math.exp(mean), _exp(mean - half), _exp(mean + half))


def ratio_p_value(ratios: Sequence[float]) -> float:
    """Two-sided p-value of "the ratio is 1" from at least two independent positive ratios."""
    mean, error = _mean_and_error(ratios)
    if error == 0:
        return 1.0 if mean == 0 else 0.0
    return student_t_tail(mean / error, len(ratios) - 1)


def detectable_effect(ratios: Sequence[float], confidence: float = 0.95) -> float:
    """Smallest relative change whose interval would exclude 1, at the spread of these ratios."""
    _, error = _mean_and_error(ratios)
    return math.expm1(min(student_t(len(ratios) - 1, confidence) * error, _LARGEST_EXPONENT))


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """P-values adjusted by Benjamini and Hochberg's step-up (1995), in the given order.

    Rejecting where the adjusted value is ≤ q keeps the expected share of false rejections ≤ q, and the chance of any
    ≤ q where all is unchanged, for independent or positively dependent tests.
    """
    adjusted = [0.0] * len(p_values)
    least = 1.0
    ranked = sorted(range(len(p_values)), key=p_values.__getitem__)
    for rank in range(len(ranked), 0, -1):
        index = ranked[rank - 1]
        least = min(least, len(ranked) * p_values[index] / rank)
        adjusted[index] = least
    return adjusted


def student_t_tail(t: float, degrees: int) -> float:
    """P(|T| ≥ |t|) for Student's t with `degrees` of freedom."""
    if degrees < 1:
        raise ValueError(f"Student's t needs at least 1 degree of freedom, not {degrees}")
    return _incomplete_beta(degrees / (degrees + t * t), degrees / 2, 0.5)


@lru_cache(maxsize=1024)
def student_t(degrees: int, confidence: float) -> float:
    """The t with P(|T| < t) = `confidence` (0.95 is the 0.975 quantile), by bisection of the tail."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}; give a share between 0 and 1, e.g. 0.95")
    alpha = 1 - confidence
    low, high = 0.0, 1.0
    while student_t_tail(high, degrees) > alpha:
        low, high = high, 2 * high
    while high - low > 1e-13 * high:
        middle = (low + high) / 2
        if student_t_tail(middle, degrees) > alpha:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _logs(values: Sequence[float]) -> list[float]:
    if not values or not all(value > 0 for value in values):
        raise ValueError(f"a geometric mean needs positive values, not {list(values)}")
    return [math.log(value) for value in values]


def _mean_and_error(ratios: Sequence[float]) -> tuple[float, float]:
    """Mean of the logarithms and its standard error."""
    logs = _logs(ratios)
    if len(logs) < 2:
        raise ValueError("one ratio has no spread: an interval needs at least two")
    mean = math.fsum(logs) / len(logs)
    variance = math.fsum((value - mean) ** 2 for value in logs) / (len(logs) - 1)
    return mean, math.sqrt(variance / len(logs))


def _exp(exponent: float) -> float:
    return math.exp(max(-_LARGEST_EXPONENT, min(_LARGEST_EXPONENT, exponent)))


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """Regularised I_x(a, b); the branch whose fraction converges fast, exact to about 1e-14 in the small tail too."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x),
    )
    if x < (a + 1) / (a + b + 2):
        return front * _beta_fraction(x, a, b) / a
    return 1 - front * _beta_fraction(1 - x, b, a) / b


def _beta_fraction(x: float, a: float, b: float) -> float:
    """Continued fraction of the incomplete beta function, by the modified Lentz method."""
    c, d = 1.0, 1 / _away_from_zero(1 - (a + b) * x / (a + 1))
    result = d
    for m in range(1, 500):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for numerator in (even, odd):
            d = 1 / _away_from_zero(1 + numerator * d)
            c = _away_from_zero(1 + numerator / c)
            result *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return result


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY

"""The noise of many series together: few values of one borrow what the others show (Smyth, SAGMB 3, 2004).

A series' variance is taken for a draw around a common one, scaled inverse chi-squared; the common variance and the
degrees of freedom that it is worth are read from all series by the moments of the logarithms. So one value alone has
the common noise with few degrees, and a long series its own.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

_MOST_DEGREES = 60.0
_FEWEST_SERIES = 3


class CommonNoise(NamedTuple):
    """A variance, and how many degrees of freedom it adds to each series' own; 0 where nothing is shared."""

    variance: float
    degrees: float

    def moderated(self, variance: float, degrees: int) -> tuple[float, float]:
        """Variance and degrees of a series whose own are given; no degrees at all where nothing is known."""
        total = degrees + self.degrees
        if total == 0:
            return math.inf, 0.0
        return (degrees * variance + self.degrees * self.variance) / total, total


def common_noise(spreads: Sequence[tuple[float, int]]) -> CommonNoise:
    """From the series' (variance, degrees of freedom), those without spread left out; nothing from fewer than three."""
    known = [(variance, degrees) for variance, degrees in spreads if degrees > 0 and variance > 0]
    if len(known) < _FEWEST_SERIES:
        return CommonNoise(0.0, 0.0)
    logs = [math.log(variance) - _digamma(degrees / 2) + math.log(degrees / 2) for variance, degrees in known]
    mean = math.fsum(logs) / len(logs)
    spread = math.fsum((one - mean) ** 2 for one in logs) / (len(logs) - 1)
    excess = spread - math.fsum(_trigamma(degrees / 2) for _, degrees in known) / len(known)
    degrees = _MOST_DEGREES if excess <= 0 else min(2 * _inverse_trigamma(excess), _MOST_DEGREES)
    return CommonNoise(math.exp(mean + _digamma(degrees / 2) - math.log(degrees / 2)), degrees)


@lru_cache(maxsize=1024)
def _digamma(x: float) -> float:
    """Derivative of log Γ, by recurrence and its asymptotic series; exact to 1e-9 for x > 0."""
    shift = 0.0
    while x < 8:
        shift -= 1 / x
        x += 1
    square = 1 / (x * x)
    return shift + math.log(x) - 0.5 / x - square * (1 / 12 - square * (1 / 120 - square / 252))


@lru_cache(maxsize=4096)
def _trigamma(x: float) -> float:
    """Second derivative of log Γ, in the same way."""
    shift = 0.0
    while x < 8:
        shift += 1 / (x * x)
        x += 1
    square = 1 / (x * x)
    return shift + 1 / x + 0.5 * square + square / x * (1 / 6 - square * (1 / 30 - square / 42))


def _inverse_trigamma(value: float) -> float:
    """The x with trigamma(x) = value, by bisection of its logarithm: trigamma falls."""
    low, high = math.log(1e-3), math.log(1e6)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _trigamma(math.exp(middle)) > value else (low, middle)
    return math.exp((low + high) / 2)

"""How far neighbouring values of a series go together: a slow machine state, a drift, modes that last."""

import math
from collections.abc import Sequence

import numpy as np

from perftrack.judge.segmentation import Array

_LARGEST, _LARGEST_BY_DIFFERENCES = 0.6, 0.7
"""More is not believed: it would be a level that the cuts missed."""
_SHORTEST_LEVEL = 6
_FEWEST_VALUES = 30


def left_over(values: Array, cuts: Sequence[int]) -> float:
    """Lag-1 correlation of what the levels between the cuts leave, from 0 to 0.6; low where cuts follow a drift."""
    product = square = 0.0
    for start, end in zip([0, *cuts], [*cuts, len(values)], strict=True):
        if end - start >= _SHORTEST_LEVEL:
            rest = values[start:end] - values[start:end].mean()
            product += float(rest[1:] @ rest[:-1])
            square += float(rest @ rest)
    return min(max(product / square if square > 0 else 0.0, 0.0), _LARGEST)


def of_differences(values: Array) -> float:
    """The correlation from how differences grow with their lag, from 0 to 0.7; it needs no cuts, few steps do no harm.

    Of a first-order autoregressive series the squared differences at lags 1, 2, 3 are as 1 : 1 + r : 1 + r + r².
    """
    if len(values) < _FEWEST_VALUES:
        return 0.0
    first, second, third = (_scale(values[lag:] - values[:-lag]) for lag in (1, 2, 3))
    if first <= 0:
        return 0.0
    by_second = (second / first) ** 2 - 1
    excess = (third / first) ** 2 - 1
    by_third = (math.sqrt(1 + 4 * excess) - 1) / 2 if excess > -0.25 else 0.0
    return min(max((by_second + by_third) / 2, 0.0), _LARGEST_BY_DIFFERENCES)


def inflation(count: int, correlation: float) -> float:
    """Variance of the mean of `count` values of a first-order autoregressive series ÷ that of independent ones."""
    rest = 1 - correlation
    return (1 + correlation) / rest - 2 * correlation * (1 - correlation**count) / (count * rest**2)


def _scale(differences: Array) -> float:
    """Proportional to the standard deviation, from the median and the upper quartile of the sizes."""
    sizes = np.sort(np.abs(differences))
    return float(sizes[len(sizes) // 2] + 0.8 * sizes[int(0.75 * len(sizes))])

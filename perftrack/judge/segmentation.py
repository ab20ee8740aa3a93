"""A first cut of one series into levels, with more cuts than will stand: the candidates of `cuts`."""

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_SHORTEST_LEVEL = 2
_WINDOWS = (2, 3, 5, 8, 13, 21, 34)
_LEAST_CONTRAST = 2.2
"""In standard errors of the difference of two windows' means; noise exceeds it often, and the price drops that."""
_CUT_PRICE = 5.0
"""Of a candidate, in squared deviations × log of the number of values."""
_FARTHEST_START = 100
"""A level spans at most so many places: time grows linearly."""
_RUNNING, _WIDE = 7, 25
_BAND = 3.0


def running_median(values: Array, width: int) -> Array:
    """Median over `width` neighbours (odd), with the ends continued by the median of what is there."""
    half = min(width // 2, len(values) - 1)
    first, last = middle(values[: half + 1]), middle(values[-half - 1 :])
    padded = np.concatenate([np.full(half, first), values, np.full(half, last)])
    return np.partition(np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1), half, axis=1)[:, half]


def difference_deviation(values: Array) -> float:
    """Standard deviation of the noise, from the median absolute deviation of differences: steps hardly count."""
    differences = np.diff(values)
    return 1.4826 * middle(np.abs(differences - middle(differences))) / math.sqrt(2)


def middle(values: Array) -> float:
    """The median; NumPy's own takes several times as long for a few hundred values."""
    half = len(values) // 2
    if len(values) % 2:
        return float(np.partition(values, half)[half])
    ordered = np.partition(values, (half - 1, half))
    return float((ordered[half - 1] + ordered[half]) / 2)


def clip_outliers(values: Array, deviation: float) -> tuple[Array, NDArray[np.bool_]]:
    """Values pulled into a band around the running median, and which of them were far outside it."""
    middle = running_median(values, _RUNNING)
    away = values - middle
    local = 1.4826 * running_median(np.abs(away), _WIDE) + 0.5 * deviation
    return middle + np.clip(away, -_BAND * local, _BAND * local), np.abs(away) > 5 * local


def cheapest_cuts(values: Array, deviation: float) -> list[int]:
    """First indices of the levels after the first one, by least squares with a price for each cut.

    Exact over the places where the values contrast (dynamic programming; Jackson et al., IEEE Signal Processing
    Letters 12, 2005), with levels of at least two values.
    """
    places = np.concatenate([[0], _places(values, deviation), [len(values)]])
    sums, squares = (
        np.concatenate([[0.0], np.cumsum(powers)])[places] / scale
        for powers, scale in ((values, deviation), (values * values, deviation**2))
    )
    price = _CUT_PRICE * math.log(len(values))
    losses = _losses(places, sums, squares)
    cost, before = np.full(len(places), np.inf), [0] * len(places)
    cost[0] = -price
    for end in range(1, len(places)):
        first = max(0, end - _FARTHEST_START)
        paid = cost[first:end] + losses[end, first - end :]
        place = int(paid.argmin())
        before[end], cost[end] = first + place, paid[place] + price
    cuts: list[int] = []
    end = before[-1]
    while end > 0:
        cuts.append(int(places[end]))
        end = before[end]
    return cuts[::-1]


def _losses(places: NDArray[np.intp], sums: Array, squares: Array) -> Array:
    """For each place the least squares of the levels that end there and start at the places before it, in order."""
    ends = np.arange(len(places))[:, None]
    starts = ends - np.arange(min(_FARTHEST_START, len(places)), 0, -1)
    length = places[ends] - places[starts]
    rise = sums[ends] - sums[starts]
    losses = np.maximum(squares[ends] - squares[starts] - rise * rise / np.maximum(length, 1), 0)
    losses[(length < _SHORTEST_LEVEL) | (starts < 0)] = np.inf
    return losses


def _places(values: Array, deviation: float) -> NDArray[np.intp]:
    """Indices where the means of two neighbouring windows differ most, among the windows' width, for several widths."""
    count = len(values)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    cuts = np.arange(_SHORTEST_LEVEL, count - _SHORTEST_LEVEL + 1)
    marked = np.zeros(len(cuts), dtype=bool)
    for width in _WINDOWS:
        low, high = np.maximum(cuts - width, 0), np.minimum(cuts + width, count)
        before, after = cuts - low, high - cuts
        contrast = np.abs((sums[high] - sums[cuts]) / after - (sums[cuts] - sums[low]) / before)
        contrast /= deviation * np.sqrt(1 / after + 1 / before)
        reach = max(1, width // 2)
        marked |= (contrast >= _highest_near(contrast, reach)) & (contrast > _LEAST_CONTRAST)
    return cuts[marked]


def _highest_near(values: Array, reach: int) -> Array:
    """Maximum of the values, none negative, at most `reach` places away: of windows that double until they span it."""
    highest, width, span = np.concatenate([np.zeros(reach), values, np.zeros(reach)]), 1, 2 * reach + 1
    while width < span:
        step = min(width, span - width)
        highest = np.maximum(highest[:-step], highest[step:])
        width += step
    return highest

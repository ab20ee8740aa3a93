"""A first cut of one series into levels, with more cuts than will stand: the candidates of `cuts`."""

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_SHORTEST_LEVEL = 2
_MOST_STARTS = 128
_RUNNING, _WIDE = 7, 25
_BAND = 3.0


def running_median(values: Array, width: int) -> Array:
    """Median over `width` neighbours (odd), with the ends continued by the median of what is there."""
    half = min(width // 2, len(values) - 1)
    first, last = np.median(values[: half + 1]), np.median(values[-half - 1 :])
    padded = np.concatenate([np.full(half, first), values, np.full(half, last)])
    return np.asarray(np.median(np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1), axis=1))


def difference_deviation(values: Array) -> float:
    """Standard deviation of the noise, from the median absolute deviation of differences: steps hardly count."""
    differences = np.diff(values)
    return 1.4826 * float(np.median(np.abs(differences - np.median(differences)))) / math.sqrt(2)


def clip_outliers(values: Array, deviation: float) -> tuple[Array, NDArray[np.bool_]]:
    """Values pulled into a band around the running median, and which of them were far outside it."""
    middle = running_median(values, _RUNNING)
    local = 1.4826 * running_median(np.abs(values - middle), _WIDE) + 0.5 * deviation
    clipped = middle + np.clip(values - middle, -_BAND * local, _BAND * local)
    return clipped, np.abs(values - middle) > 5 * local


def cheapest_cuts(values: Array, penalty: float) -> list[int]:
    """First indices of the levels after the first one, by least squares with a price for each cut.

    PELT (Killick, Fearnhead and Eckley, JASA 107, 2012), with levels of at least two values. Where no start of the
    newest level can be ruled out, only the 64 cheapest of 128 are kept, so that time grows linearly.
    """
    count = len(values)
    sums, squares = (np.concatenate([[0.0], np.cumsum(powers)]) for powers in (values, values * values))
    cost = np.full(count + 1, np.inf)
    cost[0] = -penalty
    before = [0] * (count + 1)
    starts, live = np.zeros(_MOST_STARTS + 1, dtype=np.intp), 1
    for end in range(_SHORTEST_LEVEL, count + 1):
        if end >= 2 * _SHORTEST_LEVEL:
            starts[live] = end - _SHORTEST_LEVEL
            live += 1
        open_starts = starts[:live]
        rise = sums[end] - sums[open_starts]
        paid = cost[open_starts] + np.maximum(
            squares[end] - squares[open_starts] - rise * rise / (end - open_starts), 0
        )
        place = int(paid.argmin())
        before[end] = int(starts[place])
        cost[end] = paid[place] + penalty
        kept = open_starts[paid <= cost[end]]
        if len(kept) == _MOST_STARTS:
            cheapest = np.argsort(paid[paid <= cost[end]], kind="stable")[: _MOST_STARTS // 2]
            kept = kept[np.sort(cheapest)]
        live = len(kept)
        starts[:live] = kept
    cuts: list[int] = []
    end = before[count]
    while end > 0:
        cuts.append(end)
        end = before[end]
    return cuts[::-1]

"""Two-mode noise of a series: a kernel that lands in one of two states, run by run or for some runs on end.

A constant gap between two modes is most of the spread of such a series, and it is known: once every value is moved to
its upper mode, what is left is the noise inside a mode, and a step far smaller than the gap can be seen.
"""

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from perftrack.judge.likelihood import LEVEL_PRICE, of_one_mode, of_two_modes
from perftrack.judge.segmentation import Array

_FEWEST_VALUES = 30
_FLIP_SHARE = 0.1
"""Of the differences of neighbours, at least so many have the size of the gap; fewer are steps or bursts."""
_NARROWEST_GAP = 2.0
"""In standard deviations of a difference inside a mode; closer modes cannot be told apart."""
_MARGIN = 12.0
"""Log-likelihood by which two modes must beat one."""
_ROUNDS = 15
_FIRST_GAPS = 0.75, 0.9
"""Quantiles of the differences from which the fits start."""
_OUTLIER_SHARE = 0.05
_LARGEST_LOSS = 8.0
_MOST_LEVELS = 64
_FEWEST_FLIPS = 4
_SHORTEST_STAY = 8
_RARE = 11.0
"""Two long stays with a single flip between them are a step, where their chance at the usual rate of flips is e^-11."""
_MOST_SIZES = 300
"""Evenly spaced quantiles of the differences stand for all of them."""


class Modes(NamedTuple):
    """The upper mode lies `gap` above the lower one; inside a mode values scatter with `deviation`."""

    gap: float
    deviation: float


def without_modes(values: Array, deviation: float) -> Array | None:
    """The series with its lower mode moved up by the gap; None where one mode explains it as well.

    `deviation`: of the noise from value to value.
    """
    modes = _suspected(values)
    if modes is None:
        return None
    level = _upper_level(values, modes)
    away = values - level
    lower = np.abs(away + modes.gap) < np.abs(away)
    flips: list[int] = (np.flatnonzero(lower[1:] != lower[:-1]) + 1).tolist()
    if len(flips) < _FEWEST_FLIPS:
        return None
    levels = 1 + int(np.count_nonzero(level[1:] != level[:-1]))
    rest = np.where(lower, away + modes.gap, away)
    if of_two_modes(rest, lower, levels) < of_one_mode(values, deviation) + _MARGIN:
        return None
    rate = -math.log1p(-len(flips) / len(values))
    stays = list(pairwise([0, *flips, len(values)]))
    for (start, flip), (_, end) in pairwise(stays):
        if min(flip - start, end - flip) >= _SHORTEST_STAY and rate * (end - start) >= _RARE:
            lower[start:end] = False
    return np.where(lower, values + modes.gap, values)


def _suspected(values: Array) -> Modes | None:
    """Where two modes would lie, or None where they could not be told apart or hardly ever change.

    Differences of values one, two and three apart are 0 or ± the gap, but for noise and the few that span a step. Their
    absolute values are fitted by expectation maximisation.
    """
    if len(values) < _FEWEST_VALUES:
        return None
    sizes = np.sort(np.abs(np.concatenate([values[lag:] - values[:-lag] for lag in (1, 2, 3)])))
    if sizes[-1] == 0:
        return None
    gap, deviation, share = _fit(sizes[1 :: max(3, len(sizes) // _MOST_SIZES)])
    if gap < _NARROWEST_GAP * deviation or share < _FLIP_SHARE:
        return None
    return Modes(gap, deviation / math.sqrt(2))


def _upper_level(values: Array, modes: Modes) -> Array:
    """The upper mode at each value, whatever level steps the series has (Viterbi over levels).

    Each value costs its squared distance from the nearer mode of the level, at most so much (outliers); each change of
    level costs a fixed sum.
    """
    levels = _levels(values, modes.deviation)
    return levels[_cheapest_path(values, levels, modes)]


def _fit(sizes: Array) -> tuple[float, float, float]:
    """Gap, deviation of a difference, and share of differences that change the mode; the likelier of two fits.

    Expectation maximisation from two gaps at once, one a row.
    """
    count, squares = len(sizes), sizes * sizes
    least = max(float(sizes[count // 4]), 1e-7)
    gap = sizes[[int(start * (count - 1)) for start in _FIRST_GAPS]][:, None]
    deviation = np.full_like(gap, max(float(sizes[int(0.3 * count)]) / 0.385, least))
    outlier = _OUTLIER_SHARE / (3 * float(sizes[int(0.98 * count)]) + 1e-12)
    share, total = np.full_like(gap, 0.3), np.ones((len(gap), count))
    for _ in range(_ROUNDS):
        peak, scale = 1 / (deviation * math.sqrt(2 * math.pi)), -0.5 / deviation**2
        stay = (1 - share) * 2 * peak * np.exp(scale * squares)
        change = share * peak * np.exp(scale * (sizes - gap) ** 2)
        total = stay + change + outlier
        stay, change = stay / total, change / total
        changes = change.sum(axis=1, keepdims=True)
        gap = np.where(changes < 1, gap, (change @ sizes)[:, None] / np.maximum(changes, 1))
        spread = (change * (sizes - gap) ** 2 + stay * squares).sum(axis=1, keepdims=True)
        spread /= changes + stay.sum(axis=1, keepdims=True)
        deviation = np.maximum(np.sqrt(spread), least)
        share = np.clip(changes / count, 0.01, 0.6)
    best = int(np.log(total + 1e-300).sum(axis=1).argmax())
    return float(gap[best, 0]), float(deviation[best, 0]), float(share[best, 0])


def _levels(values: Array, deviation: float) -> Array:
    """Levels worth trying: cells of half a deviation that hold values, the fullest where there are too many."""
    cells, counts = np.unique(np.round(values / (deviation / 2)), return_counts=True)
    fullest = np.argsort(-counts, kind="stable")[:_MOST_LEVELS]
    return np.sort(cells[fullest]) * (deviation / 2)


def _cheapest_path(values: Array, levels: Array, modes: Modes) -> NDArray[np.intp]:
    """Index of each value's level."""
    away = values[:, None] - levels
    away = np.minimum(np.abs(away), np.abs(away + modes.gap))
    losses = np.minimum(0.5 * (away / modes.deviation) ** 2, _LARGEST_LOSS)
    came_from_best = np.zeros(losses.shape, dtype=bool)
    best = [0] * len(values)
    cost = losses[0].copy()
    for at in range(1, len(values)):
        best[at] = place = int(cost.argmin())
        jump = cost[place] + LEVEL_PRICE
        np.greater(cost, jump, out=came_from_best[at])
        np.minimum(cost, jump, out=cost)
        cost += losses[at]
    path = np.empty(len(values), dtype=np.intp)
    place = int(cost.argmin())
    for at in range(len(values) - 1, -1, -1):
        path[at] = place
        if came_from_best[at, place]:
            place = best[at]
    return path

"""The history of one series: the commits at which its level changed, and in which direction."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from perftrack.judge.cards import level_cards
from perftrack.judge.cuts import Cuts
from perftrack.judge.likelihood import LEAST_DEVIATION
from perftrack.judge.modes import without_modes
from perftrack.judge.segmentation import Array, difference_deviation

_FEWEST_VALUES = 8
_LARGEST_RATIO = 1e9
"""Of a value to the typical one; what lies beyond is an outlier of that size."""


def change_points(
    values: ArrayLike,
    std: ArrayLike | None = None,
    *,
    borders: Iterable[int] = (),
    cards: Sequence[Hashable] | None = None,
) -> list[tuple[int, int]]:
    """The changes of level of one series: (index of the first value of the new level, +1 up or -1 down), in order.

    `values`: one a commit, oldest first, in any unit (time, speedup, utilization, registers, error). What is not
    finite is a gap: it is left out, and indices stay those of `values`; so is what a user marked as invalid, once
    the caller has made it NaN. `std`: the standard deviation inside each run, in the same unit, where known; it only
    raises the noise below which nothing is seen. `borders`: indices where a new segment starts (another environment
    or method, a level that a user accepted): the two sides are judged apart, and no change is reported across.
    `cards`: which card of the class gave each value; their constant differences are taken off where cards alternate,
    and where one gives way to another for good a new segment starts.

    Positive series are judged by their logarithms, others relative to the median of their absolute values. A step
    below 0.5 % is never reported, nor one in fewer than eight values, nor a lone newest value; two newest values make
    a change only where it is plain and 98 quiet ones lie before, else three or more do. The answer is a pure function
    of the arguments.

    One setting for every series; what was tuned on what, method and sources: docs/judging.md, "History". Raises
    ValueError where `values` is no single row of numbers, or `std` or `cards` has not its length.
    """
    series, inside = check(values, std, cards)
    changes: list[tuple[int, int]] = []
    for start, end in segments(len(series), borders):
        known = start + np.flatnonzero(np.isfinite(series[start:end]))
        found = _changes(
            series[known],
            None if inside is None else inside[known],
            None if cards is None else [cards[at] for at in known.tolist()],
        )
        changes += [(int(known[index]), direction) for index, direction in found]
    return changes


def check(values: ArrayLike, std: ArrayLike | None, cards: Sequence[Hashable] | None) -> tuple[Array, Array | None]:
    """The values and deviations of a series as arrays; ValueError as `change_points` says."""
    series = np.asarray(values, dtype=np.float64)
    if series.ndim != 1:
        raise ValueError(f"a series is one row of values, this has {series.ndim} dimensions; give one series at a time")
    inside = None if std is None else np.asarray(std, dtype=np.float64)
    if inside is not None and inside.shape != series.shape:
        raise ValueError(f"{inside.size} deviations for {series.size} values; give one a value (NaN where unknown)")
    if cards is not None and len(cards) != len(series):
        raise ValueError(f"{len(cards)} cards for {series.size} values; give one a value")
    return series, inside


def segments(count: int, borders: Iterable[int]) -> Iterator[tuple[int, int]]:
    """(start, end) of the parts of a series that are judged apart; borders outside it do nothing."""
    edges = sorted({0, count, *(border for border in borders if 0 < border < count)})
    return pairwise(edges)


def _changes(values: Array, inside: Array | None, cards: list[Hashable] | None) -> Iterator[tuple[int, int]]:
    """Of a segment without gaps."""
    if len(values) < _FEWEST_VALUES or values.min() == values.max():
        return
    relative, borders = _relative(values), list[int]()
    if cards is not None:
        relative, borders = level_cards(relative, cards)
    noise = 0.0 if inside is None else 0.5 * _typical(inside, values)
    for start, end in segments(len(values), borders):
        for place, direction in _steps(relative[start:end], noise):
            yield start + place, direction


def _steps(relative: Array, noise: float) -> list[tuple[int, int]]:
    """Of relative values, all comparable; `noise` is what the runs themselves show."""
    if len(relative) < _FEWEST_VALUES:
        return []
    deviation = max(difference_deviation(relative), noise, LEAST_DEVIATION)
    folded = without_modes(relative, deviation)
    if folded is not None:
        relative, deviation = folded, max(difference_deviation(folded), LEAST_DEVIATION)
    return Cuts(relative, deviation).standing()


def _relative(values: Array) -> Array:
    """Values on a scale where differences are relative changes, about their median."""
    if values.min() > 0:
        scaled = np.log(values)
    else:
        size = np.abs(values)
        with np.errstate(over="ignore"):
            scaled = np.clip(values / (float(np.median(size)) or float(size.max())), -_LARGEST_RATIO, _LARGEST_RATIO)
    return scaled - np.median(scaled)


def _typical(inside: Array, values: Array) -> float:
    """Median relative deviation inside a run, over the runs that know theirs; 0 where none does."""
    known = np.isfinite(inside) & (values != 0)
    if not known.any():
        return 0.0
    with np.errstate(over="ignore"):
        return min(float(np.median(np.abs(inside[known] / values[known]))), _LARGEST_RATIO)

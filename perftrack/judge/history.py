"""The history of one series: the commits at which its level changed, and in which direction."""

from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from perftrack.judge.cuts import Cuts
from perftrack.judge.modes import find_modes, fold
from perftrack.judge.segmentation import Array, difference_deviation

_FEWEST_VALUES = 8
_LEAST_DEVIATION = 2e-5
"""Relative: a series without any noise is still only as exact as its timer."""


def change_points(
    values: ArrayLike, std: ArrayLike | None = None, *, borders: Iterable[int] = ()
) -> list[tuple[int, int]]:
    """The changes of level of one series: (index of the first value of the new level, +1 up or -1 down), in order.

    `values`: one a commit, oldest first, in any unit (time, speedup, utilization, registers, error). What is not
    finite is a gap: it is left out, and indices stay those of `values`. `std`: the standard deviation inside each
    run, in the same unit, where known; it only raises the noise below which nothing is seen. `borders`: indices where
    a new segment starts (another environment or method, a user's mark): the two sides are judged apart, and no change
    is reported across.

    Positive series are judged by their logarithms, others relative to the median of their absolute values. A step
    below 0.5 % is never reported, nor one in fewer than eight values, nor a lone newest value; two newest values make
    a change only where it is plain and 49 quiet ones lie before, else three or more do. The answer is a pure function
    of the arguments.

    One setting for every series; what was tuned on what, method and sources: docs/judging.md, "History". Raises
    ValueError where `values` is no single row of numbers, or `std` has not its length.
    """
    series = np.asarray(values, dtype=np.float64)
    if series.ndim != 1:
        raise ValueError(f"a series is one row of values, this has {series.ndim} dimensions; give one series at a time")
    inside = None if std is None else np.asarray(std, dtype=np.float64)
    if inside is not None and inside.shape != series.shape:
        raise ValueError(f"{inside.size} deviations for {series.size} values; give one a value (NaN where unknown)")
    changes: list[tuple[int, int]] = []
    for start, end in _segments(len(series), borders):
        known = start + np.flatnonzero(np.isfinite(series[start:end]))
        found = _changes(series[known], None if inside is None else inside[known])
        changes += [(int(known[index]), direction) for index, direction in found]
    return changes


def _segments(count: int, borders: Iterable[int]) -> Iterator[tuple[int, int]]:
    edges = sorted({0, count, *(border for border in borders if 0 < border < count)})
    return pairwise(edges)


def _changes(values: Array, inside: Array | None) -> list[tuple[int, int]]:
    """Of a segment without gaps."""
    if len(values) < _FEWEST_VALUES or values.min() == values.max():
        return []
    relative = _relative(values)
    modes = find_modes(relative)
    least = _LEAST_DEVIATION
    if modes is not None:
        relative = fold(relative, modes)
    elif inside is not None:
        least = max(least, 0.5 * _typical(inside, values))
    return Cuts(relative, max(difference_deviation(relative), least)).standing()


def _relative(values: Array) -> Array:
    """Values on a scale where differences are relative changes, about their median."""
    if values.min() > 0:
        scaled = np.log(values)
    else:
        size = np.abs(values)
        scaled = values / (float(np.median(size)) or float(size.max()))
    return scaled - np.median(scaled)


def _typical(inside: Array, values: Array) -> float:
    """Median relative deviation inside a run, over the runs that know theirs; 0 where none does."""
    known = np.isfinite(inside) & (values != 0)
    return float(np.median(np.abs(inside[known] / values[known]))) if known.any() else 0.0

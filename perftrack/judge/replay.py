"""The history rules run over a stored series as if each commit had just come: what is told, and when."""

import math
from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from perftrack.judge.history import change_points, check, segments
from perftrack.judge.segmentation import Array

_LOOK_EVERY = 25
_NEWEST = (2, 3, 5, 8, 13, 21, 30)
_BASELINE, _SHORTEST_BASELINE = 30, 4
_CONTRAST = 5.0
"""Standard errors between the newest values and those before, from which a look is worth its time."""
_GROWTH = 1.25
"""After a look in vain the contrast must grow by so much, until the next look that is due anyway."""
_PLAIN = 12.0
"""What stands out so far is looked at in any case."""
_FARTHEST = 8.0
"""Deviations from the median that count: a lone outlier, however far, is worth one look, not one after each commit."""
_SAME = 3
"""Two changes of one direction at most so far apart are one, told once."""


class Alert(NamedTuple):
    """A change first told at the commit `seen`: its level begins at `start`; `direction` is +1 up or -1 down."""

    start: int
    direction: int
    seen: int

    @property
    def delay(self) -> int:
        """Commits between the change and its telling; 0 is the very commit."""
        return self.seen - self.start


def replay(
    values: ArrayLike,
    std: ArrayLike | None = None,
    *,
    borders: Iterable[int] = (),
    cards: Sequence[Hashable] | None = None,
) -> list[Alert]:
    """What `change_points` would have told after each commit of one series, in the order of telling.

    Arguments and errors are those of `change_points`. No alert depends on a later value. A look at the whole past is
    taken after every 25th value and whenever the newest 2 to 30 values stand out from the 30 before by five
    standard errors; so a change that shows only in the whole may be told up to 24 commits later than by looking
    after every commit. What was told and is withdrawn later stays told.
    """
    series, inside = check(values, std, cards)
    alerts: list[Alert] = []
    for start, end in segments(len(series), borders):
        told: list[Alert] = []
        for seen in _looks(series[start:end], told):
            until = start + seen + 1
            changes = change_points(
                series[start:until],
                None if inside is None else inside[start:until],
                cards=None if cards is None else cards[start:until],
            )
            told += [
                Alert(index, direction, seen)
                for index, direction in changes
                if not any(abs(index - one.start) <= _SAME and direction == one.direction for one in told)
            ]
        alerts += [Alert(start + one.start, one.direction, start + one.seen) for one in told]
    return alerts


def _looks(values: Array, told: Sequence[Alert]) -> Iterator[int]:
    """Indices after which to look; `told` grows between them."""
    places: list[int] = np.flatnonzero(np.isfinite(values)).tolist()
    finite = values[places]
    needed = _CONTRAST
    for count, place in enumerate(places, start=1):
        due = count % _LOOK_EVERY == 0
        since = bisect_left(places, told[-1].start) if told else 0
        contrast = _contrast(finite[max(0, since, count - _BASELINE - _NEWEST[-1]) : count])
        if due:
            needed = _CONTRAST
        if due or contrast >= min(needed, _PLAIN):
            before = len(told)
            yield place
            needed = _CONTRAST if len(told) > before else max(needed, _GROWTH * contrast)


def _contrast(values: Array) -> float:
    """Of the newest values to those before, in standard errors, the largest of several lengths; at most a million."""
    count = len(values)
    if count < _SHORTEST_BASELINE + _NEWEST[0]:
        return 0.0
    differences, middle = values[1:] - values[:-1], _middle(values)
    deviation = 1.4826 / math.sqrt(2) * _middle(np.abs(differences - _middle(differences)))
    most = _FARTHEST * deviation or math.inf
    shifted = np.maximum(np.minimum(values - middle, most), -most)
    size = max(float(shifted.max()), -float(shifted.min()))
    if size == 0:
        return 0.0
    sums: list[float] = [0.0, *np.add.accumulate(shifted / size).tolist()]
    deviation /= size
    largest = 0.0
    for newest in _NEWEST:
        start = count - newest
        if start < _SHORTEST_BASELINE:
            break
        first = max(start - _BASELINE, 0)
        step = (sums[-1] - sums[start]) / newest - (sums[start] - sums[first]) / (start - first)
        error = deviation * math.sqrt(1 / newest + 1 / (start - first)) + 1e-6
        largest = max(largest, abs(step) / error)
    return largest


def _middle(values: Array) -> float:
    """The median; for so few values numpy's own takes several times as long."""
    ordered, half = np.sort(values), len(values) // 2
    return float(ordered[half] if len(values) % 2 else (ordered[half - 1] + ordered[half]) / 2)

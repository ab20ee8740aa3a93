"""The history rules run over a stored series as if each commit had just come: what is told, and when."""

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from perftrack.judge.history import change_points, segments
from perftrack.judge.segmentation import Array, difference_deviation

_LOOK_EVERY = 25
_NEWEST = (2, 3, 5, 8, 13, 21, 30)
_LENGTHS = np.array(_NEWEST)
_BASELINE, _SHORTEST_BASELINE = 30, 4
_CONTRAST = 5.0
"""Standard errors between the newest values and those before, from which a look is worth its time."""
_GROWTH = 1.25
"""After a look in vain the contrast must grow by so much, until the next look that is due anyway."""
_PLAIN = 12.0
"""What stands out so far is looked at in any case."""
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
    series = np.asarray(values, dtype=np.float64)
    inside = None if std is None else np.asarray(std, dtype=np.float64)
    change_points(series, inside, cards=cards)  # tells what is wrong with the arguments
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
    finite, needed = values[places], _CONTRAST
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
    if len(values) < _SHORTEST_BASELINE + _NEWEST[0]:
        return 0.0
    shifted = values - np.median(values)
    size = float(np.abs(shifted).max())
    if size == 0:
        return 0.0
    sums = np.concatenate([[0.0], np.cumsum(shifted / size)])
    most = len(values) - _SHORTEST_BASELINE
    newest = _LENGTHS[: np.searchsorted(_LENGTHS, most, side="right")]
    starts = len(values) - newest
    firsts = np.maximum(starts - _BASELINE, 0)
    means = (sums[-1] - sums[starts]) / newest - (sums[starts] - sums[firsts]) / (starts - firsts)
    error = difference_deviation(shifted / size) * np.sqrt(1 / newest + 1 / (starts - firsts)) + 1e-6
    return float((np.abs(means) / error).max())

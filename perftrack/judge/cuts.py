"""Which candidate cuts of a series are changes of its level: each must earn its place beside its neighbours.

The refusals do more than the test: no cut for a lone outlier or a short burst that goes back, none whose two sides
overlap, none on a slope, none for a mode seen lately; and a short side borrows the noise of the whole series.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise
from operator import mul
from typing import NamedTuple

import numpy as np

from perftrack import stats
from perftrack.judge.correlation import inflation, left_over, of_differences
from perftrack.judge.segmentation import Array, cheapest_cuts, clip_outliers

_LEAST_EFFECT = 0.005
_ALPHA = 1e-6
"""Of one cut, one-sided: a series of n values offers n places for a cut, and is looked at after every commit."""
_BORROWED_DEGREES = 12
_CAUTION = 1.2
"""On every standard error: noise is neither Gaussian nor of one size."""
_SMALL_CAUTION = 1.35
_SLOPE_CAUTION = 1.4
"""On that of a small step, and of one that a slope explains almost as well."""
_SMALL, _LARGE = 4.0, 6.5
"""Steps in deviations. Below the large, the memory that differences show counts, and a line must not fit better."""
_SLOPE_SHARE = 0.75
"""Squares that the step leaves ÷ those that a line leaves, from which the line is almost as good."""
_SPAN, _WIDE_SPAN = 30, 90
"""Values of either side that count; the wide span only where the narrow one has shown nothing and nothing drifts."""
_DRIFTING = 0.3
"""Correlation from which the noise may be a drift."""
_STEEP_SHARE, _STEEP_VALUES = 0.7, 12
"""Over the wide span, so much of the step must be there between the nearest values: a slope is no step."""
_SUPERIORITY = ((20, 0.75), (8, 0.83), (4, 0.93), (0, 0.97))
"""Share of pairs (a value before, a value after) in the step's direction, by the length of the shorter side."""
_BURST = 4
"""A level no longer than this that goes back to where it came from is a burst in any series."""
_NEW_LEVEL = 8
_VISITED = 0.75
"""Of a step: values that go so far are visits of its level."""
_RECENT, _REMEMBERED = 60, 120
_IN_A_ROW = 1e-4
"""Chance of a short level's values, as outliers or as visits like those around it, from which it is no level."""
_FLIPS, _SHORT_STAY = 4, 8
"""So many changes between the same two levels within `_RECENT` values, one of them after a short stay, are modes."""
_REACH = 4


class Verdict(NamedTuple):
    """What the values say of one cut between its neighbours."""

    stands: bool
    strength: float
    before: float
    after: float

    @property
    def direction(self) -> int:
        """+1 up, -1 down."""
        return 1 if self.after > self.before else -1


class Cuts:
    """The cuts of one gap-free series of relative values whose noise has the given deviation from point to point."""

    def __init__(self, values: Array, deviation: float) -> None:
        self._deviation = deviation
        self._clipped, outliers = clip_outliers(values, deviation)
        self._raw: list[float] = values.tolist()
        self._smooth: list[float] = self._clipped.tolist()
        self._outliers = [0, *accumulate(outliers.tolist())]
        self._correlation = self._memory = 0.0
        self._known: dict[tuple[int, ...], Verdict] = {}

    def standing(self) -> list[tuple[int, int]]:
        """(first index of the new level, direction) of each change."""
        cuts = cheapest_cuts(self._clipped, self._deviation)
        if not cuts:
            return []
        self._correlation = left_over(self._clipped, cuts)
        self._memory = max(self._correlation, of_differences(self._clipped))
        cuts, verdicts = self._prune(cuts)
        edges = [0, *cuts, len(self._raw)]
        places = [self._move(*edges[at : at + 3]) for at in range(len(cuts))]
        return [(place, verdict.direction) for place, verdict in zip(places, verdicts, strict=True)]

    def _prune(self, cuts: list[int]) -> tuple[list[int], list[Verdict]]:
        """Drop the weakest cut that fails, judge its neighbours anew, until all stand; then drop flips of a mode."""
        while cuts:
            edges = [0, 0, *cuts, len(self._raw), len(self._raw)]
            verdicts = [self._verdict(*edges[at : at + 5]) for at in range(len(cuts))]
            failing = [at for at, verdict in enumerate(verdicts) if not verdict.stands]
            if failing:
                del cuts[min(failing, key=lambda at: verdicts[at].strength)]
                continue
            steady = [cut for cut, flips in zip(cuts, _flip(cuts, verdicts), strict=True) if not flips]
            if len(steady) == len(cuts):
                return cuts, verdicts
            cuts = steady
        return [], []

    def _move(self, low: int, cut: int, high: int) -> int:
        """The cut where the values change sides: a squared distance from either level, at most 9 deviations²."""
        before, after = self._raw[max(low, cut - _SPAN) : cut], self._raw[cut : min(high, cut + _SPAN)]
        level, new_level = stats.median(before), stats.median(after)
        rest = [abs(value - level) for value in before] + [abs(value - new_level) for value in after]
        deviation = max(1.4826 * stats.median(rest), 0.5 * self._deviation)
        start, end = max(low + 2, cut - _REACH), min(high - 2, cut + _REACH)
        if end <= start:
            return cut
        losses = [
            min(((value - level) / deviation) ** 2, 9) - min(((value - new_level) / deviation) ** 2, 9)
            for value in self._raw[start:end]
        ]
        total = [0.0, *accumulate(losses)]
        least = min(total)
        return start + total.index(least) if total[cut - start] - least > 2 else cut

    def _verdict(self, low2: int, low: int, cut: int, high: int, high2: int) -> Verdict:
        """Of a cut between its neighbours low and high, and theirs."""
        key = (low2, low, cut, high, high2)
        if key not in self._known:
            verdict = self._judge(*key, _SPAN)
            if not verdict.stands and self._correlation < _DRIFTING and max(cut - low, high - cut) > _SPAN:
                wide = self._judge(*key, _WIDE_SPAN)
                verdict = max(verdict, wide, key=lambda one: (one.stands, one.strength))
            self._known[key] = verdict
        return self._known[key]

    def _judge(self, low2: int, low: int, cut: int, high: int, high2: int, span: int) -> Verdict:
        start, end, count = max(low, cut - span), min(high, cut + span), len(self._raw)
        left, right = sorted(self._smooth[start:cut]), sorted(self._smooth[cut:end])
        before, after = _middle(left), _middle(right)
        step, shorter = after - before, min(len(left), len(right))
        ratio = self._significance(left, right, step, start)
        strength = ratio * min(1.0, abs(step) / _LEAST_EFFECT)
        if ratio < 1 or shorter < 2 or abs(step) < _LEAST_EFFECT:
            return Verdict(stands=False, strength=strength / 2, before=before, after=after)
        superior = _superiority(self._raw[start:cut], self._raw[cut:end], step)
        stands = (
            superior >= next(share for length, share in _SUPERIORITY if shorter >= length)
            and (span == _SPAN or shorter < 4 or self._is_steep(start, cut, end, step))
            and (high < count or end - cut >= _NEW_LEVEL or self._is_new(low, cut, before, after, ratio))
            and not (high < count and self._is_burst(cut, high, before, after, self._smooth[high:high2][:span]))
            and not (low > 0 and self._is_burst(low, cut, after, before, self._smooth[low2:low][-span:]))
        )
        return Verdict(stands, strength * superior, before, after)

    def _significance(self, left: list[float], right: list[float], step: float, start: int) -> float:
        """Student's t of the step ÷ the t it needs; 1 and above is significant.

        The spread is moderated: the sides' own, with 12 degrees of freedom from the whole series (Smyth, 2004).
        """
        size, first, second = abs(step) / self._deviation, len(left), len(right)
        degrees = first + second - 2 + _BORROWED_DEGREES
        squares = (_squares(left) + _squares(right)) / self._deviation**2
        correlation = self._memory if size < _LARGE else self._correlation
        spread = max((squares + _BORROWED_DEGREES) / degrees, 0.5)
        error = math.sqrt(spread * sum(inflation(n, correlation) / n for n in (first, second)))
        slope = self._slope_share(start, start + first, start + first + second) if size < _LARGE else 0.0
        if slope > 1:
            return 0.0
        caution = _CAUTION if size >= _SMALL else _SMALL_CAUTION if slope <= _SLOPE_SHARE else _SLOPE_CAUTION
        return size / (error * caution * stats.student_t(degrees, 1 - 2 * _ALPHA))

    def _slope_share(self, start: int, cut: int, end: int) -> float:
        """Squares that the step leaves ÷ those that a straight line leaves."""
        values, count, before = self._clipped[start:end], end - start, cut - start
        centred = values - values.mean()
        time = np.arange(count) - (count - 1) / 2
        total = float(centred @ centred)
        line = total - float(time @ centred) ** 2 / float(time @ time)
        jump = float(values[:before].mean() - values[before:].mean())
        return (total - jump * jump * before * (count - before) / count) / max(line, 1e-12 * total, 1e-300)

    def _is_steep(self, start: int, cut: int, end: int, step: float) -> bool:
        left = sorted(self._smooth[max(start, cut - _STEEP_VALUES) : cut])
        right = sorted(self._smooth[cut : min(end, cut + _STEEP_VALUES)])
        return (_middle(right) - _middle(left)) / step >= _STEEP_SHARE

    def _is_burst(self, start: int, end: int, outside: float, inside: float, beyond: list[float]) -> bool:
        """Whether a short level goes back, on its far side (`beyond`), towards the level that it came from.

        Up to four values are a burst, up to seven where the values around visit that level often and long enough.
        """
        length, step = end - start, inside - outside
        if length >= _NEW_LEVEL:
            return False
        back = _middle(sorted(beyond))
        if length < _BURST:
            return (back - inside) * step < 0
        away = abs(back - outside) / abs(step)
        if length == _BURST and away < 0.2:
            return True
        around = self._raw[max(0, start - _RECENT) : start] + self._raw[end : end + _RECENT]
        return away <= 0.5 and _chance_in_a_row(around, outside, inside, length) > _IN_A_ROW

    def _is_new(self, low: int, cut: int, before: float, after: float, ratio: float) -> bool:
        """Whether a short newest level is more than outliers in a row, and no mode seen lately."""
        newest, first = len(self._raw) - cut, max(0, cut - _REMEMBERED)
        outlier_share = (self._outliers[cut] - self._outliers[first] + 1) / (cut - first + 2)
        if outlier_share**newest > _IN_A_ROW or (newest < 3 and ratio < 1.5):
            return False
        lately = self._raw[max(first, min(low, cut - _SPAN)) : cut]
        return cut - low < _NEW_LEVEL or _chance_in_a_row(lately, before, after, newest) <= _IN_A_ROW


def _flip(cuts: Sequence[int], verdicts: Sequence[Verdict]) -> list[bool]:
    """For each cut, whether it is one of many near it (itself included) between the same two levels."""
    levels = [(min(one.before, one.after), max(one.before, one.after)) for one in verdicts]
    flips: list[bool] = []
    for cut, (low, high) in zip(cuts, levels, strict=True):
        near = 0.4 * (high - low)
        alike = [
            other
            for other, (bottom, top) in zip(cuts, levels, strict=True)
            if abs(other - cut) <= _RECENT and abs(bottom - low) <= near and abs(top - high) <= near
        ]
        flips.append(len(alike) >= _FLIPS and min(second - first for first, second in pairwise(alike)) < _SHORT_STAY)
    return flips


def _chance_in_a_row(values: Sequence[float], before: float, after: float, count: int) -> float:
    """Of `count` values in a row at `after`, as `values` about `before` went there and stayed (Markov chain).

    So lone outliers hardly count against several values in a row, a mode that lasts does.
    """
    step = after - before
    there = [(value - before) / step >= _VISITED for value in values]
    visits = sum(there)
    share = (visits + 1) / (len(there) + 2)
    again = (sum(map(mul, there, there[1:])) + share) / (visits + 1)
    return share * max(share, again) ** (count - 1)


def _superiority(before: list[float], after: list[float], step: float) -> float:
    """Probability that a value after lies beyond a value before, in the step's direction; ties count half."""
    lower, upper = (before, sorted(after)) if step > 0 else (after, sorted(before))
    ahead = sum(2 * len(upper) - bisect_left(upper, value) - bisect_right(upper, value) for value in lower)
    return ahead / (2 * len(before) * len(after))


def _middle(ordered: list[float]) -> float:
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def _squares(values: list[float]) -> float:
    mean = sum(values) / len(values)
    away = [value - mean for value in values]
    return sum(map(mul, away, away))

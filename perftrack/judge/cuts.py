"""Which candidate cuts of a series are changes of its level: each must earn its place beside its neighbours.

The refusals do more than the test: no cut for a lone outlier or a short burst that goes back, none whose two sides
overlap, none on a slope, none for a mode seen lately; and a short side borrows the noise of the whole series.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from perftrack import stats
from perftrack.judge.segmentation import Array, cheapest_cuts, clip_outliers

_CUT_PRICE = 5.0
"""Of a candidate, in squared deviations × log of the number of values."""
_LEAST_EFFECT = 0.005
_ALPHA = 1e-6
"""Of one cut, one-sided: a series of n values offers n places for a cut, and is looked at after every commit."""
_BORROWED_DEGREES = 12
_CAUTION = 1.2
"""On every standard error: noise is neither Gaussian nor of one size."""
_SECOND_CAUTION = 1.0
"""The same once the correlation is read from the levels that stand, where it is overestimated if one was missed."""
_LARGEST_CORRELATION = 0.6
_SPAN, _WIDE_SPAN = 30, 60
"""Values of either side that count; the wide span only where the narrow one has shown nothing and nothing drifts."""
_DRIFTING = 0.3
"""Correlation from which the noise may be a drift."""
_STEEP_SHARE, _STEEP_VALUES = 0.8, 8
"""Over the wide span, so much of the step must be there between the nearest values: a slope is no step."""
_SUPERIORITY = ((8, 0.85), (4, 0.93), (0, 0.97))
"""Share of pairs (a value before, a value after) in the step's direction, by the length of the shorter side."""
_BURST = 4
"""A level no longer than this that goes back to where it came from is a burst."""
_NEW_LEVEL = 8
_RECENT = 60
_FLIPS = 4
"""So many changes between the same two levels within `_RECENT` values are modes."""
_REACH = 8


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


class Sides(NamedTuple):
    """The values of both sides of a cut within a span: as measured (but for folded modes), and clipped."""

    before: Array
    after: Array
    clipped_before: Array
    clipped_after: Array


class Cuts:
    """The cuts of one gap-free series of relative values whose noise has the given deviation from point to point."""

    def __init__(self, values: Array, deviation: float) -> None:
        self._values, self._deviation = values, deviation
        self._clipped, self._outliers = clip_outliers(values, deviation)
        self._correlation, self._caution = 0.0, _CAUTION
        self._known: dict[tuple[int, ...], Verdict] = {}

    def standing(self) -> list[tuple[int, int]]:
        """(first index of the new level, direction) of each change.

        The noise's correlation is first read from the candidates' levels, which follow a drift too closely, then from
        the levels that stand. Only then are the cuts moved to where the values, outliers discounted, change sides.
        """
        price = _CUT_PRICE * self._deviation**2 * math.log(len(self._values))
        cuts = cheapest_cuts(self._clipped, price)
        cuts, _ = self._prune(cuts, self._lag_correlation(cuts))
        cuts = self._move(cuts)
        if (correlation := self._lag_correlation(cuts)) > self._correlation:
            cuts, _ = self._prune(cuts, correlation, _SECOND_CAUTION)
        cuts, verdicts = self._prune(self._move(cuts), self._correlation, self._caution)
        return [(cut, verdict.direction) for cut, verdict in zip(cuts, verdicts, strict=True)]

    def _lag_correlation(self, cuts: Sequence[int]) -> float:
        """Lag-1 correlation of what the levels leave, between 0 and the largest that is believed."""
        product = square = 0.0
        for start, end in zip([0, *cuts], [*cuts, len(self._values)], strict=True):
            if end - start >= 6:
                rest = self._clipped[start:end] - self._clipped[start:end].mean()
                product += float(rest[1:] @ rest[:-1])
                square += float(rest @ rest)
        return min(max(product / square if square > 0 else 0.0, 0.0), _LARGEST_CORRELATION)

    def _prune(
        self, cuts: Sequence[int], correlation: float, caution: float = _CAUTION
    ) -> tuple[list[int], list[Verdict]]:
        """Drop the weakest cut that fails, judge its neighbours anew, until all stand; then drop flips of a mode."""
        if (correlation, caution) != (self._correlation, self._caution):
            self._correlation, self._caution, self._known = correlation, caution, {}
        cuts = list(cuts)
        while cuts:
            edges = [0, 0, *cuts, len(self._values), len(self._values)]
            verdicts = [self._verdict(*edges[at : at + 5]) for at in range(len(cuts))]
            failing = [at for at, verdict in enumerate(verdicts) if not verdict.stands]
            if failing:
                del cuts[min(failing, key=lambda at: verdicts[at].strength)]
                continue
            steady = [cut for cut, flips in zip(cuts, _flips(cuts, verdicts), strict=True) if flips < _FLIPS]
            if len(steady) == len(cuts):
                return cuts, verdicts
            cuts = steady
        return [], []

    def _move(self, cuts: Sequence[int]) -> list[int]:
        """Each cut where the values change sides: a squared distance from either level, at most 9 deviations²."""
        moved = list(cuts)
        for at, cut in enumerate(cuts):
            low = moved[at - 1] if at else 0
            high = moved[at + 1] if at + 1 < len(moved) else len(self._values)
            sides = self._sides(low, cut, high, _SPAN)
            before, after = float(np.median(sides.before)), float(np.median(sides.after))
            rest = np.concatenate([sides.before - before, sides.after - after])
            deviation = max(1.4826 * float(np.median(np.abs(rest))), 0.5 * self._deviation)
            start, end = max(low + 2, cut - _REACH), min(high - 2, cut + _REACH)
            if end <= start:
                continue
            near = self._values[start:end]
            loss = np.minimum(((near - before) / deviation) ** 2, 9) - np.minimum(((near - after) / deviation) ** 2, 9)
            total = np.concatenate([[0.0], np.cumsum(loss)])
            best = int(total.argmin())
            if total[cut - start] - total[best] > 2:
                moved[at] = start + best
        return moved

    def _sides(self, low: int, cut: int, high: int, span: int) -> Sides:
        left, right = slice(max(low, cut - span), cut), slice(cut, min(high, cut + span))
        return Sides(self._values[left], self._values[right], self._clipped[left], self._clipped[right])

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
        sides = self._sides(low, cut, high, span)
        before, after = float(np.median(sides.clipped_before)), float(np.median(sides.clipped_after))
        step, shorter = after - before, min(len(sides.before), len(sides.after))
        ratio = self._significance(sides, step)
        superior = _superiority(sides.before, sides.after, step)
        stands = (
            shorter >= 2
            and abs(step) >= _LEAST_EFFECT
            and ratio >= 1
            and superior >= next(share for length, share in _SUPERIORITY if shorter >= length)
            and (span == _SPAN or shorter < 4 or _is_steep(sides, step))
            and (high < len(self._values) or len(sides.after) >= _NEW_LEVEL or self._is_new(sides, cut, step, ratio))
            and not (high < len(self._values) and self._is_burst(sides.after, step, before, after, (high, high2), span))
            and not (low > 0 and self._is_burst(sides.before, -step, after, before, (low2, low), -span))
        )
        return Verdict(stands, ratio * min(1.0, abs(step) / _LEAST_EFFECT) * superior, before, after)

    def _significance(self, sides: Sides, step: float) -> float:
        """Student's t of the step ÷ the t it needs; 1 and above is significant.

        The spread is moderated: the sides' own, with 12 degrees of freedom from the whole series (Smyth, 2004).
        """
        first, second = len(sides.before), len(sides.after)
        degrees = first + second - 2 + _BORROWED_DEGREES
        squares = first * float(sides.clipped_before.var()) + second * float(sides.clipped_after.var())
        spread = max(math.sqrt((squares + _BORROWED_DEGREES * self._deviation**2) / degrees), self._deviation)
        error = spread * math.sqrt(sum(_inflation(n, self._correlation) / n for n in (first, second)))
        return abs(step) / (error * self._caution * stats.student_t(degrees, 1 - 2 * _ALPHA))

    def _is_new(self, sides: Sides, cut: int, step: float, ratio: float) -> bool:
        """Whether a short newest level is more than outliers in a row, and no mode seen lately."""
        lately = self._outliers[max(0, cut - _RECENT) : cut]
        outlier_share = (float(lately.sum()) + 0.5) / (len(lately) + 1)
        seen = self._values[max(0, cut - _SPAN) : cut]
        beyond = float(np.mean((sides.after[:, None] - seen[None, :]) * step > 0))
        return (
            outlier_share ** len(sides.after) <= 1e-4
            and (beyond >= 0.95 or len(sides.before) < _NEW_LEVEL)
            and (len(sides.after) >= 3 or ratio >= 1.5)
        )

    def _is_burst(
        self, level: Array, step: float, from_level: float, at_level: float, beyond: tuple[int, int], span: int
    ) -> bool:
        """Whether a short level goes back, on its far side (`beyond`), towards the level it came from."""
        if len(level) > _BURST:
            return False
        start, end = beyond
        far = self._clipped[start : min(end, start + span)] if span > 0 else self._clipped[max(start, end + span) : end]
        back = float(np.median(far))
        if len(level) < _BURST:
            return (back - at_level) * step < 0
        return abs(back - from_level) < 0.2 * abs(step)


def _flips(cuts: Sequence[int], verdicts: Sequence[Verdict]) -> list[int]:
    """For each cut, how many near it (itself included) are between the same two levels."""
    places = np.asarray(cuts)
    low = np.array([min(verdict.before, verdict.after) for verdict in verdicts])
    high = np.array([max(verdict.before, verdict.after) for verdict in verdicts])
    counts: list[int] = []
    for place, bottom, top in zip(cuts, low.tolist(), high.tolist(), strict=True):
        near = np.abs(places - place) <= _RECENT
        alike = np.maximum(np.abs(low - bottom), np.abs(high - top)) <= 0.4 * (top - bottom)
        counts.append(int(np.count_nonzero(near & alike)))
    return counts


def _superiority(before: Array, after: Array, step: float) -> float:
    """Probability that a value after lies beyond a value before, in the step's direction; ties count half."""
    ahead = (after[:, None] - before[None, :]) * (1 if step > 0 else -1)
    return (int(np.count_nonzero(ahead > 0)) + 0.5 * int(np.count_nonzero(ahead == 0))) / ahead.size


def _is_steep(sides: Sides, step: float) -> bool:
    near = np.median(sides.clipped_after[:_STEEP_VALUES]) - np.median(sides.clipped_before[-_STEEP_VALUES:])
    return bool(near * (1 if step > 0 else -1) >= _STEEP_SHARE * abs(step))


def _inflation(count: int, correlation: float) -> float:
    """Variance of the mean of `count` values of an AR(1) process ÷ that of independent ones."""
    rest = 1 - correlation
    return (1 + correlation) / rest - 2 * correlation * (1 - correlation**count) / (count * rest**2)

"""A head against the stored history of its series: which ones are worth measuring again, both ways.

Nothing here is red: a suspicion is measured again side by side with an earlier commit, and only that can confirm it.
"""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal, NamedTuple, Self, TypeVar

import numpy as np

from perftrack import stats
from perftrack.judge.cards import level_cards
from perftrack.judge.history import change_points
from perftrack.judge.shrinkage import CommonNoise, common_noise

Card = TypeVar("Card", bound=Hashable)
Reading = Literal["lower", "higher", "creeping", "usual", "unknown"]

_FALSE_SHARE = 0.05
"""Of the suspicions of one run, expected; of unchanged runs, with any."""
_CAUTION = 1.25
"""On every standard error: noise has heavier tails than Gauss, and no two series scatter alike."""
_LEAST_EFFECT = 0.01
_MOST_VALUES = 60
"""The current level's newest values that count."""
_RANGE_VALUES = 20
"""From so many on, a head inside the range of the newest 30 is usual: a mode seen lately is no news."""
_RANGE = 30
_LARGEST_EXPONENT = 700.0
"""exp() of more overflows."""
_WINDOW = 10
"""Values of the best-known level, and of the current one beside it."""
_FEWEST_TOGETHER = 3
_EXACT = 1e-9
"""A logarithmic change below it is a rounding error of sums."""


class Triage(NamedTuple):
    """What the history says of one series' head.

    `reading`: `lower` or `higher` than the current level, alike whether that is good or bad; `creeping` away from the
    best-known level by small steps; `usual`; `unknown` where there is no past, or too little to know its noise.
    `change`: head ÷ current level − 1, against the best-known level where creeping; `limit`: the smallest change of
    this series that would be seen alone (95 %); `p_value`: adjusted over all series of the run; NaN where unknown.
    `against`: which value of the past, as they were added, stands for the level that the head is measured against:
    the newest one, or the most usual of the best ten.
    """

    reading: Reading
    change: float
    limit: float
    p_value: float
    against: int | None = None


@dataclass(frozen=True, slots=True)
class Moved:
    """A card whose series moved together: so many `of` those with a known past, by `change` in the middle."""

    reading: Literal["lower", "higher"]
    count: int
    of: int
    change: float


def moved_together(told: Iterable[tuple[Card, Triage]]) -> dict[Card, Moved]:
    """By card: where most of its series stand out in one direction, three at least, and none in the other.

    `told`: the card and the answer of each series of a run. That is what a card does whose state has changed; but also
    a change of something that all cases share, which only measuring both sides on it tells apart.
    """
    by_card: dict[Card, list[Triage]] = {}
    for card, one in told:
        if one.reading != "unknown":
            by_card.setdefault(card, []).append(one)
    found: dict[Card, Moved] = {}
    for card, known in by_card.items():
        standing_out = [one for one in known if one.reading in ("lower", "higher")]
        directions = {one.reading for one in standing_out}
        if len(standing_out) < _FEWEST_TOGETHER or 2 * len(standing_out) <= len(known) or len(directions) > 1:
            continue
        reading: Literal["lower", "higher"] = "higher" if "higher" in directions else "lower"
        change = median(one.change for one in standing_out)
        found[card] = Moved(reading, len(standing_out), len(known), change)
    return found


class Past:
    """The values of one series before a head, oldest first: positive ones; others are gaps.

    One segment: the same environment, method and class, one value a commit.
    """

    def __init__(self, *, higher_is_better: bool = False) -> None:
        self.better = 1 if higher_is_better else -1
        self.added = 0
        self.logs: list[float] = []
        self.places: list[int] = []
        self._sums = [0.0]
        self._level = 0
        self._best: tuple[float, int] | None = None

    @classmethod
    def of(
        cls,
        values: Sequence[float],
        *,
        higher_is_better: bool = False,
        cards: Sequence[Hashable] | None = None,
        card: Hashable = None,
    ) -> Self:
        """A whole past, in which the current level is what follows the last of its `change_points`.

        `cards` names the card of each value, `card` that of the head. Values of other cards are moved by the constant
        difference of the two where that is known from commits in turn; where it is not, they are gaps.
        """
        known = [place for place, value in enumerate(values) if math.isfinite(value) and value > 0]
        logs = np.log([values[place] for place in known])
        if cards is not None and known:
            known, logs = _on_card(known, logs, [cards[place] for place in known], card)
        past, moved = cls(higher_is_better=higher_is_better), dict(zip(known, logs.tolist(), strict=True))
        for place in range(len(values)):
            past._add(moved.get(place))
        if past.logs:
            changes = change_points([_expm1(one - past.logs[0]) + 1 for one in past.logs])
            past._level = max([0, *(place for place, _ in changes)])
        return past

    def add(self, value: float) -> None:
        """The next commit's."""
        self._add(math.log(value) if math.isfinite(value) and value > 0 else None)

    def _add(self, log: float | None) -> None:
        place, self.added = self.added, self.added + 1
        if log is None:
            return
        self.logs.append(log)
        self.places.append(place)
        self._sums.append(self._sums[-1] + log)
        if len(self.logs) >= _WINDOW:
            mean = (self._sums[-1] - self._sums[-1 - _WINDOW]) / _WINDOW
            if self._best is None or self.better * mean > self.better * self._best[0]:
                self._best = (mean, len(self.logs) - _WINDOW)

    def begin_level(self, place: int) -> None:
        """The value added as number `place` is the first of the current level."""
        self._level = next((at for at, known in enumerate(self.places) if known >= place), len(self.logs))

    @property
    def level(self) -> list[float]:
        """Logarithms of the newest values of the current level."""
        return self.logs[max(self._level, len(self.logs) - _MOST_VALUES) :]

    def newest(self, head: float) -> float | None:
        """Mean logarithm of the newest ten values, the head's included; None where the past is too short for two.

        It is that of the nine without the head where that is better: a step at the head is no creep.
        """
        if len(self.logs) < 2 * _WINDOW:
            return None
        before = self._sums[-1] - self._sums[-_WINDOW]
        means = before / (_WINDOW - 1), (before + head) / _WINDOW
        return max(means, key=lambda mean: self.better * mean)

    @property
    def best(self) -> float:
        """Mean logarithm of the best ten values in a row; NaN where there are fewer."""
        return self._best[0] if self._best else math.nan

    def best_place(self) -> int:
        """Which of the best ten values in a row is nearest to their mean."""
        mean, start = self._best or (math.nan, 0)
        at = min(range(start, start + _WINDOW), key=lambda one: (abs(self.logs[one] - mean), -one))
        return self.places[at]


class _Test(NamedTuple):
    """`p_value` is 1 where the change is too small to be one, or usual."""

    reading: Reading
    change: float
    limit: float
    p_value: float
    against: int


def triage(pasts: Mapping[Hashable, Past], heads: Mapping[Hashable, float]) -> dict[Hashable, Triage]:
    """Every series of a run at once, by its name: its past and the head's value.

    The head is compared with its current level by Student's t for one more value (so with one value the error is √2 of
    the noise), the noise being the series' own moderated by that of all series of the run; and the newest ten values,
    the head included, with the best ten in a row. All tests of the run are adjusted together (Benjamini and Hochberg):
    at most 5 % of the suspicions are expected to be false, and at most 5 % of unchanged runs to have any, as far as
    series are independent or move together. A change below 1 % is none.
    """
    levels = {name: pasts[name].level if name in pasts else [] for name in heads}
    spreads = {name: _spread(level) for name, level in levels.items()}
    noise = common_noise(list(spreads.values()))
    tests: dict[Hashable, list[_Test]] = {}
    for name, head in heads.items():
        known = math.isfinite(head) and head > 0 and bool(levels[name])
        tests[name] = _tests(pasts[name], levels[name], math.log(head), noise, spreads[name]) if known else []
    adjusted = iter(stats.benjamini_hochberg([one.p_value for several in tests.values() for one in several]))
    return {name: _answer([one._replace(p_value=next(adjusted)) for one in several]) for name, several in tests.items()}


def _answer(tests: list[_Test]) -> Triage:
    if not tests:
        return Triage("unknown", math.nan, math.nan, math.nan)
    # what creeps stands out of its current level, too
    suspicion = next((one for one in reversed(tests) if one.p_value <= _FALSE_SHARE), None)
    return Triage("usual", *tests[0][1:4]) if suspicion is None else Triage(*suspicion)


def _on_card(known: list[int], logs: np.ndarray, cards: list[Hashable], card: Hashable) -> tuple[list[int], np.ndarray]:
    """What can be compared with a value of `card`, as if it had been measured there."""
    levelled, borders = level_cards(logs, cards)
    start = borders[-1] if borders else 0
    mine = [at for at in range(start, len(cards)) if cards[at] == card]
    if not mine:
        return [], logs[:0]
    offset = float(logs[mine[0]] - levelled[mine[0]])
    return known[start:], levelled[start:] + offset


def _spread(level: list[float]) -> tuple[float, int]:
    """Variance of the logarithms and its degrees of freedom."""
    if len(level) < 2:
        return 0.0, 0
    mean = math.fsum(level) / len(level)
    return math.fsum([(value - mean) ** 2 for value in level]) / (len(level) - 1), len(level) - 1


def _tests(past: Past, level: list[float], head: float, noise: CommonNoise, spread: tuple[float, int]) -> list[_Test]:
    """Of a head with a past: against the current level, then against the best-known one; none without any noise."""
    variance, degrees = noise.moderated(*spread)
    deviation, whole = _CAUTION * math.sqrt(variance), int(degrees)
    if whole < 1:
        return []
    against_level = _step(past, level, head, deviation, whole)
    newest = past.newest(head)
    return [against_level] if newest is None else [against_level, _creep(past, newest, deviation, whole)]


def _step(past: Past, level: list[float], head: float, deviation: float, degrees: int) -> _Test:
    change = head - math.fsum(level) / len(level)
    error = deviation * math.sqrt(1 + 1 / len(level))
    seen = level[-_RANGE:]
    inside = len(seen) >= _RANGE_VALUES and min(seen) <= head <= max(seen)
    large = not inside and abs(change) >= math.log1p(_LEAST_EFFECT)
    return _Test(
        "higher" if change > 0 else "lower",
        _expm1(change),
        max(_expm1(stats.student_t(degrees, 0.95) * error), _LEAST_EFFECT),
        _p_value(change, error, degrees) if large else 1.0,
        past.places[-1],
    )


def _creep(past: Past, newest: float, deviation: float, degrees: int) -> _Test:
    """The best of so many windows looks better than it is: its p-value is multiplied by their number."""
    change, windows = newest - past.best, len(past.logs) / _WINDOW
    error = deviation * math.sqrt(2 / _WINDOW)
    large = -past.better * change >= 2 * math.log1p(_LEAST_EFFECT)
    return _Test(
        "creeping",
        _expm1(change),
        max(_expm1(stats.student_t(degrees, 0.95) * error), _LEAST_EFFECT),
        min(1.0, windows * _p_value(change, error, degrees)) if large else 1.0,
        past.best_place() if large else past.places[-1],
    )


def _expm1(exponent: float) -> float:
    return math.expm1(min(exponent, _LARGEST_EXPONENT))


def _p_value(change: float, error: float, degrees: int) -> float:
    if error == 0:
        return 1.0 if abs(change) < _EXACT else 0.0
    return stats.student_t_tail(change / error, degrees)

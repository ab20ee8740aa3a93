"""A head against the stored history of its series: which ones are worth measuring again, both ways.

Nothing here is red: a suspicion is measured again side by side with base, and only that can confirm it.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Literal, NamedTuple

from perftrack import stats
from perftrack.judge.history import change_points
from perftrack.judge.shrinkage import CommonNoise, common_noise

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


class Triage(NamedTuple):
    """What the history says of one series' head.

    `reading`: `lower` or `higher` than the current level, alike whether that is good or bad; `creeping` away from the
    best-known level by small steps; `usual`; `unknown` where there is no past, or too little to know its noise.
    `change`: head ÷ current level − 1, against the best-known level where creeping; `limit`: the smallest change of
    this series that would be seen alone (95 %); `p_value`: adjusted over all series of the run; NaN where unknown.
    """

    reading: Reading
    change: float
    limit: float
    p_value: float


class _Test(NamedTuple):
    reading: Reading
    change: float
    limit: float
    p_value: float
    large: bool


def triage(
    pasts: Mapping[Hashable, Sequence[float]],
    heads: Mapping[Hashable, float],
    *,
    higher_is_better: Mapping[Hashable, bool] | bool = False,
) -> dict[Hashable, Triage]:
    """Every series of a run at once, by its name: positive values of the past, oldest first, and the head's value.

    A past is one segment: the same environment, method and class, one value a commit; what is not finite or not
    positive is a gap. The head is compared with its current level, the values since the past's last change, by
    Student's t for one more value (so with one value the error is √2 of the noise), the noise being the series' own
    moderated by that of all series of the run; and the newest ten values, the head included, with the best ten in a
    row. All tests of the run are adjusted together (Benjamini and Hochberg): at most 5 % of the suspicions are
    expected to be false, and at most 5 % of unchanged runs to have any, as far as series are independent or move
    together. A change below 1 % is none. `higher_is_better` says which way the best-known level lies.
    """
    logs = {
        name: [math.log(value) for value in pasts.get(name, ()) if math.isfinite(value) and value > 0] for name in heads
    }
    levels = {name: _current_level(past) for name, past in logs.items()}
    noise = common_noise([_spread(level) for level in levels.values()])
    tests: dict[Hashable, list[_Test]] = {}
    for name, head in heads.items():
        known = math.isfinite(head) and head > 0 and bool(levels[name])
        better = higher_is_better if isinstance(higher_is_better, bool) else higher_is_better.get(name, False)
        tests[name] = _tests(logs[name], levels[name], math.log(head), noise, 1 if better else -1) if known else []
    adjusted = iter(stats.benjamini_hochberg([one.p_value for several in tests.values() for one in several]))
    return {name: _answer([one._replace(p_value=next(adjusted)) for one in several]) for name, several in tests.items()}


def _answer(tests: list[_Test]) -> Triage:
    if not tests:
        return Triage("unknown", math.nan, math.nan, math.nan)
    suspicion = next((one for one in tests if one.large and one.p_value <= _FALSE_SHARE), None)
    if suspicion is None:
        return Triage("usual", *tests[0][1:4])
    return Triage(*suspicion[:4])


def _current_level(past: list[float]) -> list[float]:
    changes = change_points([_expm1(value - past[0]) + 1 for value in past]) if past else []
    return past[max([0, *(place for place, _ in changes)]) :][-_MOST_VALUES:]


def _spread(level: list[float]) -> tuple[float, int]:
    """Variance of the logarithms and its degrees of freedom."""
    if len(level) < 2:
        return 0.0, 0
    mean = math.fsum(level) / len(level)
    return math.fsum((value - mean) ** 2 for value in level) / (len(level) - 1), len(level) - 1


def _tests(past: list[float], level: list[float], head: float, noise: CommonNoise, better: int) -> list[_Test]:
    """Of a head with a past: against the current level, then against the best-known one; none without any noise."""
    variance, degrees = noise.moderated(*_spread(level))
    deviation, whole = _CAUTION * math.sqrt(variance), int(degrees)
    if whole < 1:
        return []
    against_level = _step(level, head, deviation, whole)
    newest = [*past[-_WINDOW + 1 :], head]
    if len(past) < 2 * _WINDOW:
        return [against_level]
    sums = [math.fsum(past[at : at + _WINDOW]) / _WINDOW for at in range(len(past) - _WINDOW + 1)]
    best = max(sums, key=lambda mean: better * mean)
    return [against_level, _creep(best, newest, deviation, whole, better, len(past) / _WINDOW)]


def _step(level: list[float], head: float, deviation: float, degrees: int) -> _Test:
    change = head - math.fsum(level) / len(level)
    error = deviation * math.sqrt(1 + 1 / len(level))
    seen = level[-_RANGE:]
    inside = len(seen) >= _RANGE_VALUES and min(seen) <= head <= max(seen)
    return _Test(
        "higher" if change > 0 else "lower",
        _expm1(change),
        max(_expm1(stats.student_t(degrees, 0.95) * error), _LEAST_EFFECT),
        _p_value(change, error, degrees),
        not inside and abs(change) >= math.log1p(_LEAST_EFFECT),
    )


def _creep(best: float, newest: list[float], deviation: float, degrees: int, better: int, windows: float) -> _Test:
    """The best of so many windows looks better than it is: its p-value is multiplied by their number."""
    change = math.fsum(newest) / len(newest) - best
    error = deviation * math.sqrt(2 / _WINDOW)
    return _Test(
        "creeping",
        _expm1(change),
        max(_expm1(stats.student_t(degrees, 0.95) * error), _LEAST_EFFECT),
        min(1.0, windows * _p_value(change, error, degrees)),
        -better * change >= 2 * math.log1p(_LEAST_EFFECT),
    )


def _expm1(exponent: float) -> float:
    return math.expm1(min(exponent, _LARGEST_EXPONENT))


def _p_value(change: float, error: float, degrees: int) -> float:
    if error == 0:
        return 1.0 if change == 0 else 0.0
    return stats.student_t_tail(change / error, degrees)

"""Which commit to measure next, in how many rounds, and what its times say: a binary search for a step.

Pure: what is known of the commits goes in, so that a search that was broken off goes on from what is stored.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Literal

from perftrack import stats

Answer = Literal["good", "bad", "skipped"]
"""As the good end, as the bad end, or nothing that can be compared."""

CONFIDENCE = 0.99
MOST_ROUNDS = 20
FEWEST_ROUNDS = 2


def is_step(ratios: Sequence[float]) -> bool:
    """Whether the ends differ beyond their noise: head ÷ base of each round, two at least; its 99 % interval.

    Rounds without any scatter (a clock that counts in large steps) need a difference of 0.1 % all the same.
    """
    bounds = stats.ratio_interval(ratios, CONFIDENCE)
    return (bounds.low > 1 or bounds.high < 1) and abs(math.log(bounds.point)) >= 1e-3


def rounds_needed(ratios: Sequence[float]) -> int:
    """Rounds after which a commit between the ends is told from half of the step, as these scatter (99 %).

    A commit is as the end that it is nearer to on a logarithmic scale, so its error must stay below half of the step:
    n with t · s ÷ √n ≤ |log step| ÷ 2, Student's t of the ends' rounds less 1; from 2 to 20.
    """
    logs = [math.log(ratio) for ratio in ratios]
    mean = math.fsum(logs) / len(logs)
    deviation = math.sqrt(math.fsum((one - mean) ** 2 for one in logs) / (len(logs) - 1))
    needed = (2 * stats.student_t(len(logs) - 1, CONFIDENCE) * deviation / abs(mean)) ** 2
    return max(FEWEST_ROUNDS, min(MOST_ROUNDS, math.ceil(needed)))


def classify(ratio: float, step: float) -> Answer:
    """Of a commit with this time ÷ that of the good end, where the bad end has `step`: the end that it is nearer to."""
    return "bad" if math.log(ratio) / math.log(step) >= 0.5 else "good"


def bracket(count: int, answers: Mapping[int, Answer]) -> tuple[int, int]:
    """(the last good, the first bad after it) of `count` commits, of which the first is good and the last is bad."""
    bad = min((place for place, answer in answers.items() if answer == "bad"), default=count - 1)
    good = max((place for place, answer in answers.items() if answer == "good" and place < bad), default=0)
    return good, bad


def next_place(count: int, answers: Mapping[int, Answer]) -> int | None:
    """The commit to measure next: the nearest to the middle that was not skipped; None where the search is over."""
    good, bad = bracket(count, answers)
    open_ = [place for place in range(good + 1, bad) if place not in answers]
    return min(open_, key=lambda place: (abs(2 * place - good - bad), place), default=None)


def culprits(count: int, answers: Mapping[int, Answer]) -> range:
    """The commits that may have made the step: one, or those skipped before the first bad one and that one."""
    good, bad = bracket(count, answers)
    return range(good + 1, bad + 1)

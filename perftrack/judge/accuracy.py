"""A guard for the numerics: whether a variant's error against float64 clearly grew or shrank from base to head.

A variant whose error exceeds the benchmark's tolerance is `wrong`. Below the tolerance there is room, for float32 some
thirty units of round-off, in which a kernel can lose most of its accuracy and stay fast and green: an accumulator that
became half as wide, an intermediate that is rounded where it was not, a fast approximation. This is what is found here.

The error is the relative L2 norm that `measure.verify` computes over all elements. Both sides get the same seeded data
in a round and other data in the next, so nothing is random but the order of atomic additions: what every round says
needs no test of significance and no fresh rounds.
"""

import re
from collections.abc import Iterable, Sequence

from perftrack.judge.rounds import Round
from perftrack.model import Accuracy, Case, Measurement, Status

FACTOR = 1.5
"""The error of one side must be this many times the other's. Independent rounding errors add up like the root of their
number (N. J. Higham, T. Mary: A new approach to probabilistic rounding error analysis, SIAM J. Sci. Comput. 41, 2019),
so one rounding more is a factor of 1.41 at most and no news; two more, where there was one, are 1.73. PyTorch, which
compares a compiled model's error against float64 with the eager one's (`same` in torch/_dynamo/utils.py), passes twice
the error and, where data may differ, three times: that is a limit for `wrong`, which the tolerance is here."""

UNIT_ROUND_OFF = {
    "float64": 2**-53,
    "complex128": 2**-53,
    "float32": 2**-24,
    "complex64": 2**-24,
    "float16": 2**-11,
    "bfloat16": 2**-8,
}

FLOOR = 0.25
"""Units of round-off below which an error is no news, whatever it was before: rounding normal or uniform data once
gives 0.38 to 0.43, so that less means an output that is exact but for a few elements."""

_VALUE = re.compile(r"=(\w+)(?=[,\]])")
"""The value of an axis in the key of a case."""

_Errors = tuple[float, float]
"""(at head, at base)."""


def errors(rounds: Iterable[Round], variant: str) -> list[_Errors]:
    """The relative L2 errors of each round that checked both sides; disturbed blocks do not disturb a result."""
    pairs: list[_Errors] = []
    for part in rounds:
        sides = [_error(part, part.measurements.get((side, variant))) for side in ("head", "base")]
        if sides[0] is not None and sides[1] is not None:
            pairs.append((sides[0], sides[1]))
    return pairs


def floor_of(case: Case) -> float:
    """The error below which nothing is news: of the finest dtype among the values of the case's axes.

    An output's dtype is not known here. Without any dtype among the axes float32 is assumed, which is what the
    generator of inputs draws unless it is told otherwise.
    """
    return _floor(case.params.values())


def floor_of_key(case_key: str) -> float:
    """The same by the key of a case, which names the values of all its axes."""
    return _floor(_VALUE.findall(case_key))


def decide(pairs: Sequence[_Errors], floor: float) -> Accuracy:
    """Less or more accurate where every round says so; swapping head and base mirrors the answer."""
    if pairs and all(grew(head, base, floor) for head, base in pairs):
        return Accuracy.LESS
    if pairs and all(grew(base, head, floor) for head, base in pairs):
        return Accuracy.MORE
    return Accuracy.NONE


def grew(after: float, before: float, floor: float) -> bool:
    """An error of exactly 0 before is the least there can be: then the floor alone decides."""
    return after > floor and after >= FACTOR * before


def times(after: float, before: float, floor: float) -> float:
    """How many times the error; what is below the floor, and 0 above all, counts as the floor."""
    return max(after, floor) / max(before, floor)


def _floor(values: Iterable[object]) -> float:
    known = [UNIT_ROUND_OFF[value] for value in values if isinstance(value, str) and value in UNIT_ROUND_OFF]
    return FLOOR * min(known, default=UNIT_ROUND_OFF["float32"])


def _error(part: Round, measurement: Measurement | None) -> float | None:
    if measurement is None or part.result.status is Status.INFRA:
        return None
    return measurement.error_l2 if measurement.status in (Status.OK, Status.UNSTABLE) else None

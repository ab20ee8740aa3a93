"""A history with what people said of it: an accepted step is one, a step that was called invalid is none."""

import math
from collections.abc import Hashable, Iterable, Sequence

_NEAR = 2
"""Commits between a mark and a change that are still the same."""


def marked_changes(
    values: Sequence[float],
    *,
    borders: Iterable[int] = (),
    cards: Sequence[Hashable] | None = None,
    steps: Iterable[int] = (),
    invalid: Iterable[int] = (),
) -> list[tuple[int, int]]:
    """The changes of level of a series of times, as `change_points` gives them, under the marks of people.

    `steps`: where a slowdown began that is acknowledged, or the machine's doing. It is a change there, whatever the
    values around it show, and both sides are judged apart, so that it is explained and hides nothing. `invalid`: where
    a slowdown was remembered and is none: the value is a gap, and no rise within two commits of it is reported.
    """
    wrong = set(invalid)
    series = [math.nan if place in wrong else value for place, value in enumerate(values)]
    known = [place for place, value in enumerate(series) if math.isfinite(value)]
    begun = {next((place for place in known if place >= step), None) for step in steps} - {None, *borders, *known[:1]}
    told = [step for step in begun if step is not None]
    from perftrack.judge.history import change_points  # noqa: PLC0415 - brings NumPy, and who reads a run needs none

    found = change_points(series, borders=[*borders, *told], cards=cards)
    kept = [one for one in found if one[1] < 0 or not any(abs(one[0] - place) <= _NEAR for place in wrong)]
    return sorted([*kept, *((step, 1) for step in told)])

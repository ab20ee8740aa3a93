"""The triage of heads run over stored histories: which heads would have been measured again beside an older commit."""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from perftrack.judge.cards import level_cards
from perftrack.judge.replay import Alert
from perftrack.judge.triage import Past, Reading, triage

_SUSPICIONS = ("higher", "lower", "creeping")


class Series(NamedTuple):
    """One history as triage takes it; all sequences but the last two are equally long."""

    values: Sequence[float]
    """Lower is better; what is not finite or not positive is a gap."""
    commits: Sequence[int]
    """The order of their commits, rising; series of one commit are judged together."""
    segments: Sequence[str]
    cards: Sequence[Hashable]
    alerts: Sequence[Alert]
    """What `replay` tells of it, which begins its levels."""
    known: Iterable[int]
    """Places of remembered slowdowns, where a new past begins."""


class Suspicion(NamedTuple):
    """A head that stands out: of which series, at which value, how, and head ÷ level − 1."""

    series: int
    place: int
    reading: Reading
    change: float


def suspicions(of: Sequence[Series]) -> list[Suspicion]:
    """What `triage` would have suspected of series that are measured together, by commit.

    As a submission asks it, every commit's head after what lay before it, but for three things: levels are those that
    `replay` had told by then; offsets of cards are those of the whole history; and since nothing can be measured again,
    a series told to creep begins anew, and one that stays higher or lower is told once.
    """
    heads = sorted(
        (one.commits[place], number, place)
        for number, one in enumerate(of)
        for place, value in enumerate(one.values)
        if math.isfinite(value) and value > 0
    )
    replayed = [_Replayed(one) for one in of]
    found: list[Suspicion] = []
    for _, together in groupby(heads, key=lambda head: head[0]):
        found += _of_commit(replayed, {number: place for _, number, place in together})
    return found


def _of_commit(replayed: Sequence["_Replayed"], places: Mapping[int, int]) -> list[Suspicion]:
    found: list[Suspicion] = []
    answers = triage(
        {number: replayed[number].past(place) for number, place in places.items()},
        {number: replayed[number].values[place] for number, place in places.items()},
    )
    for number, place in places.items():
        answer, one = answers[number], replayed[number]
        if answer.reading in _SUSPICIONS and one.said != answer.reading:
            found.append(Suspicion(number, place, answer.reading, answer.change))
        one.add(place, answer.reading)
    return found


class _Replayed:
    """A series with its pasts, one for each segment and group of cards, as they grow."""

    def __init__(self, series: Series) -> None:
        self.values = [value if value > 0 else math.nan for value in series.values]
        self.groups = list(series.segments)
        for segment in dict.fromkeys(series.segments):
            self._level(series, [at for at, one in enumerate(series.segments) if one == segment])
        self.known = set(series.known)
        self.begun: dict[int, list[int]] = {}
        for alert in series.alerts:
            self.begun.setdefault(alert.seen, []).append(alert.start)
        self.said: Reading = "unknown"
        self._pasts: dict[str, Past] = {}
        self._numbers: dict[int, int] = {}

    def _level(self, series: Series, places: list[int]) -> None:
        """Values as if one card had given them all; a group of cards for each that cannot be compared."""
        mine = [at for at in places if math.isfinite(self.values[at])]
        if len({series.cards[at] for at in mine}) < 2:
            return
        logs = np.log([self.values[at] for at in mine])
        levelled, borders = level_cards(logs, [series.cards[at] for at in mine])
        for at, log in zip(mine, levelled.tolist(), strict=True):
            self.values[at] = math.exp(log)
        for group, border in enumerate(borders, start=1):
            for at in mine[border:]:
                self.groups[at] = f"{series.segments[at]} {group}"

    def past(self, place: int) -> Past:
        return self._pasts.setdefault(self.groups[place], Past())

    def add(self, place: int, reading: Reading) -> None:
        """The value becomes part of the past, with what is told of levels after it."""
        if place in self.known or reading == "creeping":
            self._pasts[self.groups[place]] = Past()
            self._numbers.clear()
        past = self.past(place)
        self._numbers[place] = past.added
        past.add(self.values[place])
        for start in self.begun.get(place, ()):
            if start in self._numbers and self.groups[start] == self.groups[place]:
                past.begin_level(self._numbers[start])
        self.said = reading

"""Cards of one class differ by a constant factor: a series measured on several is levelled before it is judged."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from itertools import pairwise
from statistics import median

import numpy as np

from perftrack.judge.segmentation import Array

_FEWEST_MEETINGS = 4
"""So many neighbouring values on two cards give their difference: a step among them does not move the median."""


def level_cards(values: Array, cards: Sequence[Hashable]) -> tuple[Array, list[int]]:
    """Relative values with each card's offset from the most used one taken off, and where comparison ends.

    An offset is the median difference of neighbouring values across a change of card. Cards that hardly alternate
    cannot be told from a step at the commit where one gave way to the other; there the second answer has an index: no
    change is to be reported across.
    """
    meetings: dict[tuple[Hashable, Hashable], list[float]] = defaultdict(list)
    for place in np.flatnonzero([first != second for first, second in pairwise(cards)]).tolist():
        rise = float(values[place + 1] - values[place])
        meetings[cards[place], cards[place + 1]].append(rise)
        meetings[cards[place + 1], cards[place]].append(-rise)
    offsets: dict[Hashable, float] = {}
    groups: dict[Hashable, int] = {}
    for card, _ in Counter(cards).most_common():
        if card not in groups:
            _place_group(card, meetings, offsets, groups)
    borders = [at for at in range(1, len(cards)) if groups[cards[at]] != groups[cards[at - 1]]]
    return values - np.array([offsets[card] for card in cards]), borders


def _place_group(
    first: Hashable,
    meetings: dict[tuple[Hashable, Hashable], list[float]],
    offsets: dict[Hashable, float],
    groups: dict[Hashable, int],
) -> None:
    """Give an offset to a card and to all that met it often, or met one that did, the most met first."""
    number = len(groups)
    offsets[first], groups[first] = 0.0, number
    while True:
        rises: dict[Hashable, list[float]] = defaultdict(list)
        for (known, card), met in meetings.items():
            if groups.get(known) == number and card not in groups:
                rises[card] += [offsets[known] + rise for rise in met]
        if not rises:
            return
        card = max(rises, key=lambda one: len(rises[one]))
        if len(rises[card]) < _FEWEST_MEETINGS:
            return
        offsets[card], groups[card] = median(rises[card]), number

"""Which commits of a line of history are worth measuring: pure choice, no git."""

import heapq
import itertools
from collections.abc import Collection, Sequence

from perftrack.revision import Commit


def steps(line: Sequence[Commit], count: int | None) -> list[Commit]:
    """At most `count` commits of a line, most wanted first; the same line and count give the same ones.

    The newest, then tags and merges, the newest first, then the middle of the widest stretch that is left, again and
    again: wherever the budget ends, what was measured is spread evenly.
    """
    if not line:
        return []
    last = len(line) - 1
    wanted = [last]
    for kind in ("tagged", "merge"):
        wanted += [place for place in range(last - 1, -1, -1) if getattr(line[place], kind) and place not in wanted]
    chosen = wanted[:count]
    return [line[place] for place in [*chosen, *_middles(len(line), chosen, _rest(count, chosen))]]


def gaps(line: Sequence[Commit], measured: Collection[str], count: int | None) -> list[Commit]:
    """At most `count` commits that are not measured, in the middle of the widest stretch first."""
    there = [place for place, commit in enumerate(line) if commit.sha in measured]
    return [line[place] for place in _middles(len(line), there, count)]


def _rest(count: int | None, chosen: Collection[int]) -> int | None:
    return None if count is None else count - len(chosen)


def _middles(length: int, taken: Sequence[int], count: int | None) -> list[int]:
    """Further places, each halving the widest stretch between places that are taken; of equal ones the newest."""
    borders, found = sorted({-1, length, *taken}), list[int]()
    stretches = [(left - right, -left) for left, right in itertools.pairwise(borders)]
    heapq.heapify(stretches)
    while stretches and (count is None or len(found) < count):
        width, left = (-part for part in heapq.heappop(stretches))
        if width < 2:
            break
        half = width // 2
        found.append(left + half)
        heapq.heappush(stretches, (-half, -left))
        heapq.heappush(stretches, (half - width, -left - half))
    return found

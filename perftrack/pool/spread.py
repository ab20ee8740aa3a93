"""Who measures what: the jobs of one round over the devices of one class, so that all end at the same time."""

import heapq
from collections.abc import Callable, Iterable, Mapping

from perftrack.model import Job

WORTH_S = 1.0
"""A case leaves the device that measured it before only where the round ends this much earlier for it: devices of
one class differ by about 1 %, and times of one case should come from one of them."""


def spread(
    jobs: Iterable[Job],
    busy_s: Mapping[str, float],
    *,
    cost_s: Callable[[Job], float],
    home: Callable[[Job], str],
) -> dict[str, tuple[Job, ...]]:
    """Device UUID → its jobs, in their order. `busy_s` has every device there is, and for how long it is still busy.

    A job goes where it prefers, else to its `home` (where the case was measured before; empty: nowhere yet), else,
    longest first, to the device that would be idle first. Then jobs without a preference move from the device that
    would end last to the one that would end first, as long as that is worth it.
    """
    ends_s = dict(busy_s)
    dealt: dict[str, list[Job]] = {uuid: [] for uuid in ends_s}
    queue = list(jobs)
    free: list[Job] = []
    for job in queue:
        where = next((uuid for uuid in (job.prefer, home(job)) if uuid in ends_s), None)
        if where is None:
            free.append(job)
        else:
            dealt[where].append(job)
            ends_s[where] += cost_s(job)
    first = [(end_s, number, uuid) for number, (uuid, end_s) in enumerate(ends_s.items())]
    heapq.heapify(first)
    for job in sorted(free, key=cost_s, reverse=True):
        end_s, number, where = first[0]
        dealt[where].append(job)
        ends_s[where] = end_s + cost_s(job)
        heapq.heapreplace(first, (ends_s[where], number, where))
    _level(dealt, ends_s, cost_s)
    place = {id(job): index for index, job in enumerate(queue)}
    return {uuid: tuple(sorted(mine, key=lambda job: place[id(job)])) for uuid, mine in dealt.items()}


def _level(dealt: dict[str, list[Job]], ends_s: dict[str, float], cost_s: Callable[[Job], float]) -> None:
    while True:
        last, first = max(ends_s, key=ends_s.__getitem__), min(ends_s, key=ends_s.__getitem__)
        gap = ends_s[last] - ends_s[first]
        movable = [job for job in dealt[last] if job.prefer != last and cost_s(job) < gap]
        if not movable:
            return
        job = min(movable, key=lambda job: abs(cost_s(job) - gap / 2))
        if min(cost_s(job), gap - cost_s(job)) < WORTH_S:
            return
        dealt[last].remove(job)
        dealt[first].append(job)
        ends_s[last] -= cost_s(job)
        ends_s[first] += cost_s(job)

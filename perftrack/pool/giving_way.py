"""A sweep gives way to a submission that waits for a device: between two jobs, until the submission is done with it.

Who waits puts up a sign: a named actor that asks for nothing, whose name says where it waits. Ray lists it from the
moment it is made and takes it down with its driver, whatever ends that.
"""

import secrets
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any, NamedTuple

from perftrack.pool.worker import Place, Worker

SOON_S = 2.0
"""A device that is free is there by then; from then on a submission shows that it waits."""

_SIGNS = "perftrack-waiting"
"""Ray's namespace of the signs; nothing else has names in it."""

Where = tuple[str, str]
"""Node id and backend."""


class Sign:
    """The actor; all that counts is its name."""


class Changes(NamedTuple):
    """What becomes of workers after a look at the signs."""

    park: list[Worker]
    """They are idle and go now. Those at work are marked to leave after their job."""
    ask_again: list[Worker]
    """Nobody waits for theirs any more."""


def put_up(ray: ModuleType, places: Iterable[Place]) -> Any:
    """A sign that somebody waits at these places; kill the actor to take it down."""
    counts = Counter(map(where, places))
    words = [f"{node} {backend} {count}" for (node, backend), count in sorted(counts.items())]
    name = ",".join([secrets.token_hex(8), *words])
    return ray.remote(Sign).options(name=name, namespace=_SIGNS, num_cpus=0, max_restarts=0).remote()


def signs(ray: ModuleType) -> dict[Where, int]:
    """For how many devices somebody waits, by place."""
    found: Counter[Where] = Counter()
    for each in ray.util.list_named_actors(all_namespaces=True):
        if each["namespace"] == _SIGNS:
            for words in each["name"].split(",")[1:]:
                node, backend, count = words.split(" ")
                found[node, backend] += int(count)
    return dict(found)


def where(place: Place) -> Where:
    """The place as signs name it."""
    return place.node_id, place.backend


def changes(workers: Sequence[Worker], wanted: Mapping[Where, int]) -> Changes:
    """Who leaves, as many at each place as are waited for there, and who asks for a device again."""
    found = Changes([], [])
    leaving = Counter(where(worker.place) for worker in workers if worker.away or worker.leaving)
    for worker in workers:
        at = where(worker.place)
        if not wanted.get(at):
            worker.leaving = False
            if worker.away and worker.reply is None:
                found.ask_again.append(worker)
        elif leaving[at] < wanted[at] and not (worker.away or worker.leaving or worker.starting):
            leaving[at] += 1
            worker.leaving = True
        if worker.leaving and worker.reply is None:
            found.park.append(worker)
    return found

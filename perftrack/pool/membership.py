"""Nodes that come and go while a run is on: lost ones are given up at once, new ones take part."""

import time
from collections.abc import Callable, Sequence
from types import ModuleType

from perftrack.model import DeviceReport
from perftrack.pool.card import CardSetup
from perftrack.pool.giving_way import Where, signs
from perftrack.pool.ray_session import head_answers
from perftrack.pool.roster import places
from perftrack.pool.versions import difference, usual
from perftrack.pool.worker import Place, Worker

LOOK_S = 2.0
"""Between two looks at the nodes; a look costs about a millisecond."""


class Membership:
    """Who belongs to the pool of a run. Made when the first workers are known."""

    def __init__(
        self,
        ray: ModuleType,
        workers: Sequence[Worker],
        setup: Callable[[Place], CardSetup],
        *,
        gives_way: bool = False,
    ) -> None:
        self._ray = ray
        self._gives_way = gives_way
        self._setup = setup
        self._usual = usual([worker.report for worker in workers if worker.report and not worker.report.problem])
        self._backends = {worker.place.backend for worker in workers}
        self._known = {place.node_id for place in places(ray)}
        self._looked_s = time.monotonic()
        self._announced = {worker.uuid for worker in workers}

    def look(self, *, now: bool = False) -> tuple[set[str], list[Place]] | None:
        """Ids of the living nodes, and places of those that are new.

        None where it is too soon to look again, or while the head is away: Ray would wait for it, and devices at work
        can go on without.
        """
        if not now and time.monotonic() - self._looked_s < LOOK_S:
            return None
        self._looked_s = time.monotonic()
        if not head_answers(self._ray):
            return None
        found = places(self._ray)
        living = {place.node_id for place in found}
        fresh = [place for place in found if place.node_id not in self._known and place.backend in self._backends]
        self._known |= living
        return living, fresh

    def waited_for(self) -> dict[Where, int]:
        """For how many devices submissions wait, by place; nothing where this run does not give way."""
        return signs(self._ray) if self._gives_way else {}

    def recruit(self, place: Place) -> Worker:
        """A Card at a place that is new; it has not been asked for its device."""
        return Worker(self._ray, place, self._setup(place))

    def objection(self, report: DeviceReport, others: Sequence[Worker]) -> str | None:
        """Why a Card that has just named its device is not used: in words, or empty where nobody need know."""
        device = report.device
        where = f"{device.device_class} on {device.node} is left out"
        if device.device_class not in self._usual:
            return ""
        if any(other.uuid == device.uuid for other in others):
            return f"{where}: device {device.uuid} is in use already, or was and is not used any more"
        if differs := difference(report, self._usual[device.device_class]):
            return f"{where}: its software differs ({differs})"
        return None

    def is_new(self, report: DeviceReport) -> bool:
        """Whether the client has not heard of this device; asked once."""
        new = report.device.uuid not in self._announced
        self._announced.add(report.device.uuid)
        return new

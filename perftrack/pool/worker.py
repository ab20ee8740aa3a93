"""The host's side of a Card: the Ray actor, where it is placed, and what it is busy with."""

import time
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import msgspec

from perftrack.model import Backend, DeviceReport, Job, Side, TreeArchive
from perftrack.pool.card import Card, CardSetup
from perftrack.pool.lease import Doing, Lease, Named


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU of a node, or all its CPUs."""

    node_id: str
    node: str
    backend: Backend
    cores: int


class Worker:
    """A Card that lives in a Ray actor. Ray neither restarts it nor repeats a call."""

    def __init__(self, ray: ModuleType, place: Place, setup: CardSetup) -> None:
        self._ray = ray
        self.place = place
        self._setup = setup
        self.named: Named | None = None
        self.held = False
        """Kept but not used: a freed device would be handed out again by Ray."""
        self.reply: Any = None
        """The call it is busy with: a reference or, for a lease, a generator of references."""
        self.unheard = False
        """Nobody listens to that call yet."""
        self.lease: Lease | None = None
        """None also while it is busy with something else than a lease."""
        self.outstanding: dict[tuple[str, str], Job] = {}
        """Jobs of the current lease that have not ended."""
        self.disturbed: list[Job] = []
        """Jobs of the current lease in which the device was disturbed."""
        self.doing: Doing | None = None
        self._began_s = 0.0
        self.leaving = False
        """It gives way as soon as the job at hand has ended."""
        self.away = False
        """It gave way: it has no device and, once it has asked for one again, waits as long as that takes."""
        self.heard_at = time.monotonic()
        self._actor = self._start()

    def _start(self) -> Any:
        gpus = 1 if self.place.backend == "cuda" else 0
        cpus = 0 if gpus else self.place.cores  # a CPU that is measured belongs to one job alone
        return (
            self._ray.remote(Card)
            .options(
                num_cpus=cpus,
                num_gpus=gpus,
                max_restarts=0,
                max_task_retries=0,
                label_selector={"ray.io/node-id": self.place.node_id},
            )
            .remote(self._setup)
        )

    @property
    def report(self) -> DeviceReport | None:
        """What its child said of its device; None while that is not known."""
        return self.named.report if self.named else None

    @property
    def usable(self) -> bool:
        """It has a device that may be measured."""
        return self.report is not None and not self.report.problem and not self.held

    @property
    def starting(self) -> bool:
        """It is asked for its device."""
        return self.reply is not None and self.lease is None

    @property
    def uuid(self) -> str:
        """Of its device; empty while that is not known."""
        return self.report.device.uuid if self.report else ""

    @property
    def device_class(self) -> str:
        """Of its device; empty while that is not known."""
        return self.report.device.device_class if self.report else ""

    @property
    def at_hand(self) -> Job | None:
        """The job that it is doing, as far as it has said."""
        return self.outstanding.get((self.doing.suite, self.doing.case_key)) if self.doing else None

    @property
    def spent_s(self) -> float:
        """Since it began with the job at hand."""
        return time.monotonic() - self._began_s

    def note(self, doing: Doing) -> None:
        """Take notice of what it does."""
        before = self.doing
        if before is None or (before.suite, before.case_key) != (doing.suite, doing.case_key):
            self._began_s = time.monotonic()
        self.doing = doing

    def fits(self, jobs: Sequence[Job]) -> bool:
        """Whether it can be used for jobs of this device class."""
        return self.usable and self.device_class == jobs[0].device_class

    def identify(self) -> None:
        """Ask for its device."""
        self._call(self._actor.identify.remote())

    def hold_trees(self, archives: dict[Side, TreeArchive], tars: Sequence[Any]) -> None:
        """Let it unpack the trees; `tars` are references into the object store."""
        self._call(self._actor.hold_trees.remote(archives, *tars))

    def give(self, lease: Lease) -> None:
        """Let it begin with a lease."""
        self.lease = lease
        self.outstanding = {(job.case.suite, job.case.key): job for job in lease.jobs}
        self._call(self._actor.tell.options(num_returns="streaming").remote(lease))

    def park(self) -> None:
        """Give the device to whoever waits for it; another one may come back."""
        self.kill()
        self.idle()
        self.named, self.held, self.away = None, False, True

    def ask_again(self, archives: dict[Side, TreeArchive], tars: Sequence[Any]) -> None:
        """Wait for a device after having given way."""
        self.replace(archives, tars)
        self.away = True

    def replace(self, archives: dict[Side, TreeArchive], tars: Sequence[Any]) -> None:
        """A new Card in the place of one that died."""
        self._actor = self._start()
        self.take_over(archives, tars)

    def take_over(self, archives: dict[Side, TreeArchive], tars: Sequence[Any]) -> None:
        """Let a Card that has not been asked anything yet unpack the trees and name its device."""
        self.idle()
        self._call(self._actor.take_over.remote(archives, self.named, *tars))

    def answer(self) -> Any:
        """The answer of the call it is busy with, which is no lease; or Ray's error."""
        return self._ray.get(self.reply)

    def idle(self) -> None:
        """It is done with its call."""
        self.reply = self.lease = self.doing = None
        self.unheard = False
        self.outstanding, self.disturbed = {}, []
        self.leaving = self.away = False

    def kill(self) -> None:
        """End its process at once; its child dies with it."""
        self._ray.kill(self._actor, no_restart=True)

    def _call(self, reply: Any) -> None:
        self.reply, self.unheard = reply, True
        self.heard_at = time.monotonic()

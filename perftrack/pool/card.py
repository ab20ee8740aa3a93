"""The Card: keeper of one device. It runs children, never CUDA, and has no notion of attempts.

A plain class; the host makes a Ray actor of it.
"""

import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path

import msgspec

from perftrack.errors import PoolError
from perftrack.measure.child_environment import cache_key, child_environment
from perftrack.measure.wire import Bye, Done, Hello, Message, Order, Phase
from perftrack.model import Backend, DeviceReport, Job, Side, TreeArchive
from perftrack.pool.blame import DEVICE_ERRORS, Ending, Party, classify, describe
from perftrack.pool.child_process import Child, Limits
from perftrack.pool.host_memory import HostMemory, here
from perftrack.pool.lease import CardEvent, Doing, Finished, Lease, Lost, Named, encode
from perftrack.pool.tree_cache import cache_folder, evict, unpack

CHILD = ("-P", "-s", "-m", "perftrack.measure.child")
"""Arguments of Python that start a measuring child."""

_BUSY_LOOKS, _BUSY_PAUSE_S = 3, 2.0
"""The driver may show a killed process for a moment: a device counts as busy only after these looks."""

_TELL_S = 5.0
"""Phases of a job that follow each other faster are not told: each event costs the coordinator time."""


class CardSetup(msgspec.Struct, frozen=True, kw_only=True):
    """How a Card works; the same for its replacement."""

    backend: Backend
    cores: int
    """CPU cores of its share of the node: the threads a child may use."""
    scratch: str
    """Folder for the children's own folders; empty: the system's."""
    child: tuple[str, ...] = CHILD
    limits: Limits = Limits()


class Card:
    """One device and, while it works, one child."""

    def __init__(self, setup: CardSetup, memory: HostMemory | None = None) -> None:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where it is ignored, every exit code reads 0
        self._setup = setup
        self._memory = memory or here()
        self._trees: dict[Side, TreeArchive] = {}
        self._roots: dict[Side, Path] = {}

    def identify(self) -> Named:
        """What device this is, by a child that does nothing else; PoolError where it cannot say."""
        with self._scratch() as folder, self._child(Order(backend=self._setup.backend), Path(folder)) as child:
            for message in child.messages():
                if isinstance(message, Hello):
                    return Named(report=message.report, visible=_visible())
        ending = child.ending or Ending(kind="protocol", said="it named no device")
        raise PoolError(f"a worker on {socket.gethostname()} cannot name its device: {describe(ending)}")

    def hold_trees(self, archives: dict[Side, TreeArchive], *tars: bytes) -> None:
        """Unpack the files of each side (`tars` in their order); PoolError where they are not what they should be."""
        for (side, archive), data in zip(archives.items(), tars, strict=True):
            self._roots[side] = unpack(archive, data, cache_folder("trees"))
            self._trees[side] = archive

    def take_over(self, archives: dict[Side, TreeArchive], before: Named | None, *tars: bytes) -> Named:
        """Hold the trees and name the device. `before`: what a Card that died on this node had.

        The same device need not be asked for its name again: each child of a lease does that, and measures no other.
        """
        self.hold_trees(archives, *tars)
        return before if before is not None and before.visible == _visible() else self.identify()

    def tell(self, lease: Lease) -> Iterator[bytes]:
        """`run`, in as few messages as can be: each costs the coordinator more than all else that it does for a job.

        The end of a job is told with the beginning of the next one, which follows at once, or after a pause.
        """
        untold: list[CardEvent] = []
        for event in self.run(lease):
            if event is not None:
                untold.append(event)
            if untold and not isinstance(event, Finished):
                yield encode(untold)
                untold.clear()
        if untold:
            yield encode(untold)

    def run(self, lease: Lease) -> Iterator[CardEvent | None]:
        """Every job of the lease ends as Finished or Lost, each as soon as it is known; None is a pause."""
        left = {(job.case.suite, job.case.key): job for job in lease.jobs}
        looks = _BUSY_LOOKS
        while left:
            looks -= 1
            if (yield from self._one_child(lease, left, patient=looks > 0)):
                yield None
                time.sleep(_BUSY_PAUSE_S)

    def _one_child(
        self, lease: Lease, left: dict[tuple[str, str], Job], *, patient: bool
    ) -> Generator[CardEvent | None, None, bool]:
        """One child for all that is left; takes out of `left` what it finished and what ended it.

        True where the device was busy and it is worth looking again.
        """
        order = self._order(lease, left.values())
        talk = _Talk(left, lease.device_uuid)
        try:
            with self._scratch() as folder, self._child(order, Path(folder)) as child:
                for message in child.messages():
                    yield from talk.hear(message)
                    if talk.refusal is not None:
                        break
                ending = talk.refusal or child.ending
        except OSError as error:
            ending = Ending(kind="start", said=str(error))
        if patient and talk.busy:
            return True
        if ending is not None or left:
            yield from talk.end(ending or Ending(kind="protocol", said=f"{len(left)} jobs were not done"))
        return False

    def _order(self, lease: Lease, jobs: Iterable[Job]) -> Order:
        return Order(
            backend=lease.backend,
            trees={side: str(root) for side, root in self._roots.items()},
            suite_paths=lease.suite_paths,
            method=lease.method,
            seed=lease.seed,
            round=lease.round,
            jobs=tuple(jobs),
            device_uuid=lease.device_uuid,
        )

    def _scratch(self) -> tempfile.TemporaryDirectory[str]:
        return tempfile.TemporaryDirectory(
            prefix="perftrack-child-", dir=self._setup.scratch or None, ignore_cleanup_errors=True
        )

    def _child(self, order: Order, folder: Path) -> Child:
        caches = cache_folder("kernels") / cache_key(archive.sha256 for archive in self._trees.values())
        if not caches.is_dir():
            evict(caches.parent)
        caches.mkdir(exist_ok=True)
        os.utime(caches)
        environment = child_environment(
            os.environ,
            scratch=folder / "home",
            caches=caches,
            cores=self._setup.cores,
            gpu=self._setup.backend == "cuda",
        )
        for name in ("home", "work"):
            (folder / name).mkdir()
        command = [sys.executable, *self._setup.child]
        return Child(command, order, environment, folder / "work", self._setup.limits, self._memory)


def _visible() -> str:
    return os.environ.get("CUDA_VISIBLE_DEVICES", "")


class _Talk:
    """What one child says, turned into events; knows which job is running."""

    def __init__(self, left: dict[tuple[str, str], Job], device_uuid: str) -> None:
        self.refusal: Ending | None = None
        """The device or the child must not be used any more."""
        self.busy = False
        self._left = left
        self._device_uuid = device_uuid
        self._suite = self._case_key = ""
        self._done = 0
        self._told_s = time.monotonic()
        self._mark()

    def hear(self, message: Message | None) -> Iterator[CardEvent | None]:
        match message:
            case None:
                yield None
            case Hello(report=report):
                self.refusal = self._objection(report)
            case Phase():
                begins = message.case_key != self._case_key
                if begins:
                    self._mark()
                self._suite, self._case_key = message.suite, message.case_key
                now_s = time.monotonic()
                # also of an import, several of which may follow each other: who is silent for too long is ended
                if (begins and message.case_key) or now_s - self._told_s >= _TELL_S:
                    self._told_s = now_s
                    yield Doing(suite=message.suite, case_key=message.case_key, what=message.what)
            case Done():
                yield from self._finish(message)
            case Bye():
                pass

    def _finish(self, message: Done) -> Iterator[CardEvent]:
        job = self._left.pop((message.result.suite, message.result.case_key), None)
        if job is None:
            self.refusal = Ending(
                kind="protocol", said=f"a result of {message.result.case_key}, which was not asked for"
            )
            return
        self._done += 1
        self._suite = self._case_key = ""
        self._mark()
        if message.cuda_error in DEVICE_ERRORS:
            self.refusal = Ending(kind="device", cuda_error=message.cuda_error, said=message.result.message)
        if message.intrusion:
            self.busy, self.refusal = True, Ending(kind="device", said=message.result.message)
        result = msgspec.structs.replace(
            message.result, device_class=job.device_class, round=job.round, attempt=job.attempt
        )
        yield Finished(result=result, cuda_error=message.cuda_error)

    def end(self, ending: Ending) -> Iterator[Lost]:
        """Take out of what is left the jobs that this ending concerns."""
        keys = self._concerned(ending)
        jobs = tuple(self._left.pop(key) for key in keys)
        if jobs:
            wall_s = time.monotonic() - self._began
            yield Lost(jobs=jobs, ending=ending, started_us=self._began_us, wall_s=wall_s)

    def _concerned(self, ending: Ending) -> list[tuple[str, str]]:
        if classify(ending).party is Party.DEVICE:
            return list(self._left)
        if (self._suite, self._case_key) in self._left:
            return [(self._suite, self._case_key)]
        of_suite = [key for key in self._left if key[0] == self._suite]  # its import ended the child
        # Between two jobs nobody is to blame, and the rest gets a fresh child; without any progress it must stop.
        return of_suite if of_suite or self._done else list(self._left)

    def _objection(self, report: DeviceReport) -> Ending | None:
        problem = report.problem
        self.busy = bool(problem)
        if not problem and self._device_uuid and report.device.uuid != self._device_uuid:
            problem = f"it is device {report.device.uuid}, not {self._device_uuid}"
        return Ending(kind="device", said=problem) if problem else None

    def _mark(self) -> None:
        self._began, self._began_us = time.monotonic(), time.time_ns() // 1000

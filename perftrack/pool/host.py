"""The pool host: the process that drives Ray, so that Ray can spoil neither the command's output nor its exit.

`python -P -s -m perftrack.pool.host` reads requests on stdin and answers on its original stdout; whatever Ray
or anybody else prints goes to stderr, which is a log file. It ends when its client does.
"""

import os
import shutil
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from types import ModuleType
from typing import Any

import msgspec

from perftrack.errors import PerftrackError, PoolError, UsageError
from perftrack.model import Side, TreeArchive
from perftrack.pool.card import CardSetup
from perftrack.pool.child_process import die_with_parent
from perftrack.pool.dispatch import Dispatcher, Plan
from perftrack.pool.inbox import Inbox
from perftrack.pool.membership import Membership
from perftrack.pool.ray_session import ray_session
from perftrack.pool.roster import gather
from perftrack.pool.talk import Broken, Note, Ready, Reply, Request, Start, Work
from perftrack.pool.worker import Place, Worker

_LAST_S = 15.0
"""An orderly end takes 2 s; after this long everything of this session is killed."""


class Line:
    """Both directions of the talk with the client, and the wish to stop."""

    def __init__(self) -> None:
        self._out = os.dup(1)
        os.dup2(2, 1)
        self._requests: SimpleQueue[Request | None] = SimpleQueue()
        self._stop = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()

    def stopped(self) -> bool:
        """The client is gone or has had enough."""
        return self._stop.is_set()

    def wait_for_stop(self) -> None:
        """Block until somebody wishes to stop."""
        self._stop.wait()

    def stop(self, *_: object) -> None:
        """Wish to stop; also a signal's handler."""
        self._stop.set()
        self._requests.put(None)

    def next(self) -> Request | None:
        """The next request; None at the end."""
        return None if self.stopped() else self._requests.get()

    def say(self, reply: Reply) -> None:
        """Tell the client; a client that does not listen any more stops the host."""
        data = msgspec.json.encode(reply) + b"\n"
        try:
            while data:
                data = data[os.write(self._out, data) :]
        except BrokenPipeError:
            self.stop()

    def _read(self) -> None:
        decoder = msgspec.json.Decoder(Request)
        for line in sys.stdin.buffer:
            self._requests.put(decoder.decode(line))
        self.stop()


def _end_for_sure(line: Line, folder: Path) -> None:
    """Whatever still hangs when the client has been gone for a while is killed, with the folder of its sockets."""

    def wait() -> None:
        line.wait_for_stop()
        threading.Event().wait(_LAST_S)
        shutil.rmtree(folder, ignore_errors=True)
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=wait, daemon=True).start()


def serve(line: Line, start: Start) -> None:
    """From Ray's start to its end."""
    folder = Path(start.folder)
    scratch = folder / "work" if start.address == "local" else None
    if scratch:
        scratch.mkdir()

    def setup(place: Place) -> CardSetup:
        return CardSetup(
            backend=place.backend,
            cores=place.cores,
            scratch=str(scratch or ""),
            child=start.child,
            limits=start.limits,
        )

    with ray_session(start.address, folder) as ray:
        signal.signal(signal.SIGTERM, line.stop)  # Ray has put its own there
        workers = gather(ray, start.want, setup=setup, limits=start.limits, emit=line.say, gives_way=start.gives_way)
        try:
            line.say(Ready(reports=tuple(worker.report for worker in workers if worker.report)))
            gives_way = start.gives_way and start.address != "local"
            _work(ray, line, start, workers, Membership(ray, workers, setup, gives_way=gives_way))
        finally:
            for worker in workers:
                worker.kill()


def _work(ray: ModuleType, line: Line, start: Start, workers: list[Worker], membership: Membership) -> None:
    tars: list[Any] = []

    def replace(worker: Worker) -> None:
        worker.replace(start.trees, tars)

    def ask_again(worker: Worker) -> None:
        worker.ask_again(start.trees, tars)

    def recruit(worker: Worker) -> None:
        worker.take_over(start.trees, tars)

    plan = Plan(suite_paths=start.suite_paths, methods=start.methods, seed=start.seed, limits=start.limits)
    dispatcher = Dispatcher(
        ray,
        workers,
        plan,
        inbox=Inbox(ray),
        emit=line.say,
        stopped=line.stopped,
        membership=membership,
        replace=replace,
        recruit=recruit,
        ask_again=ask_again,
    )
    while isinstance(request := line.next(), Work):
        if not tars:
            tars += [ray.put(_read(side, archive)) for side, archive in start.trees.items()]
            _ship(ray, start.trees, tars, workers, line.say)
        dispatcher.run(request.jobs)


def _read(side: Side, archive: TreeArchive) -> bytes:
    try:
        return Path(archive.path).read_bytes()
    except OSError as error:
        raise PoolError(f"cannot read the archive of the {side} tree, {archive.path}: {error.strerror}") from error


def _ship(
    ray: ModuleType,
    trees: dict[Side, TreeArchive],
    tars: list[Any],
    workers: list[Worker],
    emit: Callable[[Note], None],
) -> None:
    """Every usable worker unpacks and checks the trees before the first lease.

    One that cannot is taken out of `workers`; PoolError where none is left.
    """
    asked = [worker for worker in workers if worker.usable]
    for worker in asked:
        worker.hold_trees(trees, tars)
    problems: list[str] = []
    for worker in asked:
        try:
            worker.answer()
        except ray.exceptions.RayError as error:
            cause = getattr(error, "cause", None)  # of a Card's own error
            why = str(cause or f"it was lost while it unpacked the trees ({type(error).__name__})")
            problems.append(f"device {worker.uuid} ({worker.device_class}) on {worker.place.node} is left out: {why}")
            workers.remove(worker)
            worker.kill()
        else:
            worker.idle()
    if len(problems) == len(asked):
        raise PoolError(f"no device can measure: {'; '.join(problems)}")
    for problem in problems:
        emit(Note(text=problem))


def main() -> None:
    """Serve one client."""
    die_with_parent(signal.SIGTERM)
    line = Line()
    signal.signal(signal.SIGTERM, line.stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the client's; it ends the pool in order
    start = line.next()
    if not isinstance(start, Start):
        return
    _end_for_sure(line, Path(start.folder))
    try:
        serve(line, start)
    except PerftrackError as error:
        line.say(Broken(error="usage" if isinstance(error, UsageError) else "pool", text=str(error)))
    except Exception:  # noqa: BLE001 - told apart from Ray's own ends, which have other codes
        traceback.print_exc()
        sys.exit(os.EX_SOFTWARE)
    finally:
        if line.stopped():  # else the client still wants to read the log
            shutil.rmtree(start.folder, ignore_errors=True)


if __name__ == "__main__":
    main()

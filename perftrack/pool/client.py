"""The pool as the command sees it: devices, and jobs that turn into results. Ray is in another process."""

import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import msgspec

from perftrack.errors import PoolError, UsageError
from perftrack.measure.child_environment import import_path
from perftrack.model import Backend, DeviceReport, Job, JobResult, Method, Side, TreeArchive
from perftrack.pool.card import CHILD
from perftrack.pool.child_process import Limits
from perftrack.pool.jobs import shown
from perftrack.pool.ray_session import listens
from perftrack.pool.talk import Broken, Drained, Joined, Note, Progress, Ready, Reply, Request, Result, Start, Work

Event = JobResult | Progress | Note | Joined
"""What a run yields. A job result that is repeated is followed by one with a higher attempt; the last one counts."""

_CLOSE_S = 12.0
_ENDED_BY_RAY = frozenset({"exit code 1", f"signal {int(signal.SIGABRT)}"})
"""How Ray, without an exception, ends a driver that has lost its head; our own faults end it with another code."""

_LOG_LINES = 8
_MAX_FOLDER = 40
"""Ray's sockets lie 65 characters deeper, and a socket's path has at most 107."""


class Pool:
    """Devices that measure. A context manager; call it from the main thread, whose end also ends the pool.

    `address`: None (RAY_ADDRESS, else a Ray of its own), `local`, or `host:port` of a cluster this machine is in.
    `want`: device class (glob), `cpu`, or empty for every GPU there is, else the CPU.
    `gives_way`: between jobs, to pools that do not and that wait for a device of the same cluster.
    """

    def __init__(
        self,
        *,
        address: str | None,
        want: str,
        trees: dict[Side, TreeArchive],
        suite_paths: Sequence[str],
        methods: dict[Backend, Method],
        seed: int,
        case_timeout_s: float,
        child: Sequence[str] = CHILD,
        limits: Limits | None = None,
        gives_way: bool = False,
    ) -> None:
        limits = limits or Limits(case_s=case_timeout_s, silence_s=max(60.0, case_timeout_s / 2))
        self._address = resolve_address(address)
        self._start = Start(
            address=self._address,
            want=want,
            trees=trees,
            suite_paths=tuple(suite_paths),
            methods=methods,
            seed=seed,
            folder="",
            limits=limits,
            gives_way=gives_way,
            child=tuple(child),
        )
        self._folder = Path()
        self._host: subprocess.Popen[bytes] | None = None
        self._reports: list[DeviceReport] | None = None
        self._notes: list[Note] = []
        self._decoder = msgspec.json.Decoder(Reply)

    def __enter__(self) -> Self:
        self._folder = Path(tempfile.mkdtemp(prefix="pt-", dir=_short_folder()))
        with (self._folder / "host.log").open("wb") as log:
            self._host = subprocess.Popen(
                [sys.executable, "-P", "-s", "-m", "perftrack.pool.host"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, "PYTHONPATH": import_path(os.environ)},
                start_new_session=True,  # Ctrl-C is for the client alone, which then ends the host
            )
        self._say(msgspec.structs.replace(self._start, folder=str(self._folder)))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def devices(self) -> list[DeviceReport]:
        """The devices that match, also those that must not be used (`problem`). Waits until they are known.

        UsageError where none matches, PoolError where none can be used.
        """
        while self._reports is None:
            match self._hear():
                case Ready(reports=reports):
                    self._reports = list(reports)
                case Note() as note:
                    self._notes.append(note)
                case other:
                    raise PoolError(f"the pool host said {type(other).__name__} before it was ready")
        return self._reports

    def run(self, jobs: Sequence[Job]) -> Iterator[Event]:
        """Do the jobs; every attempt is yielded when it ends. Stopping early ends the pool."""
        self.devices()
        done = False
        try:
            yield from self._notes
            self._notes = []
            self._say(Work(jobs=tuple(jobs)))
            while not isinstance(reply := self._hear(), Drained):
                match reply:
                    case Result(result=result):
                        yield result
                    case Progress() | Note() | Joined():
                        yield reply
                    case _:
                        raise PoolError(f"the pool host said {type(reply).__name__} during a run")
            done = True
        finally:
            if not done:
                self.close()

    def close(self) -> None:
        """End the host, Ray and every child; nothing of them is left afterwards."""
        if (host := self._host) is None:
            return
        self._host = None
        try:
            for pipe in (host.stdin, host.stdout):
                with suppress(BrokenPipeError):
                    _opened(pipe).close()
            _exit_code(host, _CLOSE_S)
        finally:
            # Also after an orderly end: some of Ray's agents outlive it for a minute. The host is not waited for
            # yet, so the number of its group cannot belong to anybody else.
            os.killpg(host.pid, signal.SIGKILL)
            host.wait()
            shutil.rmtree(self._folder, ignore_errors=True)

    def _say(self, request: Request) -> None:
        pipe = _opened(self._alive().stdin)
        try:
            pipe.write(msgspec.json.encode(request) + b"\n")
            pipe.flush()
        except BrokenPipeError as error:
            raise self._lost() from error

    def _hear(self) -> Reply:
        line = _opened(self._alive().stdout).readline()
        if not line.endswith(b"\n"):
            raise self._lost()
        reply = self._decoder.decode(line)
        if isinstance(reply, Broken):
            raise (UsageError if reply.error == "usage" else PoolError)(reply.text)
        return reply

    def _alive(self) -> subprocess.Popen[bytes]:
        if self._host is None:
            raise PoolError("the pool is closed")
        return self._host

    def _lost(self) -> PoolError:
        """The host is gone: its exit and the last lines of its log."""
        code = _exit_code(self._alive(), _CLOSE_S)
        if self._address != "local" and code in _ENDED_BY_RAY:
            why = "does not answer" if listens(self._address) else "has been restarted and does not know this run"
            return PoolError(f"the head of the Ray cluster at {self._address} {why}")
        try:
            lines = (self._folder / "host.log").read_text(errors="replace").strip().splitlines()[-_LOG_LINES:]
        except OSError:
            lines = []
        said = "\n".join(["; it last said:", *lines]) if lines else ""
        return PoolError(f"the pool host ended by itself ({code or 'it does not end'}){said}")


def resolve_address(address: str | None) -> str:
    """`local` or `host:port`; UsageError for the forms that are not served."""
    text = (address or os.environ.get("RAY_ADDRESS", "") or "local").strip()
    place = shown(text)
    if text.startswith("ray://"):
        raise UsageError(
            f"Ray Client addresses are not supported ({place}): give host:port on a machine of the cluster"
        )
    if "://" in text:
        raise UsageError(f"the address {place} is not supported: give host:port on a machine of the cluster")
    if place != text:
        raise UsageError(
            f"the Ray address of {place} has a user's name: give host:port, and the token in RAY_AUTH_TOKEN"
        )
    host, _, port = text.rpartition(":")
    if text != "local" and not (host and port.isdecimal()):
        raise UsageError(f"the Ray address {text!r} is not host:port (or `local`)")
    return text


def _exit_code(host: subprocess.Popen[bytes], timeout_s: float) -> str:
    """How it ended, without waiting for it in the sense of the system; empty where it has not after `timeout_s`."""
    pidfd = os.pidfd_open(host.pid)
    try:
        if not select.select([pidfd], [], [], timeout_s)[0]:
            return ""
    finally:
        os.close(pidfd)
    end = os.waitid(os.P_PID, host.pid, os.WEXITED | os.WNOWAIT)
    if end is None:
        return ""
    return f"exit code {end.si_status}" if end.si_code == os.CLD_EXITED else f"signal {end.si_status}"


def _short_folder() -> str | None:
    return None if len(tempfile.gettempdir()) <= _MAX_FOLDER else "/tmp"  # noqa: S108 - a folder of its own inside


def _opened(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None  # noqa: S101 - opened as a pipe
    return pipe

"""One measuring child: started, listened to, limited in time, and its exact end told.

The child's exit is seen through a pidfd, never through the end of its pipes: a grandchild may hold those
open. Whatever it prints is read and thrown away but for the last lines.
"""

import ctypes
import os
import resource
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import msgspec

from perftrack.measure.wire import Bye, Done, Hello, Message, Order, Phase
from perftrack.pool.blame import Ending
from perftrack.pool.host_memory import HostMemory, Shortage

MAX_LINE_BYTES = 16 * 2**20
"""A message larger than this ends the child: the largest honest result has a few MB."""

MAX_STDERR_BYTES = 2**20

PAUSE_S = 0.05
"""A child that has said nothing for this long after a word has paused."""

_SAID_LINES, _SAID_CHARACTERS = 12, 2000
_READ_BYTES = 1 << 16
_FAULT = "Fatal Python error"

_PR_SET_PDEATHSIG = 1
_prctl = ctypes.CDLL(None, use_errno=True).prctl
_decoder = msgspec.json.Decoder(Message)


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds after which a child counts as hung; all by the monotonic clock."""

    start_s: float = 120.0
    """From the start to the first word, and for each import of a suite."""
    silence_s: float = 60.0
    """Between two signs of life."""
    case_s: float = 120.0
    """For one job, all phases together."""
    exit_s: float = 10.0
    """From the last word to the exit."""
    reap_s: float = 30.0
    """From SIGKILL to the end; a child that takes longer hangs in the driver."""

    @property
    def longest_silence_s(self) -> float:
        """The longest time without a word from a Card whose child may still be fine."""
        return max(self.start_s, self.silence_s, self.exit_s) + self.reap_s


def die_with_parent(number: int = signal.SIGKILL) -> None:
    """Ask the kernel for `number` when the thread that started this process ends."""
    _prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)


class _Watch:
    """What the child is doing and until when it may."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.phase = self.suite = self.case_key = ""
        self.finished = False
        self.cuda_error = 0
        self._case_end = float("inf")
        self._set(limits.start_s)

    def note(self, message: Message) -> None:
        """Take a sign of life into account."""
        match message:
            case Hello():
                pass
            case Phase():
                if (message.suite, message.case_key) != (self.suite, self.case_key):
                    self._case_end = time.monotonic() + self.limits.case_s
                self.phase, self.suite, self.case_key = message.what, message.suite, message.case_key
                self._set(self.limits.start_s if message.what == "import" else self.limits.silence_s)
            case Done():
                self.cuda_error = message.cuda_error
                self.suite = self.case_key = ""
                self._set(self.limits.silence_s)
            case Bye():
                self.finished = True
                self._set(self.limits.exit_s)

    def _set(self, seconds: float) -> None:
        now = time.monotonic()
        case_end = self._case_end if self.case_key and self.phase != "import" else float("inf")
        self.deadline = min(now + seconds, case_end)
        self.limit_s = seconds if now + seconds <= case_end else self.limits.case_s


class Child:
    """A child at work on one order. A context manager: nothing of it is left afterwards."""

    def __init__(
        self,
        command: Sequence[str],
        order: Order,
        environment: Mapping[str, str],
        folder: Path,
        limits: Limits,
        memory: HostMemory,
    ) -> None:
        self.ending: Ending | None = None
        """Why it ended too early; None while it runs and after a proper end."""
        self._watch = _Watch(limits)
        self._limits = limits
        self._memory, self._kills_before, self._peak_bytes = memory, memory.kills(), 0
        self._said = bytearray()
        self._line = bytearray()
        self._killed_for: Ending | None = None
        self._pauses_s = float("inf")
        with tempfile.TemporaryFile() as stdin:
            stdin.write(msgspec.json.encode(order))
            stdin.seek(0)
            self._process = subprocess.Popen(
                command,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=folder,
                env=dict(environment),
                process_group=0,  # so that what it leaves behind can be ended with it
                preexec_fn=_before_exec,  # noqa: PLW1509 - calls C only; nothing else dies with the parent for sure
            )
        self._pidfd = os.pidfd_open(self._process.pid)
        self._poll = select.poll()
        for descriptor in (self._pidfd, self._stdout.fileno(), self._stderr.fileno()):
            self._poll.register(descriptor, select.POLLIN)
        for pipe in (self._stdout, self._stderr):
            os.set_blocking(pipe.fileno(), False)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.returncode is None:
            self._reap()
        os.close(self._pidfd)
        self._stdout.close()
        self._stderr.close()

    def messages(self) -> Iterator[Message | None]:
        """What it says, as it says it, until it has ended; then `ending` is set. None: it has paused after a word."""
        exited = False
        while not exited:
            ready = [descriptor for descriptor, _ in self._poll.poll(self._poll_ms())]
            exited = self._pidfd in ready
            for descriptor in ready:
                if descriptor == self._stderr.fileno():
                    self._read_stderr(until_empty=False)
                elif descriptor == self._stdout.fileno():
                    yield from self._read_messages(until_empty=False)
            if time.monotonic() >= self._pauses_s:
                self._pauses_s = float("inf")
                yield None
            if not exited and self._killed_for is None and time.monotonic() >= self._watch.deadline:
                self._killed_for = Ending(kind="time-out", seconds=self._watch.limit_s)
            if self._killed_for is not None and not exited:
                break
        reaped = self._reap()
        yield from self._read_messages(until_empty=True)
        self._read_stderr(until_empty=True)
        self.ending = self._judge() if reaped else Ending(kind="device", said="the killed process does not end")

    @property
    def _stdout(self) -> IO[bytes]:
        assert self._process.stdout is not None  # noqa: S101 - opened as a pipe above
        return self._process.stdout

    @property
    def _stderr(self) -> IO[bytes]:
        assert self._process.stderr is not None  # noqa: S101 - opened as a pipe above
        return self._process.stderr

    def _poll_ms(self) -> float:
        return max(0.0, min(self._watch.deadline, self._pauses_s) - time.monotonic()) * 1000 + 1

    def _read(self, pipe: IO[bytes]) -> bytes:
        try:
            data = os.read(pipe.fileno(), _READ_BYTES)
        except BlockingIOError:
            return b""
        if not data:
            with suppress(KeyError):
                self._poll.unregister(pipe.fileno())
        return data

    def _read_stderr(self, *, until_empty: bool) -> None:
        rest = MAX_STDERR_BYTES  # a grandchild could go on for ever
        while (data := self._read(self._stderr)) and rest > 0:
            self._said += data
            del self._said[:-_READ_BYTES]
            rest -= len(data)
            if not until_empty:
                return

    def _read_messages(self, *, until_empty: bool) -> Iterator[Message]:
        rest = MAX_LINE_BYTES
        while self._killed_for is None or until_empty:
            data = self._read(self._stdout)
            rest -= len(data)
            *ends, begin = data.split(b"\n")
            for end in ends:
                line, self._line = self._line + end, bytearray()
                if (message := self._decode(line)) is not None:
                    self._watch.note(message)
                    self._pauses_s = time.monotonic() + PAUSE_S
                    yield message
            self._line += begin
            if len(self._line) > MAX_LINE_BYTES:
                self._refuse(f"a message of more than {MAX_LINE_BYTES >> 20} MB")
            if not data or not until_empty or rest <= 0:
                return

    def _decode(self, line: bytearray) -> Message | None:
        if len(line) > MAX_LINE_BYTES:
            self._refuse(f"a message of more than {MAX_LINE_BYTES >> 20} MB")
            return None
        try:
            return _decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            self._refuse(f"{bytes(line[:80])!r} ({error})")
            return None

    def _refuse(self, what: str) -> None:
        if self._killed_for is None:
            self._killed_for = Ending(kind="protocol", said=what)

    def _reap(self) -> bool:
        """Kill what is left of it and its group and wait; False where it does not end."""
        pid = self._process.pid
        with suppress(ProcessLookupError):
            # the child is not waited for yet, so its number cannot belong to anybody else
            if not select.select([self._pidfd], [], [], 0)[0]:
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
            os.killpg(pid, signal.SIGKILL)
        if not select.select([self._pidfd], [], [], self._limits.reap_s)[0]:
            return False
        _, status, usage = os.wait4(pid, 0)  # the object's own `wait` does not tell what it used
        self._process.returncode = os.waitstatus_to_exitcode(status)
        # never less than what this process held when it began the child: the system lets a count go on over `exec`
        self._peak_bytes = usage.ru_maxrss * 1024
        return True

    def _judge(self) -> Ending | None:
        said, code = self._last_words(), self._process.returncode
        if self._watch.finished:
            return None
        if self._killed_for is not None:
            words = self._killed_for.said or said
            return msgspec.structs.replace(self._killed_for, phase=self._watch.phase, said=words)
        if code < 0:
            short = code == -signal.SIGKILL and self._memory.kills() > self._kills_before
            shortage = Shortage(peak_bytes=self._peak_bytes, total_bytes=self._memory.total_bytes) if short else None
            return Ending(kind="signal", code=-code, phase=self._watch.phase, said=said, shortage=shortage)
        return Ending(kind="exit", code=code, cuda_error=self._watch.cuda_error, phase=self._watch.phase, said=said)

    def _last_words(self) -> str:
        """The last lines of stderr; of a fault handler's report its first, where the crash was."""
        lines = self._said.decode(errors="replace").strip().splitlines()
        fatal = [i for i, line in enumerate(lines) if line.startswith(_FAULT)]
        if fatal:
            return "\n".join(lines[fatal[-1] :][:_SAID_LINES])[:_SAID_CHARACTERS]
        return "\n".join(lines[-_SAID_LINES:])[-_SAID_CHARACTERS:]


def _before_exec() -> None:
    """Between fork and exec: no core file, a niceness of 0 where allowed, and death with the Card."""
    die_with_parent()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, 0)

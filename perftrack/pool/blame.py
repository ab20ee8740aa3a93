"""Whose fault it was: pure rules from how a child or a Card ended to what happens to its jobs.

The Card saw the exit code, these functions judge it; nothing else decides blame. Ray's message texts are
kept for people and never parsed.
"""

import signal
from enum import StrEnum
from typing import Literal

import msgspec

from perftrack.model import Status
from perftrack.pool.host_memory import Shortage

STRIKES = 2
"""A job that ended this many fresh processes is `failed`."""

MAX_FAULTS = 5
"""Repeats of one job after faults of the machine; then it is `infra`."""

MAX_LOSSES = 3
"""A job that was running when this many Cards died kills its host: it is `failed`."""

DEVICE_ERRORS = frozenset({46, 100, 214, 802})
"""CUDA: device unavailable, no device, uncorrectable ECC, system not ready."""

KERNEL_SIGNALS = frozenset(
    {signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGTRAP, signal.SIGSYS}
)


class Party(StrEnum):
    """Who is to blame."""

    KERNEL = "kernel"
    SUITE = "suite"
    DEVICE = "device"
    NODE = "node"
    INFRASTRUCTURE = "infrastructure"


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """How a child or a Card ended before the work was done."""

    kind: Literal["exit", "signal", "time-out", "protocol", "result", "machine", "device", "start", "ray"]
    """`result`, `machine`: the child itself reported `failed` or `infra`. `device`: it refused its device.
    `start`: it could not be started at all. `ray`: the Card is gone."""
    code: int = 0
    """Exit code or signal number."""
    cuda_error: int = 0
    phase: str = ""
    """What was being done; empty before the child's first word."""
    seconds: float = 0.0
    """The limit that a time-out ran into."""
    said: str = ""
    """Last lines of stderr, or the message of the error."""
    ray_error: str = ""
    """Class of Ray's exception."""
    init_failed: bool = False
    """The Card's constructor raised."""
    shortage: Shortage | None = None
    """The system ran out of memory and ended it."""
    suspect: bool = False
    """The job was running when the Card died."""


class Blame(msgspec.Struct, frozen=True, kw_only=True):
    """Party, and whether it counts against the job."""

    party: Party
    strike: bool


class History(msgspec.Struct, kw_only=True):
    """What has befallen one job so far."""

    strikes: int = 0
    faults: int = 0
    losses: int = 0


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What is stored of the attempt, and whether another one follows."""

    status: Status
    again: bool


def classify(ending: Ending) -> Blame:
    """The blame table, row by row."""
    if ending.kind == "ray":
        return Blame(party=Party.NODE if ending.init_failed else Party.INFRASTRUCTURE, strike=False)
    if ending.kind == "start":
        return Blame(party=Party.NODE, strike=False)
    if ending.kind == "device" or ending.cuda_error in DEVICE_ERRORS:
        return Blame(party=Party.DEVICE, strike=False)
    sent = ending.kind == "signal" and ending.code not in KERNEL_SIGNALS  # by somebody: no instruction causes these
    own = ending.shortage is not None and ending.shortage.own
    if ending.kind == "machine" or (sent and not own):
        return Blame(party=Party.INFRASTRUCTURE, strike=False)
    if not ending.phase and ending.kind != "result":
        return Blame(party=Party.NODE, strike=False)
    return Blame(party=Party.SUITE if ending.phase == "import" else Party.KERNEL, strike=True)


def decide(ending: Ending, history: History) -> Decision:
    """Count the ending in `history` and say what becomes of the job."""
    if classify(ending).strike:
        history.strikes += 1
        return Decision(status=Status.FAILED, again=history.strikes < STRIKES)
    history.faults += 1
    history.losses += ending.suspect
    if history.losses >= MAX_LOSSES:
        return Decision(status=Status.FAILED, again=False)
    return Decision(status=Status.INFRA, again=history.faults <= MAX_FAULTS)


def describe(ending: Ending) -> str:
    """One sentence, then what it last said on stderr."""
    where = f" during {ending.phase}" if ending.phase else " before it said what it was doing"
    if ending.kind == "ray":
        where = f" during {ending.phase}" if ending.phase else ""
    text = _what_happened(ending) + where
    return f"{text}: {ending.said}" if ending.said else text


def _what_happened(ending: Ending) -> str:
    if ending.shortage is not None:
        return f"the system ran out of memory and ended the process ({ending.shortage})"
    if ending.kind == "exit" and ending.cuda_error:
        return f"CUDA error {ending.cuda_error} ended the process (exit code {ending.code})"
    return {
        "exit": f"the process ended with exit code {ending.code} and no result",
        "signal": f"the process was ended by {_signal_name(ending.code)}",
        "time-out": f"no end after {ending.seconds:g} s, so the process was killed",
        "protocol": "the process sent something unreadable",
        "result": "the job failed",
        "machine": "the machine failed",
        "device": "the device refused work",
        "start": "the measuring process could not be started",
        "ray": f"the worker was lost ({ending.ray_error})",
    }[ending.kind]


def _signal_name(number: int) -> str:
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"

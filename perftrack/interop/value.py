"""What readers hand out: readings of one measuring session each, and what they could not read."""

from collections.abc import Callable, Iterable
from typing import Literal

import msgspec

from perftrack.model import Device, Environment, Method, Scalar, Status

FormatName = Literal[
    "pytest-benchmark", "google-benchmark", "nvbench", "asv", "github-action-benchmark", "bencher", "go"
]

Role = Literal["sample", "median", "mean", "other"]
"""What a time is: one of its own, or a statistic that its tool drew from the others of the same name."""


class BadRecordError(Exception):
    """A record that says no result; the message names the field, its value and what it should be."""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """One time of one case, as a tool reported it. Times are seconds per call."""

    suite: str
    case: str
    variant: str
    """What is timed, in the tool's own word where it has one: `time`, `real_time`, `cpu_time`, `gpu` …"""
    device: str
    """Key of its session's `devices`."""
    method: str
    """Key of its session's `methods`."""
    record: int
    """Its place in the file, counted from 1."""
    status: Status = Status.OK
    message: str = ""
    role: Role = "sample"
    params: dict[str, Scalar] = {}
    time_s: float | None = None
    """The tool's median, else its mean; None where `status` is not `ok`."""
    samples_s: tuple[float, ...] = ()
    """Raw times, in time order, where the file has them."""
    count: int = 1
    """Raw times that the tool took, whether the file has them or not."""
    calls_per_sample: int = 0


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Where a session's numbers come from, as far as its file says; empty or None is unknown."""

    repo: str = ""
    commit: str = ""
    dirty: bool = False
    branch: str | None = None
    committed_us: int | None = None
    subject: str = ""
    measured_us: int | None = None
    environment: Environment = Environment(entries={})


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a tool: what becomes one stored run."""

    format: FormatName
    identity: str
    """Hex digest; the same for the same content, however often and from wherever it is read."""
    origin: Origin
    devices: dict[str, Device]
    methods: dict[str, Method]
    readings: Callable[[], Iterable[Reading]]
    """Reads them, one by one; to be called once."""


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a file that did not go in, and why."""

    place: str
    """File, and record or byte in it."""
    text: str

    def __str__(self) -> str:
        return f"{self.place}: {self.text}"


class Notes:
    """What a reader has to say of a file. The first of each kind are kept, all are counted."""

    KEPT = 20

    def __init__(self, file: str) -> None:
        self.file = file
        self.bad: list[Problem] = []
        self.bad_count = 0
        self.left_out: list[Problem] = []
        self.left_out_count = 0

    def report(self, record: int | None, text: str, *, at: int | None = None) -> None:
        """A record (counted from 1) that cannot be read, at a byte of the file where it is known."""
        self.bad_count += 1
        if self.bad_count <= self.KEPT:
            self.bad.append(Problem(place=self._place(record, at), text=text))

    def leave_out(self, record: int | None, text: str) -> None:
        """Something readable that perftrack has no place for."""
        self.left_out_count += 1
        if self.left_out_count <= self.KEPT:
            self.left_out.append(Problem(place=self._place(record, None), text=text))

    def _place(self, record: int | None, at: int | None) -> str:
        parts = [self.file]
        if record is not None:
            parts.append(f"record {record}")
        if at is not None:
            parts.append(f"byte {at}")
        return ", ".join(parts)

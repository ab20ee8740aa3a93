"""What the client and the pool host say to each other: JSON lines both ways, on pipes of their own."""

from typing import Literal

import msgspec

from perftrack.model import Backend, DeviceReport, Job, JobResult, Method, Side, TreeArchive
from perftrack.pool.card import CHILD
from perftrack.pool.child_process import Limits


class Start(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="start"):
    """The first request: which cluster, which devices, what they need to know."""

    address: str
    """`local` or `host:port`."""
    want: str
    trees: dict[Side, TreeArchive]
    suite_paths: tuple[str, ...]
    methods: dict[Backend, Method]
    seed: int
    folder: str
    """Folder of the embedded Ray and its workers; whoever ends last removes it."""
    limits: Limits
    gives_way: bool = False
    """To submissions that wait for a device, as a sweep does."""
    child: tuple[str, ...] = CHILD


class Work(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="work"):
    """Do these jobs; answered by events and one Drained."""

    jobs: tuple[Job, ...]


Request = Start | Work


class Ready(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="ready"):
    """Ray is up and each device has been asked who it is."""

    reports: tuple[DeviceReport, ...]


class Result(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="result"):
    """One attempt at one job has ended."""

    result: JobResult


class Progress(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="progress"):
    """What a device is doing now."""

    device_class: str
    device_uuid: str
    case_key: str
    """Or the suite that is being imported."""
    what: str
    """The phase: import, inputs, build, verify, warmup or time."""


class Note(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="note"):
    """Something the user should know, in one sentence."""

    text: str


class Joined(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="joined"):
    """A device that was not there at the start takes part from now on."""

    report: DeviceReport


class Drained(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="drained"):
    """All jobs of the last Work have ended."""


class Broken(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="broken"):
    """The pool cannot go on; the last message."""

    error: Literal["usage", "pool"]
    text: str


Reply = Ready | Result | Progress | Note | Joined | Drained | Broken

"""What a Card and its measuring child say to each other: one order in, JSON lines out.

The order is one JSON document on the child's stdin, up to its end. Each message is one line on a
private pipe; nothing that tracked code prints can get between them.
"""

from typing import Literal

import msgspec

from perftrack.model import Backend, DeviceReport, Job, JobResult, Method, Side

STICKY_EXIT = 86
"""Exit code of a child whose CUDA context is lost; the failing `Done` came before."""

PhaseName = Literal["import", "inputs", "build", "verify", "warmup", "time"]


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """The work of one child: the jobs of one round on one device. No jobs: only say which device this is."""

    backend: Backend
    trees: dict[Side, str] = {}
    """Root folder of each side's tree."""
    suite_paths: tuple[str, ...] = ()
    method: Method = Method()
    seed: int = 0
    round: int = 1
    jobs: tuple[Job, ...] = ()
    device_uuid: str = ""
    """The device that is expected; empty accepts any."""


class Hello(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="hello"):
    """The first message: the device and what stands against using it."""

    report: DeviceReport


class Phase(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="phase"):
    """A sign of life: what is being done now, and for which case (none during `import`)."""

    what: PhaseName
    suite: str = ""
    case_key: str = ""


class Done(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="done"):
    """One job has ended."""

    result: JobResult
    cuda_error: int = 0
    """The CUDA error code that ended it, where there was one."""
    intrusion: str = ""
    """What else works on the device; the child measures nothing more."""


class Bye(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="bye"):
    """The last message of a child that did everything it was asked."""


Message = Hello | Phase | Done | Bye

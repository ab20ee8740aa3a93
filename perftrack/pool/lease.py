"""What a Card is given and what it streams back.

Events travel as bytes: Ray copies them as they are, where it would pickle an object of many parts.
"""

from collections.abc import Sequence

import msgspec

from perftrack.measure.wire import PhaseName
from perftrack.model import Backend, DeviceReport, Job, JobResult, Method
from perftrack.pool.blame import Ending


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs of one round for one Card; as few children as possible do them."""

    backend: Backend
    suite_paths: tuple[str, ...]
    method: Method
    seed: int
    round: int
    jobs: tuple[Job, ...]
    device_uuid: str


class Named(msgspec.Struct, frozen=True, kw_only=True):
    """What device a Card has."""

    report: DeviceReport
    visible: str
    """The Card's CUDA_VISIBLE_DEVICES: on one node it stands for one device."""


class Doing(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A job is in this phase, or a suite is being imported."""

    suite: str
    case_key: str
    """Empty during an import."""
    what: PhaseName


class Finished(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The child gave the result of one job."""

    result: JobResult
    cuda_error: int = 0


class Lost(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Jobs that ended their child, or could not be begun; the Card goes on with the others."""

    jobs: tuple[Job, ...]
    ending: Ending
    started_us: int
    wall_s: float


CardEvent = Doing | Finished | Lost

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(tuple[CardEvent, ...])


def encode(events: Sequence[CardEvent]) -> bytes:
    """Events that are told together."""
    return _encoder.encode(events)


def decode(data: bytes) -> tuple[CardEvent, ...]:
    """What `encode` made bytes of."""
    return _decoder.decode(data)

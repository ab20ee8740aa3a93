"""Devices as other tools describe them, and the methods by which those measure."""

import hashlib

from msgspec.structs import replace

from perftrack.measure.device import device_class, slug
from perftrack.measure.host import plain_model
from perftrack.model import Device, Method

UNKNOWN = "unknown"
"""Device class of a file that says nothing of its machine."""


def cpu(node: str, model: str, cores: int | None) -> Device:
    """A CPU, in the class that perftrack itself gives that model; without a model the class is the host's own."""
    plain = plain_model(model) if model else ""
    shape = f"-{cores}c" if cores else ""
    if not plain and not node:
        return named(f"cpu-{UNKNOWN}{shape}" if shape else UNKNOWN)
    identity = hashlib.sha256(f"{node}\0{plain}\0{cores or 0}".encode()).hexdigest()
    return Device(
        uuid=f"CPU-{identity[:32]}",
        name=plain or f"CPU of {node}",
        backend="cpu",
        device_class=f"cpu-{slug(plain or node)}{shape}",
        node=node,
        memory_bytes=0,
        multiprocessors=cores or 0,
    )


def named(name: str) -> Device:
    """A device of which only a class is known."""
    identity = hashlib.sha256(name.encode()).hexdigest()
    return Device(
        uuid=f"CPU-{identity[:32]}", name=name, backend="cpu", device_class=slug(name), node="", memory_bytes=0
    )


def gpu(
    name: str,
    number: int,
    *,
    memory_bytes: int,
    compute_capability: str,
    multiprocessors: int,
    l2_bytes: int,
    peak_bytes_per_s: float | None,
) -> Device:
    """A GPU that is known by its place in one host: two such files may mean two cards, or one."""
    identity = hashlib.sha256(f"{name}\0{number}\0{memory_bytes}".encode()).hexdigest()
    return Device(
        uuid=f"GPU-imported-{identity[:24]}",
        name=name,
        backend="cuda",
        device_class=device_class(name, memory_bytes) if memory_bytes else slug(name),
        node="",
        memory_bytes=memory_bytes,
        compute_capability=compute_capability,
        multiprocessors=multiprocessors,
        l2_bytes=l2_bytes,
        peak_bytes_per_s=peak_bytes_per_s,
    )


_NO_RULES = Method(
    blocks=0,
    timed_s=0.0,
    case_s=0.0,
    warmup_s=0.0,
    max_warmup_s=0.0,
    min_sample_s=0.0,
    sets=0,
    canary_limit=0.0,
    max_bad_share=0.0,
)
"""Another tool's rules are its own, and not known here."""


def host_clock(name: str) -> Method:
    """A tool's own method by the host's clock, caches as its loop leaves them."""
    return replace(_NO_RULES, name=name, timer="host", cache="hot")


def event_clock(name: str, *, cold: bool) -> Method:
    """A tool's own method by CUDA events."""
    return replace(_NO_RULES, name=name, timer="event", cache="cold" if cold else "hot")

"""The GPU as a device: identity through the PCI bus id, environment, and what stands against using it."""

import os
import sys
from typing import Any

import cupy as cp

from perftrack.errors import InfrastructureError
from perftrack.measure.datasheet import peak_bytes_per_s
from perftrack.measure.device import common_environment, device_class, installed, node_name
from perftrack.measure.nvml import Card
from perftrack.model import Device, DeviceReport, Environment, Scalar

_ORDINAL = 0
"""A worker sees one card; where it sees several, it uses the first that CUDA names."""


def pci_bus_id() -> str:
    """Where the card is; makes no CUDA context. InfrastructureError where CUDA sees none."""
    try:
        count = cp.cuda.runtime.getDeviceCount()
        if count:
            return cp.cuda.runtime.deviceGetPCIBusId(_ORDINAL)
    except cp.cuda.runtime.CUDARuntimeError as error:
        raise InfrastructureError(f"CUDA finds no usable GPU here: {error}") from error
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    hint = f" (CUDA_VISIBLE_DEVICES is {visible!r})" if visible is not None else ""
    raise InfrastructureError(f"CUDA sees no GPU here{hint}; use a machine with one, or -d cpu")


def identify_gpu() -> DeviceReport:
    """The card of this process; call it before anything makes a CUDA context."""
    bus = pci_bus_id()
    card = Card.open(bus)
    problem = card.busy() if card is not None else ""
    device = _device(bus, card)
    entries = {**_environment(), **(card.environment() if card is not None else {})}
    if card is not None:
        card.close()
    return DeviceReport(
        device=device,
        environment=Environment(entries=entries),
        problem=f"{device.name} {device.uuid} is busy: {problem}" if problem else "",
    )


def _device(bus: str, card: Card | None) -> Device:
    properties = cp.cuda.runtime.getDeviceProperties(_ORDINAL)
    attributes = cp.cuda.Device(_ORDINAL).attributes
    name = _text(properties["name"])
    memory = card.memory() if card is not None and "MIG" not in name else None
    total = int(memory.total if memory is not None else properties["totalGlobalMem"])
    return Device(
        uuid=_uuid(bus, name, card, properties),
        name=name,
        backend="cuda",
        device_class=device_class(name, total),
        node=node_name(),
        memory_bytes=total,
        compute_capability=f"{properties['major']}.{properties['minor']}",
        multiprocessors=int(attributes["MultiProcessorCount"]),
        l2_bytes=int(attributes["L2CacheSize"]),
        peak_bytes_per_s=peak_bytes_per_s(name),
    )


def _uuid(bus: str, name: str, card: Card | None, properties: dict[str, Any]) -> str:
    """NVML's UUID of the card; CUDA's own for a part of a card (MIG) or without NVML; else its place."""
    if card is not None and "MIG" not in name and (found := card.uuid()):
        return found
    raw = properties.get("uuid")
    if isinstance(raw, bytes) and len(raw) == 16:
        digits = raw.hex()
        kind = "MIG" if "MIG" in name else "GPU"
        return f"{kind}-{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
    return f"PCI-{bus}"


def _text(value: bytes | str) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _environment() -> dict[str, Scalar]:
    major, minor = cp.cuda.nvrtc.getVersion()
    entries: dict[str, Scalar] = {
        **common_environment(),
        **installed("ml_dtypes"),
        "cupy": cp.__version__,
        "cuda_runtime": int(cp.cuda.runtime.runtimeGetVersion()),
        "cuda_driver": int(cp.cuda.runtime.driverGetVersion()),
        "nvrtc": f"{major}.{minor}",
        "platform": sys.platform,
    }
    for name in ("CUPY_ACCELERATORS", "CUPY_TF32"):
        if os.environ.get(name):
            entries[name.lower()] = os.environ[name]
    return entries

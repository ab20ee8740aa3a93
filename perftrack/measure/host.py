"""The CPU as a device: its identity, caches, memory and environment."""

import hashlib
import os
import platform
import re
from pathlib import Path

from perftrack.measure.device import common_environment, installed, node_name, slug
from perftrack.model import Device, DeviceReport, Environment, Scalar

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
_MIB = 1 << 20
_FALLBACK_CACHE = 32 * _MIB


def identify_cpu() -> DeviceReport:
    """This machine's CPU, as far as this process may use it."""
    model, cores = _model(), len(os.sched_getaffinity(0))
    identity = hashlib.sha256(f"{node_name()}\0{model}\0{cores}".encode()).hexdigest()
    device = Device(
        uuid=f"CPU-{identity[:32]}",
        name=model,
        backend="cpu",
        device_class=f"cpu-{slug(model)}-{cores}c",
        node=node_name(),
        memory_bytes=_meminfo("MemTotal"),
        multiprocessors=cores,
        l2_bytes=last_level_cache(),
    )
    return DeviceReport(device=device, environment=Environment(entries=_environment()))


def last_level_cache() -> int:
    """Bytes of the largest cache that the first core sees."""
    sizes = [_size(_read(index / "size")) for index in _CACHES.glob("index*") if _read(index / "type") != "Instruction"]
    return max(sizes, default=0) or _FALLBACK_CACHE


def available_bytes() -> int:
    """Memory that new arrays may take, the control group's limit included."""
    free = _meminfo("MemAvailable")
    limit, used = _read(Path("/sys/fs/cgroup/memory.max")), _read(Path("/sys/fs/cgroup/memory.current"))
    return min(free, int(limit) - int(used)) if limit.isdigit() and used.isdigit() else free


def _environment() -> dict[str, Scalar]:
    entries: dict[str, Scalar] = {
        **common_environment(),
        **installed("numba"),
        "kernel": platform.release(),
        "nice": os.nice(0),
        "cores": len(os.sched_getaffinity(0)),
    }
    for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
        if os.environ.get(name):
            entries[name.lower()] = os.environ[name]
    if governor := _read(_GOVERNOR):
        entries["governor"] = governor
    return entries


def _model() -> str:
    for line in _read(Path("/proc/cpuinfo")).splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return plain_model(value)
    return platform.machine()


def plain_model(text: str) -> str:
    """A CPU's model as /proc/cpuinfo and other tools write it, without trade marks, clock and core count."""
    plain = re.sub(r"\((R|TM)\)|\bCPU\b|@.*|\d+-Core Processor", " ", text, flags=re.IGNORECASE)
    return " ".join(plain.split())


def _meminfo(key: str) -> int:
    for line in _read(Path("/proc/meminfo")).splitlines():
        name, _, value = line.partition(":")
        if name == key:
            return int(value.split()[0]) * 1024
    return 0


def _size(text: str) -> int:
    units = {"K": 1024, "M": _MIB}
    return int(text[:-1]) * units[text[-1]] if text[:-1].isdigit() and text[-1] in units else 0


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""

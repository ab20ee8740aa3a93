"""Which device this process measures on, and what its environment is."""

import importlib.metadata
import importlib.util
import math
import platform
import re
import socket
from typing import Any

import numpy as np

import perftrack
from perftrack.measure.nvml import gpu_names as gpu_names  # noqa: PLC0414 - part of this module's face
from perftrack.model import Backend, Device, DeviceReport, Environment, Scalar

_GIB = 1 << 30


def choose_backend() -> Backend:
    """`cuda` where CuPy sees a device, else `cpu`."""
    if importlib.util.find_spec("cupy") is None:
        return "cpu"
    import cupy  # noqa: PLC0415 - slow, and only where it is installed

    return "cuda" if cupy.is_available() else "cpu"


def device_class(name: str, memory_bytes: int) -> str:
    """Model and memory, e.g. `NVIDIA-H200-141G`: whole GiB, rounded up, which gives the sizes that are sold.

    A driver keeps a little of the memory for itself: an H200 has 140.4 GiB, an H100 79.6.
    """
    return f"{slug(name)}-{math.ceil(memory_bytes / _GIB)}G"


def slug(text: str) -> str:
    """`text` with letters, digits and dots kept, and every run of anything else made one `-`."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-")


def common_environment() -> dict[str, Scalar]:
    """What both backends record."""
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "perftrack": perftrack.__version__,
    }


def installed(package: str) -> dict[str, Scalar]:
    """`{package: version}`, or nothing where it is not installed."""
    try:
        return {package: importlib.metadata.version(package)}
    except importlib.metadata.PackageNotFoundError:
        return {}


def absent(backend: Backend, problem: str) -> DeviceReport:
    """The report of a process that has no device of its backend."""
    device = Device(uuid="", name="", backend=backend, device_class="", node=node_name(), memory_bytes=0)
    return DeviceReport(device=device, environment=Environment(entries=common_environment()), problem=problem)


def node_name() -> str:
    """The host's name."""
    return socket.gethostname()


def open_engine(backend: Backend) -> Any:
    """The engine of a backend; InfrastructureError where it has no device."""
    if backend == "cuda":
        from perftrack.measure.cuda import CudaEngine  # noqa: PLC0415 - imports CuPy

        return CudaEngine()
    from perftrack.measure.cpu import CpuEngine  # noqa: PLC0415 - the other backend's engine is never needed

    return CpuEngine()


def identify(backend: Backend) -> DeviceReport:
    """The device of this process; a report with a problem where there is none."""
    if backend == "cuda":
        from perftrack.measure.cuda_device import identify_gpu  # noqa: PLC0415 - imports CuPy

        return identify_gpu()
    from perftrack.measure.host import identify_cpu  # noqa: PLC0415 - the other backend's facts are never needed

    return identify_cpu()

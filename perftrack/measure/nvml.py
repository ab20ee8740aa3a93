"""What NVML says of one card. Every answer may be missing; a missing one is None and never guessed."""

import contextlib
import math
import time
from collections.abc import Callable, Collection
from typing import Any, TypeVar

T = TypeVar("T")

_GIB = 1 << 30
_BUSY_BYTES = _GIB
_REASONS = {
    "sw_power_cap": "nvmlClocksEventReasonSwPowerCap",
    "hw_slowdown": "nvmlClocksEventReasonHwSlowdown",
    "sw_thermal": "nvmlClocksEventReasonSwThermalSlowdown",
    "hw_thermal": "nvmlClocksEventReasonHwThermalSlowdown",
    "hw_power_brake": "nvmlClocksEventReasonHwPowerBrakeSlowdown",
}


def gpu_names() -> list[str]:
    """Names of this machine's NVIDIA GPUs; empty where there is no driver."""
    nvml: Any = _library()
    if nvml is None:
        return []
    count = _ask(nvml.nvmlDeviceGetCount) or 0

    def name_of(index: int) -> str | None:
        return _ask(lambda: nvml.nvmlDeviceGetName(nvml.nvmlDeviceGetHandleByIndex(index)))

    names = [name_of(index) for index in range(count)]
    return [str(name) for name in names if name]


def _library() -> Any | None:
    try:
        import pynvml  # noqa: PLC0415 - loads the driver's library

        pynvml.nvmlInit()
    except Exception:  # noqa: BLE001 - no library, no driver, no permission: there is no NVML here
        return None
    return pynvml


def _ask(question: Callable[[], T]) -> T | None:
    try:
        return question()
    except Exception:  # noqa: BLE001 - an unsupported question or an older driver's missing symbol
        return None


def intruders(first: Collection[int], now: Collection[int], own: int) -> frozenset[int]:
    """Which of the processes `now` on a card have come to that of number `own`, which saw those of `first` at first.

    The driver may list a process late. In a container it may also number processes otherwise than the system does: then
    those of the beginning are taken for our own, and where there were none, a lone one is.
    """
    if own in {*first, *now}:
        return frozenset(now) - {own}
    return frozenset(now) - frozenset(first) if first or len(now) > 1 else frozenset()


def in_use_by(processes: Collection[int]) -> str:
    """One sentence about processes that are not ours."""
    pids = ", ".join(map(str, sorted(processes)[:5]))
    many = "another process computes" if len(processes) == 1 else f"{len(processes)} other processes compute"
    return f"{many} on it (pid {pids})"


class Card:
    """One card's handle, found by its PCI bus id: an index means different cards to NVML and to CUDA."""

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml = nvml
        self._handle = handle

    @classmethod
    def open(cls, pci_bus_id: str) -> "Card | None":
        """The card at `pci_bus_id`; None without NVML."""
        nvml: Any = _library()
        handle = _ask(lambda: nvml.nvmlDeviceGetHandleByPciBusId(pci_bus_id)) if nvml is not None else None
        return None if handle is None else cls(nvml, handle)

    def _call(self, name: str, *args: Any) -> Any | None:
        return _ask(lambda: getattr(self._nvml, name)(self._handle, *args))

    def uuid(self) -> str | None:
        """`GPU-…`."""
        return self._call("nvmlDeviceGetUUID")

    def memory(self) -> Any | None:
        """`.total`, `.used` bytes; what the driver reserves for itself is not counted as used, where it says so."""
        version = getattr(self._nvml, "nvmlMemory_v2", None)
        newer = self._call("nvmlDeviceGetMemoryInfo", version) if version else None
        return newer if newer is not None else self._call("nvmlDeviceGetMemoryInfo")

    def busy(self, patience_s: float = 2.0) -> str:
        """Why the card is in use by others, in words; empty when it is not. Ask before a CUDA context is made.

        A process that has just ended may still be leaving the card, so it is asked again for `patience_s`.
        """
        end = time.monotonic() + patience_s
        while (problem := self._busy_now()) and time.monotonic() < end:
            time.sleep(0.1)
        return problem

    def _busy_now(self) -> str:
        if processes := self.processes():
            return in_use_by(processes)
        memory = self.memory()
        if memory is not None and memory.used > _BUSY_BYTES:
            return f"{memory.used / _GIB:.1f} GiB of its memory are in use"
        return ""

    def processes(self) -> frozenset[int]:
        """Ids of the processes that compute on the card, as the driver numbers them; empty where it does not say."""
        return frozenset(one.pid for one in self._call("nvmlDeviceGetComputeRunningProcesses") or [])

    def clock_mhz(self) -> float | None:
        """The SM clock now."""
        clock = self._call("nvmlDeviceGetClockInfo", self._nvml.NVML_CLOCK_SM)
        return None if clock is None else float(clock)

    def reasons(self) -> frozenset[str]:
        """Why the clock is held down now; idling, settings and displays are not reasons."""
        bits = self._call("nvmlDeviceGetCurrentClocksEventReasons")
        if bits is None:
            bits = self._call("nvmlDeviceGetCurrentClocksThrottleReasons") or 0
        return frozenset(name for name, constant in _REASONS.items() if bits & getattr(self._nvml, constant, 0))

    def environment(self) -> dict[str, bool | int | float | str]:
        """Driver and settings of the card that change what it can do."""
        power = self._call("nvmlDeviceGetPowerManagementLimit")
        mig = self._call("nvmlDeviceGetMigMode")
        ecc = self._call("nvmlDeviceGetEccMode")
        asked: dict[str, Any] = {
            "driver": _ask(self._nvml.nvmlSystemGetDriverVersion),
            "power_limit_w": None if power is None else math.floor(power / 1000),
            "max_sm_mhz": self._call("nvmlDeviceGetMaxClockInfo", self._nvml.NVML_CLOCK_SM),
            "max_memory_mhz": self._call("nvmlDeviceGetMaxClockInfo", self._nvml.NVML_CLOCK_MEM),
            "app_sm_mhz": self._call("nvmlDeviceGetApplicationsClock", self._nvml.NVML_CLOCK_SM),
            "ecc": None if ecc is None else bool(ecc[0]),
            "mig": None if mig is None else bool(mig[0]),
            "persistence": None if (on := self._call("nvmlDeviceGetPersistenceMode")) is None else bool(on),
            "compute_mode": self._call("nvmlDeviceGetComputeMode"),
        }
        return {name: value for name, value in asked.items() if value is not None}

    def close(self) -> None:
        """Let go of the library."""
        with contextlib.suppress(Exception):
            self._nvml.nvmlShutdown()

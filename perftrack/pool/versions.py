"""Whether devices of one class run the same software: times of a run must not come from two environments."""

from collections import Counter
from collections.abc import Sequence

from perftrack.model import DeviceReport, Scalar

VERSIONS = (
    *("perftrack", "python", "numpy", "numba", "ml_dtypes"),
    *("cupy", "cuda_runtime", "cuda_driver", "nvrtc", "driver"),
)
"""Entries of an environment that are the same on all nodes of a well-kept pool."""

_Versions = tuple[Scalar | None, ...]


def usual(reports: Sequence[DeviceReport]) -> dict[str, DeviceReport]:
    """Device class → a device with the software that most devices of the class have, of equally many the first."""
    found: dict[str, DeviceReport] = {}
    for name in dict.fromkeys(report.device.device_class for report in reports):
        alike = [report for report in reports if report.device.device_class == name]
        most, _ = Counter(map(_versions, alike)).most_common(1)[0]
        found[name] = next(report for report in alike if _versions(report) == most)
    return found


def difference(report: DeviceReport, other: DeviceReport) -> str:
    """What the software of a device has that the `other`'s has not, in words; empty where it is the same."""
    pairs = zip(VERSIONS, _versions(report), _versions(other), strict=True)
    return ", ".join(f"{name} {mine or 'none'} instead of {its or 'none'}" for name, mine, its in pairs if mine != its)


def _versions(report: DeviceReport) -> _Versions:
    return tuple(report.environment.entries.get(name) for name in VERSIONS)

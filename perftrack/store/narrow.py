"""How a result's values become the columns of its narrow row, and what of them does not fit there.

A value that is not stored is one that follows, bit for bit, from those that are: by the same operations in the same
order as `judge.summarize` has them. That is asked of every result before it is written; where one value of it does not
follow, all that would be worked out are stored as they are, in `result_extra`.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from perftrack.model import Status, Traffic

EXTRA = (
    *("baseline_s", "fusion_efficiency", "bandwidth_bytes_per_s", "peak_utilization", "flops_per_s"),
    *("error_l2", "error_max", "host_s", "clock_mhz", "build_first_s", "build_s"),
)
"""Values that the narrow row has not, or has as whole numbers; `result_extra` has columns for them."""

WHOLE = {
    "host_s": ("host_ns", 1e9),
    "build_first_s": ("build_first_us", 1e6),
    "build_s": ("build_us", 1e6),
    "clock_mhz": ("clock_mhz", 1.0),
}
"""Value → column of `result`, and how many of its units one of the value's is."""

DIGITS = {"error_l2": "error_l2_digits", "error_max": "error_max_digits"}
"""Value → column of `result`, as `digits` writes it."""

SCALE = 1000
LAST_POWER = 22
"""The greatest power of ten that a double has exactly."""

_MOST = {"clock_mhz": 2**15 - 1}
_AS_THEY_ARE = (
    *("time_s", "q10_s", "q90_s", "speedup", "speedup_low", "speedup_high"),
    *("fusion_gain", "fusion_gain_low", "fusion_gain_high", "utilization"),
)
_EXTENT = ("samples", "rounds", "bad_blocks")


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """What a result refers to, and what its missing values would be worked out from."""

    series_id: int
    run_side_id: int
    declaration_id: int
    device_id: int | None
    environment_id: int | None
    resources_id: int
    traffic: Traffic
    peak_bytes_per_s: float | None
    baseline_s: float | None
    """Time of the baseline variant in the same run, on the same side."""


class Narrow(msgspec.Struct, frozen=True):
    """One result as rows of its tables; the first two without a number yet."""

    setting: dict[str, Any]
    extent: dict[str, Any]
    facts: dict[str, Any]
    extra: dict[str, Any] | None


def narrow(values: Mapping[str, Any], place: Place) -> Narrow:
    """Of the values that `rows.summary_row` gives."""
    setting = {
        "declaration_id": place.declaration_id,
        "device_id": place.device_id,
        "environment_id": place.environment_id,
        "resources_id": place.resources_id,
        "mode": values["mode"],
        "cached": values["cached"],
        "expected_gain": values["expected_gain"],
        "bytes_min": place.traffic.min_bytes if values["bandwidth_bytes_per_s"] is not None else None,
        "flops": place.traffic.flops or None if values["flops_per_s"] is not None else None,
        "peak_bytes_per_s": place.peak_bytes_per_s if values["peak_utilization"] is not None else None,
    }
    facts: dict[str, Any] = {
        "series_id": place.series_id,
        "run_side_id": place.run_side_id,
        **{name: values[name] for name in _AS_THEY_ARE},
        **{column: _whole(values[name], column, factor) for name, (column, factor) in WHOLE.items()},
        **{column: digits(values[name]) for name, column in DIGITS.items()},
        "fault": None if values["status"] == Status.OK.value else values["status"],
    }
    told = {**{name: values[name] for name in EXTRA}, "message": values["message"]}
    key = {"series_id": place.series_id, "run_side_id": place.run_side_id}
    same = {**worked_out(facts, setting, place.baseline_s), "message": ""} == told
    extent = {name: values[name] for name in _EXTENT}
    return Narrow(setting, extent, facts, None if same else key | told)


def worked_out(facts: Mapping[str, Any], setting: Mapping[str, Any], baseline_s: float | None) -> dict[str, Any]:
    """What reading makes of a row that has no extra one."""
    time_s = facts["time_s"]
    gain = facts["fusion_gain"] if facts["fusion_gain"] is not None else facts["speedup"]
    bandwidth = _ratio(setting["bytes_min"], time_s)
    return {
        "baseline_s": baseline_s if time_s is not None else None,
        "fusion_efficiency": _ratio(gain, setting["expected_gain"]),
        "bandwidth_bytes_per_s": bandwidth,
        "peak_utilization": _ratio(bandwidth, setting["peak_bytes_per_s"]),
        "flops_per_s": _ratio(setting["flops"], time_s),
        **{name: _ratio(facts[column], factor) for name, (column, factor) in WHOLE.items()},
        **{name: _of_digits(facts[column]) for name, column in DIGITS.items()},
    }


def _ratio(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None


def _whole(value: float | None, column: str, factor: float) -> int | None:
    """None too where the column cannot hold it."""
    if value is None or not 0 <= value * factor <= _MOST.get(column, 2**31 - 1):
        return None
    return round(value * factor)


def digits(value: float | None) -> int | None:
    """Three digits and the power of ten to divide them by, as one number; None too for what has more of either."""
    if value is None or value == 0:
        return None if value is None else 0
    first, _, power = f"{value:.2e}".replace(".", "").partition("e")
    scale = 2 - int(power)
    return scale * SCALE + int(first) if 0 <= scale <= LAST_POWER else None


def _of_digits(number: int | None) -> float | None:
    return None if number is None else (number % SCALE) / 10.0 ** (number // SCALE)

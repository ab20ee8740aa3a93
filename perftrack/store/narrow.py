"""How a result's values become the columns of its narrow row, and what of them does not fit there.

A value that is not stored is one that follows, bit for bit, from those that are: by the same operations in the same
order as `judge.summarize` has them. That is asked of every result before it is written; where one value of it does not
follow, all that would be worked out are stored as they are, in `result_extra`.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from perftrack.model import Status, Traffic

T = TypeVar("T")

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
SETTING = (
    *("declaration_id", "device_id", "environment_id", "resources_id", "mode", "cached", "expected_gain"),
    *("bytes_min", "flops", "peak_bytes_per_s"),
)
EXTENT = ("samples", "rounds", "bad_blocks")
KEY = ("series_id", "run_side_id")
FACTS = (*_AS_THEY_ARE, *(column for column, _ in WHOLE.values()), *DIGITS.values(), "fault")
"""Columns of what is below, in their order."""

Columns = Mapping[str, Sequence[Any]]
"""Name → the value of each result."""


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """What results refer to, and what their missing values would be worked out from: of each result in its place."""

    declaration_id: list[int]
    device_id: list[int | None]
    environment_id: list[int | None]
    resources_id: list[int]
    traffic: list[Traffic]
    peak_bytes_per_s: list[float | None]
    baseline_s: list[float | None]
    """Time of the baseline variant in the same run, on the same side."""


class Narrow(msgspec.Struct, frozen=True):
    """Results as rows of their tables, each in its place, without the numbers that say which."""

    settings: list[tuple[Any, ...]]
    extents: list[tuple[int, ...]]
    facts: list[Sequence[Any]]
    """Columns."""
    extras: list[tuple[Any, ...] | None]
    """A message, and EXTRA; None where all of it follows."""


def narrow(values: Columns, places: Places) -> Narrow:
    """Of the values that `rows.columns` gives of summaries. Column by column: a third of the time of row by row."""
    setting: Columns = {
        "declaration_id": places.declaration_id,
        "device_id": places.device_id,
        "environment_id": places.environment_id,
        "resources_id": places.resources_id,
        "mode": values["mode"],
        "cached": values["cached"],
        "expected_gain": values["expected_gain"],
        "bytes_min": _where(values["bandwidth_bytes_per_s"], [one.min_bytes for one in places.traffic]),
        "flops": _where(values["flops_per_s"], [one.flops or None for one in places.traffic]),
        "peak_bytes_per_s": _where(values["peak_utilization"], places.peak_bytes_per_s),
    }
    facts: Columns = {
        **{name: values[name] for name in _AS_THEY_ARE},
        **{column: _whole(values[name], column, factor) for name, (column, factor) in WHOLE.items()},
        **{column: list(map(digits, values[name])) for name, column in DIGITS.items()},
        "fault": [None if word == Status.OK.value else word for word in values["status"]],
    }
    usual = worked_out(facts, setting, places.baseline_s)
    follows = zip(itertools.repeat("", len(values["message"])), *(usual[name] for name in EXTRA), strict=True)
    told = zip(values["message"], *(values[name] for name in EXTRA), strict=True)
    return Narrow(
        settings=list(zip(*(setting[name] for name in SETTING), strict=True)),
        extents=list(zip(*(values[name] for name in EXTENT), strict=True)),
        facts=[facts[name] for name in FACTS],
        extras=[None if row == these else row for row, these in zip(told, follows, strict=True)],
    )


def worked_out(facts: Columns, setting: Columns, baseline_s: Sequence[float | None]) -> Columns:
    """What reading makes of rows that have no extra one."""
    time_s = facts["time_s"]
    gain = [
        speedup if gain is None else gain for gain, speedup in zip(facts["fusion_gain"], facts["speedup"], strict=True)
    ]
    bandwidth = _ratios(setting["bytes_min"], time_s)
    return {
        "baseline_s": _where(time_s, baseline_s),
        "fusion_efficiency": _ratios(gain, setting["expected_gain"]),
        "bandwidth_bytes_per_s": bandwidth,
        "peak_utilization": _ratios(bandwidth, setting["peak_bytes_per_s"]),
        "flops_per_s": _ratios(setting["flops"], time_s),
        **{name: _ratios(facts[column], itertools.repeat(factor)) for name, (column, factor) in WHOLE.items()},
        **{name: list(map(_of_digits, facts[column])) for name, column in DIGITS.items()},
    }


def _where(there: Sequence[Any], values: Sequence[T]) -> list[T | None]:
    """None where the other value is."""
    return [None if one is None else value for one, value in zip(there, values, strict=True)]


def _ratios(above: Iterable[float | None], below: Iterable[float | None]) -> list[float | None]:
    return [one / other if one is not None and other else None for one, other in zip(above, below, strict=False)]


def _whole(values: Sequence[float | None], column: str, factor: float) -> list[int | None]:
    """None too where the column cannot hold it."""
    most = _MOST.get(column, 2**31 - 1)
    return [None if one is None or not 0 <= one * factor <= most else round(one * factor) for one in values]


def digits(value: float | None) -> int | None:
    """Three digits and the power of ten to divide them by, as one number; None too for what has more of either."""
    if value is None or value == 0:
        return None if value is None else 0
    first, _, power = f"{value:.2e}".replace(".", "").partition("e")
    scale = 2 - int(power)
    return scale * SCALE + int(first) if 0 <= scale <= LAST_POWER else None


def _of_digits(number: int | None) -> float | None:
    return None if number is None else (number % SCALE) / 10.0 ** (number // SCALE)

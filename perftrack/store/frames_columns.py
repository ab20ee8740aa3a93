"""Columns of the frames and how values become them: the dtypes of an empty frame are those of a full one."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from perftrack.judge.life import Kind, State
from perftrack.model import Accuracy, Cause, Status, Verdict

UNPLACED = 2**31 - 1
"""`commit_seq` of a revision whose place in the history is unknown (a shallow clone): it sorts last."""

TIME = "datetime64[us, UTC]"
_STATUS = pd.CategoricalDtype([word.value for word in Status])
_VERDICT = pd.CategoricalDtype(["", *(word.value for word in Verdict)])
_CAUSE = pd.CategoricalDtype([word.value for word in Cause])
_STATE = pd.CategoricalDtype([word.value for word in State])
_KIND = pd.CategoricalDtype([word.value for word in Kind])
_ACCURACY = pd.CategoricalDtype([word.value for word in Accuracy])

Columns = Mapping[str, Any]
"""Name → dtype; `category` has the categories that occur, sorted."""

RESULTS_SCHEMA = "perftrack.results/1"

RESULTS: Columns = {
    "repo": "category", "commit": "str", "commit_seq": "int64", "dirty": "bool",
    "commit_time": TIME, "measured_at": TIME, "branch": "category", "side": "category",
    "suite": "category", "case": "str", "params": "str", "device": "category", "variant": "category",
    "baseline": "category", "status": _STATUS, "verdict": _VERDICT, "cause": _CAUSE, "accuracy": _ACCURACY,
    "message": "str",
    "run_id": "str", "device_uuid": "str", "node": "str", "env_key": "str", "method_key": "str",
    "median_us": "float64", "p10_us": "float64", "p90_us": "float64", "baseline_us": "float64",
    "speedup": "float64", "speedup_low": "float64", "speedup_high": "float64",
    "vectorisation": "float64", "vectorisation_low": "float64", "vectorisation_high": "float64",
    "fusion_gain": "float64", "fusion_gain_low": "float64", "fusion_gain_high": "float64",
    "expected_gain": "float64", "fusion_efficiency": "float64",
    "gbps": "float64", "utilization": "float64", "peak_utilization": "float64", "tflops": "float64",
    "host_us": "float64", "error_l2": "float64", "error_max": "float64",
    "n_samples": "int64", "rounds": "int64", "bad_blocks": "int64", "mode": "category",
    "cold": "bool", "cached": "bool",
    "registers": "Int64", "local_bytes": "Int64", "shared_bytes": "Int64", "launches": "Int64",
    "occupancy": "float64", "code_digest": "str",
    "clock_mhz": "float64", "build_first_s": "float64", "build_s": "float64",
}  # fmt: skip
"""Schema RESULTS_SCHEMA, only ever added to. gbps is 10⁹ B/s, tflops 10¹²/s, utilization a fraction."""

RENAMED: Mapping[str, str] = {
    "median_us": "time_s",
    "p10_us": "q10_s",
    "p90_us": "q90_s",
    "baseline_us": "baseline_s",
    "gbps": "bandwidth_bytes_per_s",
    "tflops": "flops_per_s",
    "host_us": "host_s",
    "n_samples": "samples",
}
"""Column of `results` → the value of a `Summary` that it shows, where that has another name."""

ROUNDS: Columns = {
    "run_id": "str", "suite": "category", "case": "str", "device": "category", "device_uuid": "category",
    "round": "int64", "attempt": "int64", "counts": "bool", "job_status": _STATUS, "job_message": "str",
    "side": "category", "variant": "category", "status": _STATUS, "message": "str",
    "median_us": "float64", "n_samples": "int64", "mode": "category", "host_us": "float64",
    "canary_us": "float64", "ceiling_gbps": "float64", "clock_mhz": "float64", "bad_blocks": "int64",
    "blocks": "int64", "throttled": "str", "started_at": TIME, "wall_s": "float64", "timed_s": "float64",
    "variant_clock_mhz": "float64", "build_s": "float64",
}  # fmt: skip
"""Of a job without any measurement there is one row, with neither side nor variant."""

COMPARE: Columns = {
    "suite": "str", "case": "str", "device": "str", "variant": "str",
    "fused_us_base": "float64", "fused_us_head": "float64",
    "unfused_us_base": "float64", "unfused_us_head": "float64",
    "speedup_base": "float64", "speedup_head": "float64",
    "change_pct": "float64", "time_change_pct": "float64",
    "time_change_low_pct": "float64", "time_change_high_pct": "float64",
    "verdict": _VERDICT, "cause": _CAUSE, "paired": "bool", "message": "str",
    "error_l2_base": "float64", "error_l2_head": "float64", "error_change_pct": "float64", "accuracy": _ACCURACY,
}  # fmt: skip

DEVICES: Columns = {
    "device": "category", "uuid": "str", "name": "str", "backend": "category", "node": "str",
    "memory_bytes": "int64", "compute_capability": "str", "multiprocessors": "int64", "l2_bytes": "int64",
    "peak_gbps": "float64", "jobs": "int64", "last_measured_at": TIME, "environment": "str",
}  # fmt: skip

RUNS: Columns = {
    "run_id": "str", "repo": "category", "commit": "str", "dirty": "bool", "base": "str", "branch": "category",
    "started_at": TIME, "finished_at": TIME, "state": "category", "jobs": "int64", "expected_jobs": "int64",
    "problems": "int64", **{word.value: "int64" for word in Verdict},
}  # fmt: skip

REGRESSIONS: Columns = {
    "regression_id": "int64", "repo": "category", "state": _STATE, "kind": _KIND, "device": "category",
    "suite": "category", "case": "str", "variant": "category",
    "commit": "str", "commit_seq": "int64", "base": "str", "found_at": TIME,
    "level": "float64", "time_us_base": "float64", "time_us_head": "float64",
    "error_l2_base": "float64", "error_l2_head": "float64", "cause": _CAUSE, "why": "str", "message": "str",
    "reason": "str", "author": "str", "marked_at": TIME, "until": TIME, "again": "str",
    "seen_commit": "str", "seen_at": TIME, "seen_run_id": "str", "fixed_commit": "str", "fixed_at": TIME,
}  # fmt: skip
"""`level` is the time, or the error, at head ÷ that at base; NaN for what failed or is wrong. `reason` to `until` are
of the newest mark, `again` says why that counts no longer; `seen` is where the case was last there."""

CHANGE_POINTS: Columns = {
    "repo": "category", "suite": "category", "case": "str", "device": "category", "variant": "category",
    "commit": "str", "commit_seq": "int64", "commit_time": TIME, "subject": "str",
    "direction": "int64", "median_us_before": "float64", "median_us_after": "float64", "change_pct": "float64",
    "commits_before": "int64", "commits_after": "int64",
}  # fmt: skip
"""`direction` is +1 where times got longer, -1 where they got shorter; medians and counts are of the measured commits
of the two neighbouring levels, `change_pct` is after ÷ before, less 1."""

_SCALES = {"_us": 1e6, "gbps": 1e-9, "tflops": 1e-12, "_pct": 100.0}
"""From the SI units of the store to the unit in the column's name."""


def frame(columns: Columns, rows: Iterable[Sequence[Any]]) -> pd.DataFrame:
    """A frame of rows that have the store's units, in the order of `columns`."""
    values = list(zip(*rows, strict=True)) or [()] * len(columns)
    made = {name: _column(name, kind, of) for (name, kind), of in zip(columns.items(), values, strict=True)}
    return pd.DataFrame(made)


def _column(name: str, kind: Any, values: Sequence[Any]) -> "pd.Series[Any]":
    if kind == TIME:
        instants = [np.iinfo("int64").min if value is None else value for value in values]  # the least one is NaT
        return pd.Series(pd.DatetimeIndex(np.array(instants, "int64").view("datetime64[us]")).tz_localize("UTC"))
    if isinstance(kind, str) and kind == "category":
        words = sorted({value for value in values if value is not None})
        kind = pd.CategoricalDtype(pd.Index(words, dtype="str"))
    column: pd.Series[Any] = pd.Series(list(values), dtype=kind)
    factor = scale(name)
    return column if factor is None else column * factor


def scale(name: str) -> float | None:
    """What a number in the store's unit is multiplied with; None where it stays as it is."""
    return next((factor for unit, factor in _SCALES.items() if name.endswith(unit) or f"{unit}_" in name), None)

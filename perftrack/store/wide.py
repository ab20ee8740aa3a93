"""A result's values in SQL: those of its narrow row, of the small tables beside it, and what follows from them."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from perftrack.model import Status
from perftrack.store import narrow
from perftrack.store.schema import extent, result, result_extra, run_side, series, setting

_baseline_series = series.alias("baseline_series")
_baseline = result.alias("baseline_result")

Number = sa.ColumnElement[Any]

STATUS: sa.ColumnElement[str] = sa.func.coalesce(result.c.fault, Status.OK.value)


def _ratio(above: Number, below: Number) -> Number:
    """As doubles are divided: SQLAlchemy's own sign makes decimal numbers of them on PostgreSQL."""
    return above.op("/", precedence=8, return_type=sa.Double())(below)


def _double(text: Number) -> Number:
    return sa.cast(text, sa.Double)


def _digits(column: sa.Column[int]) -> Number:
    """Three digits ÷ a power of ten, which both engines read from text exactly."""
    scale = sa.literal_column(str(narrow.SCALE))
    power: Number = column.op("/", precedence=8, return_type=sa.Integer())(scale)
    divisor = sa.cast(sa.literal_column("'1e'", sa.Text) + sa.cast(power, sa.Text), sa.Double)
    return _ratio(column - power * scale, divisor)  # a percent sign would have to be doubled for one driver only


_bandwidth = _ratio(setting.c.bytes_min, result.c.time_s)

WORKED_OUT: Mapping[str, Number] = {
    "baseline_s": sa.case((result.c.fault.is_(None), _baseline.c.time_s)),
    "fusion_efficiency": _ratio(sa.func.coalesce(result.c.fusion_gain, result.c.speedup), setting.c.expected_gain),
    "bandwidth_bytes_per_s": _bandwidth,
    "peak_utilization": _ratio(_bandwidth, setting.c.peak_bytes_per_s),
    "flops_per_s": _ratio(setting.c.flops, result.c.time_s),
    **{
        name: _ratio(result.c[column], _double(sa.literal_column(f"{factor:.0f}")))
        for name, (column, factor) in narrow.WHOLE.items()
    },
    **{name: _digits(result.c[column]) for name, column in narrow.DIGITS.items()},
}
"""What reading makes of a row that has no extra one; `narrow.worked_out` is the same in Python."""

_there = result_extra.c.series_id.is_not(None)

VALUES: Mapping[str, Number] = {
    **{name: sa.case((_there, result_extra.c[name]), else_=of) for name, of in WORKED_OUT.items()},
    **{
        name: result.c[name]
        for name in ("time_s", "q10_s", "q90_s", "speedup", "speedup_low", "speedup_high", "utilization")
    },
    **{name: result.c[name] for name in ("fusion_gain", "fusion_gain_low", "fusion_gain_high")},
    "expected_gain": setting.c.expected_gain,
    "mode": setting.c.mode,
    "cached": setting.c.cached,
    **{name: extent.c[name] for name in ("samples", "rounds", "bad_blocks")},
    "side": run_side.c.side,
    "status": STATUS,
    "message": sa.func.coalesce(result_extra.c.message, ""),
}
"""Every value by its name in `Summary`, in a question that went through `beside`."""


def beside(question: sa.Select[*tuple[Any, ...]]) -> sa.Select[*tuple[Any, ...]]:
    """A question to `result`, its `run_side`, `setting` and `series`, joined with what else its values are made of."""
    return (
        question.join(extent, result.c.extent_id == extent.c.id)
        .join(_baseline_series, is_baseline(_baseline_series), isouter=True)
        .join(_baseline, sa.and_(_baseline.c.series_id == _baseline_series.c.id, same_side(_baseline)), isouter=True)
        .join(
            result_extra, sa.and_(result_extra.c.series_id == result.c.series_id, same_side(result_extra)), isouter=True
        )
    )


def is_baseline(of: sa.FromClause) -> sa.ColumnElement[bool]:
    """Whether a series is that of the baseline variant beside `series`."""
    same_case = (of.c[name] == series.c[name] for name in ("case_id", "device_class_id", "method_id"))
    return sa.and_(*same_case, *(of.c[name] == series.c.baseline for name in ("variant", "baseline")))


def same_side(of: sa.FromClause) -> sa.ColumnElement[bool]:
    """Whether a row is of the same side of the same run as that of `result`."""
    return of.c.run_side_id == result.c.run_side_id


def columns() -> list[Number]:
    """All values, under their names."""
    return [value.label(name) for name, value in VALUES.items()]

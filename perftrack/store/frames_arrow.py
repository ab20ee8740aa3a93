"""Results as Arrow: the same columns and units as the frame, words as plain strings, the unit beside each field."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from perftrack.errors import UsageError
from perftrack.store import frames_columns

if TYPE_CHECKING:
    import pyarrow as pa

_UNITS = {"_us": "us", "_s": "s", "gbps": "10^9 B/s", "tflops": "10^12/s", "_mhz": "MHz", "_bytes": "B"}
"""By the end of a column's name; what has none is a number without a unit, or a word."""


def arrow() -> Any:
    """The module pyarrow; UsageError where it is not installed."""
    try:
        import pyarrow  # noqa: PLC0415, ICN001 - optional
    except ImportError as error:
        raise UsageError(
            "Arrow and Parquet need pyarrow, which is not installed: pip install 'perftrack[arrow]'"
        ) from error
    return pyarrow


def schema() -> "pa.Schema":
    """Of every batch; its metadata names it, and each field's metadata has the `unit`."""
    pa = arrow()
    kinds = {"float64": pa.float64(), "int64": pa.int64(), "Int64": pa.int64(), "bool": pa.bool_()}
    times = pa.timestamp("us", tz="UTC")
    fields = [
        pa.field(
            name,
            times if kind == frames_columns.TIME else kinds.get(str(kind), pa.string()),
            metadata={"unit": unit} if (unit := unit_of(name)) else None,
        )
        for name, kind in frames_columns.RESULTS.items()
    ]
    return pa.schema(fields, metadata={"schema": frames_columns.RESULTS_SCHEMA})


def unit_of(name: str) -> str:
    """What a column's numbers are in; empty for words and plain numbers."""
    return next((unit for end, unit in _UNITS.items() if name.endswith(end)), "")


def batches(parts: Iterable[Sequence[Sequence[Any]]]) -> "Iterator[pa.RecordBatch]":
    """One record batch a part of rows in the store's units. pyarrow is looked for now, not at the first batch."""
    of = schema()
    return (_batch(of, part) for part in parts)


def _batch(of: "pa.Schema", rows: Sequence[Sequence[Any]]) -> "pa.RecordBatch":
    pa = arrow()
    columns = [
        pa.array(_scaled(field.name, values), type=field.type)
        for field, values in zip(of, zip(*rows, strict=True), strict=True)
    ]
    return pa.record_batch(columns, schema=of)


def _scaled(name: str, values: Sequence[Any]) -> Sequence[Any]:
    factor = frames_columns.scale(name)
    if factor is not None:
        return [None if value is None else value * factor for value in values]
    if frames_columns.RESULTS[name] == "bool":
        return [bool(value) for value in values]
    return values

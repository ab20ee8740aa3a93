"""Results as files, part by part: the memory that is needed does not grow with them."""

import csv
import io
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, BinaryIO, Literal

from perftrack.store import frames_arrow, frames_columns

Kind = Literal["csv", "parquet", "arrow"]
_Parts = Iterable[Sequence[Sequence[Any]]]


def _csv(file: BinaryIO, parts: _Parts) -> int:
    """UTF-8 with a line of names; nothing for what is unknown, instants in ISO 8601 (UTC), true and false."""
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(frames_columns.RESULTS)
    written = [_spelling(name, kind) for name, kind in frames_columns.RESULTS.items()]
    count = 0
    for part in parts:
        lines.writerows([spell(value) for spell, value in zip(written, row, strict=True)] for row in part)
        count += len(part)
    text.flush()
    text.detach()
    return count


def _spelling(name: str, kind: Any) -> Any:
    factor = frames_columns.scale(name)
    if kind == frames_columns.TIME:
        return _instant
    if kind == "bool":
        return lambda value: "true" if value else "false"
    if factor is not None:
        return lambda value: None if value is None else repr(value * factor)
    return lambda value: value


def _instant(us: int | None) -> str:
    if us is None:
        return ""
    seconds, rest = divmod(us, 1_000_000)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest).isoformat().replace("+00:00", "Z")


def _arrow(file: BinaryIO, parts: _Parts) -> int:
    pa = frames_arrow.arrow()
    count = 0
    with pa.ipc.new_stream(file, frames_arrow.schema()) as writer:
        for batch in frames_arrow.batches(parts):
            writer.write_batch(batch)
            count += batch.num_rows
    return count


def _parquet(file: BinaryIO, parts: _Parts) -> int:
    frames_arrow.arrow()
    from pyarrow import parquet  # noqa: PLC0415 - optional

    count = 0
    with parquet.ParquetWriter(file, frames_arrow.schema(), compression="zstd") as writer:
        for batch in frames_arrow.batches(parts):
            writer.write_batch(batch)
            count += batch.num_rows
    return count


_WRITERS = {"csv": _csv, "arrow": _arrow, "parquet": _parquet}


def write(file: BinaryIO, kind: Kind, parts: _Parts) -> int:
    """Write parts of rows in the store's units to a file; how many rows they were."""
    return _WRITERS[kind](file, parts)

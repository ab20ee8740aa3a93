"""The report as JSON, schema `perftrack.report/1`: fields are added, never renamed."""

from pathlib import Path
from typing import Any

import msgspec

from perftrack.errors import UsageError
from perftrack.report.commands import with_own_commands
from perftrack.report.value import Report

SCHEMA_FILE = Path(__file__).parent / "schema" / "perftrack.report-1.json"
"""The published schema: what `schema` gives."""

_MAX_BYTES = 64 * 2**20


def render(report: Report) -> str:
    """Indented JSON; `msgspec.json.decode(…, type=Report)` gives the report back."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode()


def read(path: Path) -> Report:
    """A report that `render` wrote, wherever it comes from: its commands are made anew. UsageError for other files."""
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    if len(data) > _MAX_BYTES:
        raise UsageError(f"{path} is larger than {_MAX_BYTES >> 20} MiB; that is no report")
    try:
        report = msgspec.json.decode(data, type=Report)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is no report of perftrack (--report json:{path.name} writes one): {error}") from error
    return with_own_commands(report)


def schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of what `render` writes."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(Report)}

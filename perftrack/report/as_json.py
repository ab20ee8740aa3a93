"""The report as JSON, schema `perftrack.report/1`: fields are added, never renamed."""

from typing import Any

import msgspec

from perftrack.report.value import Report


def render(report: Report) -> str:
    """Indented JSON; `msgspec.json.decode(…, type=Report)` gives the report back."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode()


def schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of what `render` writes."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(Report)}

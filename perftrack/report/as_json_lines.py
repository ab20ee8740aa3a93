"""The report as JSON lines, for tools that read a line at a time: the answer first, then its parts, worst row first.

Each line is an object with `kind` (`report`, `row`, `accuracy`, `device`) and `run`; the other fields are those of
`perftrack.report/1`.
"""

from collections.abc import Iterator

import msgspec

from perftrack.report.value import Report

_APART = ("rows", "accuracy", "devices")


def render(report: Report) -> str:
    """One line for the report without its lists, one for each row, accuracy row and device class."""
    return "\n".join(msgspec.json.encode(line).decode() for line in _lines(report))


def _lines(report: Report) -> Iterator[dict[str, object]]:
    whole: dict[str, object] = msgspec.to_builtins(report)
    yield {"kind": "report", **{name: value for name, value in whole.items() if name not in _APART}}
    for kind, parts in (("row", report.rows), ("accuracy", report.accuracy), ("device", report.devices)):
        for part in parts:
            yield {"kind": kind, "run": report.run, **msgspec.to_builtins(part)}

"""One report value, and its renderings. Nothing here reads a database or touches a device."""

from typing import Literal

from perftrack.report.value import Report

Style = Literal["text", "json", "markdown"]


def render(report: Report, style: Style, *, terminal: bool) -> str:
    """The report as text (coloured and as wide as the terminal where there is one), Markdown or JSON."""
    if style == "json":
        from perftrack.report import as_json  # noqa: PLC0415 - each style loads only what it needs

        return as_json.render(report)
    if style == "markdown":
        from perftrack.report import markdown  # noqa: PLC0415 - the same

        return markdown.render(report)
    from perftrack.report import text  # noqa: PLC0415 - rich takes a tenth of a second

    return text.render(report, text.look(terminal=terminal))

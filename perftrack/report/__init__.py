"""One report value, and its renderings. Nothing here reads a database or touches a device."""

from importlib import import_module
from typing import Literal, get_args

from perftrack.report.value import Report

Style = Literal["text", "json", "jsonl", "markdown", "html", "junit", "github", "openmetrics"]

STYLES: tuple[Style, ...] = get_args(Style)

_MODULES: dict[Style, str] = {
    "json": "as_json",
    "jsonl": "as_json_lines",
    "markdown": "markdown",
    "html": "as_html",
    "junit": "as_junit",
    "github": "as_annotations",
    "openmetrics": "as_openmetrics",
}


def render(report: Report, style: Style, *, terminal: bool) -> str:
    """The report in one style, without a last line end.

    Text is as wide as the terminal and coloured where there is one. Markdown is cut to the size of a comment on GitHub;
    `markdown.render` knows other limits.
    """
    if style == "text":
        from perftrack.report import text  # noqa: PLC0415 - rich takes a tenth of a second

        return text.render(report, text.look(terminal=terminal))
    # each style loads only what it needs
    return import_module(f"perftrack.report.{_MODULES[style]}").render(report).rstrip("\n")

"""Writing answers: to stdout, and to a file where one is asked for."""

import os
import sys
from pathlib import Path
from typing import Any, Literal

import click

from perftrack.errors import UsageError

Style = Literal["text", "json", "markdown"]


def check(path: Path | None) -> None:
    """Refuse a file that cannot be written before anything is measured for it."""
    if path is None:
        return
    if path.is_dir():
        raise UsageError(f"-o {path} is a folder; name a file in it")
    if not (path.parent.is_dir() and os.access(path if path.exists() else path.parent, os.W_OK)):
        raise UsageError(f"-o {path}: the folder {path.parent} does not exist or cannot be written")


def write_report(report: Any, style: Style, path: Path | None) -> None:
    """Print the report, and write it to `path` too."""
    from perftrack.report import render

    click.echo(render(report, style, terminal=sys.stdout.isatty()))
    if path is not None:
        try:
            path.write_text(render(report, style, terminal=False) + "\n", encoding="utf-8")
        except OSError as error:
            raise UsageError(f"-o {path}: {error.strerror}; the run is stored: perftrack report latest") from error


def write_value(value: Any, text: str, style: Style) -> None:
    """Print a value as JSON, or the text that was made of it."""
    if style == "json":
        import msgspec

        text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    click.echo(text)

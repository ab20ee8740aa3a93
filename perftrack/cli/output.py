"""Writing answers: to stdout, to files, and to the CI host, as `--format`, `-o` and `--report` ask for."""

import difflib
import os
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from perftrack.cli.log import harmless
from perftrack.errors import PerftrackError, UsageError

if TYPE_CHECKING:
    from perftrack.ci.host import Host
    from perftrack.report import Style
    from perftrack.report.value import Report

FORMATS = ("text", "json", "jsonl", "markdown", "html", "junit", "github", "openmetrics")
"""Of `perftrack.report`, restated: importing that for `--help` takes too long."""

_CI = "ci"


@dataclass(frozen=True, slots=True)
class Outputs:
    """Everywhere a report goes."""

    stdout: tuple["Style", ...]
    files: tuple[tuple["Style", Path], ...]
    """Style and file, in the order they were asked for."""
    host: "Host | None" = None

    def write(self, report: "Report") -> None:
        """Print the report, write its files, hand it to the host; one that fails does not stop the others."""
        failed: list[UsageError] = []
        for style in self.stdout:
            _print(report, style)
        for style, path in self.files:
            try:
                _write(report, style, path)
            except UsageError as error:
                failed.append(error)
        if self.host is not None:
            from perftrack.ci.deliver import deliver

            deliver(report, self.host, _say)
        if failed:
            raise failed[0]

    @contextmanager
    def failures_shown(self) -> Generator[None]:
        """Around what makes the report: where none can be made, the host is told so."""
        try:
            yield
        except PerftrackError as error:
            if self.host is not None:
                from perftrack.ci.deliver import deliver_failure

                deliver_failure(error, self.host, _say)
            raise


def outputs(style: "Style", path: Path | None, wishes: Sequence[str]) -> Outputs:
    """What the options mean; UsageError, before anything is measured, for what cannot be written.

    A `--report FORMAT` without a file goes to stdout, in place of `--format`.
    """
    parsed = [_parse(wish) for wish in wishes]
    files = [(one, file) for one, file in parsed if file is not None and one != _CI]
    printed = [one for one, file in parsed if file is None and one != _CI]
    if path is not None:
        files.insert(0, (style, path))
    for _, file in files:
        check(file)
    host = None
    if any(one == _CI for one, _ in parsed):
        from perftrack.ci.host import this_host

        host = this_host(os.environ)
    return Outputs(tuple(printed) or (style,), tuple(files), host)


def _parse(wish: str) -> tuple[Any, Path | None]:
    name, colon, path = wish.partition(":")
    if name not in (*FORMATS, _CI):
        close = difflib.get_close_matches(name, (*FORMATS, _CI), n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(FORMATS)} and {_CI}"
        raise UsageError(f"--report {wish}: no format is called {name!r}; {hint}")
    if name == _CI and colon:
        raise UsageError(f"--report {wish}: `ci` knows itself where to write; leave out {colon + path!r}")
    if colon and not path:
        raise UsageError(f"--report {wish}: the file is missing; leave out the colon for standard output")
    return name, Path(path) if path else None


def check(path: Path) -> None:
    """Refuse a file that cannot be written before anything is measured for it."""
    if path.is_dir():
        raise UsageError(f"-o {path} is a folder; name a file in it")
    if not (path.parent.is_dir() and os.access(path if path.exists() else path.parent, os.W_OK)):
        raise UsageError(f"-o {path}: the folder {path.parent} does not exist or cannot be written")


def _print(report: "Report", style: "Style") -> None:
    from perftrack.report import render

    text = render(report, style, terminal=sys.stdout.isatty())
    # for programs, whatever letters the terminal knows
    click.echo(harmless(text) if style == "text" else text.encode())


def _write(report: "Report", style: "Style", path: Path) -> None:
    from perftrack.report import render

    try:
        path.write_text(render(report, style, terminal=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"-o {path}: {error.strerror}; the run is stored: perftrack report latest") from error


def _say(text: str) -> None:
    click.echo(text, err=True)


def write_value(value: Any, text: str, style: "Style") -> None:
    """Print a value as JSON, or the text that was made of it."""
    if style == "json":
        import msgspec

        click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2))
    else:
        click.echo(harmless(text))

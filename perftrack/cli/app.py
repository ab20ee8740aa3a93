"""Commands and options: parse, call one pipeline function, write its answer, return the exit code."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import click

from perftrack import __version__
from perftrack.errors import UsageError

Format = Literal["text", "json", "markdown"]

_db = click.option("--db", metavar="URL", help="Database: a SQLAlchemy URL or a SQLite file [env PERFTRACK_DB].")
_device = click.option("-d", "--device", default="", metavar="CLASS", help="Device class (a glob), or `cpu`.")
_format = click.option(
    "--format", "style", type=click.Choice(["text", "json", "markdown"]), default="text", show_default=True
)
_output = click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the report to a file too.")


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, message="perftrack %(version)s")
def app() -> None:
    """Regression tests and performance tracking for kernel fusion.

    Exit codes: 0 no confirmed slowdown, 1 confirmed slowdown or a case newly failing or wrong, 2 usage,
    3 infrastructure (no verdict), 4 incomplete (nothing measured, coverage too low).
    """


def _options(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def add(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
        return function

    return add


@app.command()
@click.argument("suites", nargs=-1, metavar="[SUITE]...")
@click.option("-k", "expression", default="", metavar="EXPR", help="Cases by name: `softmax and not float16`.")
@click.option("--head", metavar="REV", help="What to measure [default: the work tree as it is].")
@click.option(
    "--base",
    default="auto",
    metavar="REV|auto|none",
    show_default=True,
    help="What to compare with; auto: the merge-base with the main branch, else the parent.",
)
@_options(_device)
@click.option("--rounds", type=int, metavar="N", help="Fresh processes a case is measured in [default: 3].")
@click.option("--quick", is_flag=True, help="Shorter measuring, less certain: a series of its own.")
@click.option(
    "--address", metavar="HOST:PORT", envvar="RAY_ADDRESS", help="Ray cluster [env RAY_ADDRESS; default: here]."
)
@click.option("--resume", metavar="RUN", help="Finish an interrupted run; nothing is measured twice.")
@_options(_db, _format, _output)
def submit(
    suites: tuple[str, ...],
    expression: str,
    head: str | None,
    base: str,
    device: str,
    rounds: int | None,
    quick: bool,  # noqa: FBT001 (click passes options by name)
    address: str | None,
    resume: str | None,
    db: str | None,
    style: Format,
    output: Path | None,
) -> int:
    """Measure a revision, compare it with its base, store and report."""
    from perftrack.cli.talk import make_talk
    from perftrack.pipeline.submit import Request
    from perftrack.pipeline.submit import submit as run

    _check_output(output)
    request = Request(
        start=Path.cwd(),
        suites=suites,
        expression=expression,
        head=head,
        base=base,
        device=device,
        rounds=rounds,
        quick=quick,
        database=db,
        address=address,
        resume=resume,
    )
    report = run(request, make_talk())
    _write(report, style, output)
    return report.exit_code


@app.command()
@click.argument("run", default="latest")
@_options(_db, _format, _output)
def report(run: str, db: str | None, style: Format, output: Path | None) -> int:
    """Print the report of a stored RUN (its first digits, or `latest`)."""
    from perftrack.pipeline.reports import report_of

    _check_output(output)
    with _store(db) as store:
        made = report_of(store, store.find_run(run))
    _write(made, style, output)
    return made.exit_code


def _store(db: str | None) -> Any:
    from perftrack import config
    from perftrack.store import Store, default_url

    url = config.database_url(db, config.settings_near(Path.cwd())) or default_url()
    return Store.open(url, create=False)


def _check_output(output: Path | None) -> None:
    if output is not None and not (output.parent.is_dir() and os.access(output.parent, os.W_OK)):
        raise UsageError(f"-o {output}: the folder {output.parent} does not exist or cannot be written")


def _write(report: Any, style: Format, output: Path | None) -> None:
    from perftrack.report import render

    click.echo(render(report, style, terminal=sys.stdout.isatty()))
    if output is not None:
        try:
            output.write_text(render(report, style, terminal=False) + "\n", encoding="utf-8")
        except OSError as error:
            raise UsageError(f"-o {output}: {error.strerror}; the run is stored: perftrack report latest") from error

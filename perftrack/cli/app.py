"""Commands and options: parse, call one pipeline function, write its answer, return the exit code."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from perftrack import __version__
from perftrack.cli import database, exporting, files, judging, pages, starting, sweeping
from perftrack.cli import output as output_file
from perftrack.cli.group import Group
from perftrack.cli.opening import open_store
from perftrack.cli.opening import option as _db
from perftrack.errors import UsageError

if TYPE_CHECKING:
    from perftrack.report import Style

_device = click.option("-d", "--device", default="", metavar="CLASS", help="Device class (a glob), or `cpu`.")
_address = click.option(
    "--address", metavar="HOST:PORT", envvar="RAY_ADDRESS", help="Ray cluster [env RAY_ADDRESS; default: here]."
)
_json = click.option("--format", "style", type=click.Choice(["text", "json"]), default="text", show_default=True)
_format = click.option("--format", "style", type=click.Choice(output_file.FORMATS), default="text", show_default=True)
_output = click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the report to a file too.")
_report = click.option(
    "--report",
    "wishes",
    multiple=True,
    metavar="FORMAT[:FILE]",
    help="The report once more, in any format, to a file or stdout; `ci`: to the CI host (summary, annotations, one "
    "comment). Repeatable.",
)


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, message="perftrack %(version)s")
def app() -> None:
    """Regression tests and performance tracking for kernel fusion.

    Exit codes: 0 no confirmed slowdown (but acknowledged ones), 1 confirmed slowdown or a case newly failing or
    wrong, 2 usage, 3 infrastructure (no verdict), 4 incomplete (nothing measured, coverage too low).
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
    "--address",
    metavar="HOST:PORT|URL",
    envvar="RAY_ADDRESS",
    help="Ray cluster, or its dashboard (http://…:8265) from outside [env RAY_ADDRESS; default: here].",
)
@click.option("--resume", metavar="RUN", help="Finish an interrupted run; nothing is measured twice.")
@_options(_db, _format, _output, _report)
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
    style: "Style",
    output: Path | None,
    wishes: tuple[str, ...],
) -> int:
    """Measure a revision, compare it with its base, store and report."""
    from perftrack.cli.talk import make_talk
    from perftrack.pipeline.submit import Request
    from perftrack.pipeline.submit import submit as run

    outputs = output_file.outputs(style, output, wishes)
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
    with outputs.failures_shown():
        report = run(request, make_talk())
    outputs.write(report)
    return report.exit_code


@app.command()
@click.argument("run", default="latest")
@_options(_db, _format, _output, _report)
def report(run: str, db: str | None, style: "Style", output: Path | None, wishes: tuple[str, ...]) -> int:
    """Print the report of a stored RUN (its first digits, or `latest`)."""
    from perftrack.pipeline.reports import report_of

    outputs = output_file.outputs(style, output, wishes)
    with outputs.failures_shown(), open_store(db) as store:
        made = report_of(store, store.find_run(run))
    outputs.write(made)
    return made.exit_code


@app.command()
@click.argument("file", type=click.Path(path_type=Path))
def comment(file: Path) -> None:
    """Post the report in FILE (`--report json:FILE`) as the one comment of this job on the pull request.

    For a second workflow, whose token may write: a pull request from a fork is measured with one that may not. FILE
    may come from anybody; which pull request it is about is taken from the event.
    """
    import os

    from perftrack.ci.deliver import post_alone
    from perftrack.ci.host import this_host
    from perftrack.report import as_json

    click.echo(post_alone(as_json.read(file), this_host(os.environ)), err=True)


@app.command()
@click.argument("left")
@click.argument("right")
@_options(_device, _db, _json)
def compare(left: str, right: str, device: str, db: str | None, style: "Style") -> None:
    """Put two stored revisions side by side; LEFT is the base."""
    from perftrack.pipeline.reports import comparison_of
    from perftrack.report import tables

    with open_store(db) as store:
        made = comparison_of(store, left, right, device=device, start=Path.cwd())
    output_file.write_value(made, tables.comparison(made, _look()), style)


@app.command()
@click.argument("case")
@click.option("--variant", default="", metavar="NAME", help="Only this variant [default: every candidate].")
@click.option("--last", type=click.IntRange(min=1), default=50, show_default=True, help="Newest measurements only.")
@_options(_device, _db, _json)
def history(case: str, variant: str, last: int, device: str, db: str | None, style: "Style") -> None:
    """Print the stored series of one CASE."""
    from perftrack.pipeline.lines import lines_at
    from perftrack.pipeline.reports import histories_of
    from perftrack.report import tables

    with open_store(db) as store:
        lines = lines_at(Path.cwd(), store)
        made = histories_of(store, case, device=device, variant=variant, last=last, lines=lines)
    look = _look()
    output_file.write_value(made, "\n\n".join(tables.history(series, look) for series in made), style)


@app.command()
@click.option("--open/--all", "only_open", default=True, show_default=True, help="Only the open ones, or every one.")
@_options(_db, _json)
def regressions(only_open: bool, db: str | None, style: "Style") -> None:  # noqa: FBT001 (click passes options by name)
    """List what got slower, less accurate or broken and has not been fixed."""
    from perftrack.pipeline.life import rows
    from perftrack.report import tables

    with open_store(db) as store:
        made = rows(store, everything=not only_open)
    output_file.write_value(made, tables.regressions(made, _look()), style)


@app.command()
@click.argument("target", metavar="ID|CASE-GLOB")
@click.option("--reason", required=True, metavar="TEXT", help="Why, for those who read it later.")
@click.option("--until", default="", metavar="DATE", help="From the beginning of this day (UTC) on it is open again.")
@click.option(
    "--as",
    "state",
    type=click.Choice(["acknowledged", "invalid", "infra"]),
    default="acknowledged",
    show_default=True,
    help="Real and accepted, nothing wrong, or the machine's doing.",
)
@_options(_db, _json)
def ack(target: str, reason: str, until: str, state: str, db: str | None, style: "Style") -> None:
    """Mark a regression, or the open ones of cases that fit a pattern, so that it no longer fails a submission.

    It is open again when it grows, when DATE comes, or when it was fixed and comes back.
    """
    from perftrack.judge.life import State
    from perftrack.pipeline.life import ack as mark
    from perftrack.report import tables

    with open_store(db) as store:
        made = mark(store, target, reason=reason, state=State(state), until=until, start=Path.cwd())
    output_file.write_value(made, tables.regressions(made, _look()), style)


@app.command()
@_options(_device, _address, _json)
def devices(device: str, address: str | None, style: "Style") -> None:
    """List the devices of the pool, and what stands against using them."""
    from perftrack.pipeline.reports import device_rows
    from perftrack.pool.client import Pool
    from perftrack.report import tables

    pool = Pool(address=address, want=device, trees={}, suite_paths=(), methods={}, seed=0, case_timeout_s=60.0)
    with pool:
        made = device_rows(pool.devices())
    output_file.write_value(made, tables.devices(made, _look()), style)


app.add_command(files.import_)
app.add_command(exporting.export)
app.add_command(judging.judge)
app.add_command(judging.bisect)
app.add_command(database.db)
app.add_command(pages.serve)
app.add_command(pages.publish)
app.add_command(starting.init)
app.add_command(starting.demo)
app.add_command(starting.completion)
app.add_command(sweeping.sweep)
app.add_command(sweeping.watch)
app.add_command(sweeping.cancel)


@app.command()
@click.option(
    "--measure", is_flag=True, help="Measure HEAD against itself: how small a change shows here. Stores nothing."
)
@click.option(
    "--suite", "suites", multiple=True, metavar="NAME", help="To measure; repeatable [default: all, a case each]."
)
@click.option("--rounds", type=click.IntRange(min=1), metavar="N", help="Fresh processes to measure in [default: 3].")
@_options(_device, _db, _json)
def doctor(
    measure: bool,  # noqa: FBT001 (click passes options by name)
    suites: tuple[str, ...],
    rounds: int | None,
    device: str,
    db: str | None,
    style: "Style",
) -> int:
    """Say what is here, what is missing, and what to type about it; with --measure, how well it measures."""
    if measure:
        return _measure_noise(suites, rounds, device, style)
    if suites or rounds or device:
        raise UsageError("--suite, --rounds and -d say how to measure: add --measure")
    from perftrack.pipeline.doctor import examine

    checks = list(examine(Path.cwd(), db))
    lines = [f"{check.level:<5} {check.subject:<10} {check.text}" for check in checks]
    output_file.write_value(checks, "\n".join(lines), style)
    return 3 if any(check.level == "FAIL" for check in checks) else 0


def _measure_noise(suites: tuple[str, ...], rounds: int | None, device: str, style: "Style") -> int:
    from perftrack.cli.talk import make_talk
    from perftrack.pipeline.noise import Request, measure_noise
    from perftrack.report import noise

    request = Request(start=Path.cwd(), suites=suites, rounds=rounds, device=device)
    made = measure_noise(request, make_talk())
    output_file.write_value(made, noise.text(made, _look()), style)
    return made.exit_code


def _look() -> Any:
    """How standard output is to be written to."""
    from perftrack.report import text

    return text.look(terminal=sys.stdout.isatty())

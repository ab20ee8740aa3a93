"""`perftrack import`: other tools' files."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from perftrack.cli.opening import open_store
from perftrack.cli.opening import option as _db

if TYPE_CHECKING:
    from perftrack.pipeline.imports import FileReport

# as in perftrack.interop, which is not imported for `--help`; a test compares them
FORMATS = ("pytest-benchmark", "google-benchmark", "nvbench", "asv", "github-action-benchmark", "bencher", "go")


@click.command("import")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
@click.option(
    "--format", "name", type=click.Choice(["auto", *FORMATS]), default="auto", show_default=True, help="Of the files."
)
@click.option("--revision", default="", metavar="REV", help="What was measured, for files that name no commit.")
@click.option("--repo", default="", metavar="NAME", help="Repository, for files that name none [default: this one].")
@click.option("--suite", default="", metavar="NAME", help="Suite, for files that name none [default: the format].")
@click.option("-d", "--device", default="", metavar="CLASS", help="Device class, for files that name no machine.")
@_db
def import_(
    files: tuple[Path, ...], name: str, revision: str, repo: str, suite: str, device: str, db: str | None
) -> int:
    """Store the results in other tools' FILEs, as series of their own.

    The same file again changes nothing. What cannot be read is reported with its place, the rest goes in.
    Exit codes: 0 all stored, 2 a file cannot be read, 4 a record cannot be read, or there was nothing.
    """
    from perftrack.pipeline import imports

    request = imports.Request(
        start=Path.cwd(),
        files=files,
        format=None if name == "auto" else name,  # pyright: ignore[reportArgumentType]
        repo=repo,
        revision=revision,
        suite=suite,
        device=device,
    )
    with open_store(db, create=True) as store:
        report = imports.import_files(request, store)
    for one in report.files:
        _say(one)
    return report.exit_code


def _say(one: "FileReport") -> None:
    if one.error:
        click.echo(f"perftrack: {one.error}", err=True)
        return
    notes = one.notes
    for kind, problems, count in (
        ("cannot be read", notes.bad, notes.bad_count),
        ("left out", notes.left_out, notes.left_out_count),
    ):
        for problem in problems:
            click.echo(f"{problem} ({kind})", err=True)
        if count > len(problems):
            click.echo(f"{notes.file}: {count - len(problems)} more {kind}", err=True)
    click.echo(f"{click.format_filename(one.file)}: {_summary(one)}")


def _summary(one: "FileReport") -> str:
    if not one.runs:
        return "stored before, nothing to do" if one.known else "no results"
    from perftrack.report.words import counted

    parts = [
        f"{counted(one.results, 'result')} of {_some(one.revisions)} on {_some(one.devices)} ({one.format})",
        f"run {one.runs[0][:8]}" if len(one.runs) == 1 else f"{len(one.runs)} runs",
    ]
    return ", ".join(parts) + (f", {one.known} stored before" if one.known else "")


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")

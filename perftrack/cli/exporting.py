"""`perftrack export`: stored results in another tool's format, or as a table."""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import click

from perftrack.cli import output as output_file
from perftrack.cli.opening import open_store
from perftrack.cli.opening import option as _db
from perftrack.errors import UsageError

# as in perftrack.interop, which is not imported for `--help`; a test compares them
EXPORTS = ("bencher", "github-action-benchmark", "openmetrics")
TABLES = ("csv", "parquet", "arrow")


@click.command()
@click.argument("run", required=False)
@click.option("--format", "name", type=click.Choice([*EXPORTS, *TABLES]), required=True)
@click.option("-d", "--device", metavar="CLASS", help="Only this device class (a glob).")
@click.option("--case", metavar="GLOB", help="Only these cases (a table).")
@click.option("--suite", metavar="GLOB", help="Only these suites (a table).")
@click.option("--variant", metavar="GLOB", help="Only these variants (a table).")
@click.option("--branch", metavar="GLOB", help="Only commits measured on these branches (a table).")
@click.option("--since", metavar="REV", help="Only this stored commit and later ones (a table).")
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="Only the newest N commits (a table).")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to a file instead of stdout.")
@_db
def export(
    run: str | None, name: str, device: str | None, output: Path | None, db: str | None, **narrow: str | int | None
) -> None:
    """Print the results of a stored RUN (its first digits, or `latest`) in another tool's format, or as a table.

    A table (csv, parquet, arrow) has every stored result where no RUN is named, a row for each run, case, device
    class, variant and side; the columns' names say their unit. Another tool's format is of the newest run then.
    """
    from perftrack.pipeline import exports

    if name not in TABLES and (given := [option for option, value in narrow.items() if value is not None]):
        raise UsageError(f"--{given[0]} chooses rows of a table, and {name} is none: leave it out")
    if output is not None:
        output_file.check(output)
    with open_store(db) as store:
        if name in TABLES:
            of = exports.Selection(run=run, device=device, **narrow)  # pyright: ignore[reportArgumentType]
            with _binary(output, name) as file:
                exports.export_table(store, file, name, of)  # pyright: ignore[reportArgumentType]
            return
        text = exports.export_run(store, run or "latest", name, device=device or "")  # pyright: ignore[reportArgumentType]
    with _binary(output, "text") as file:
        file.write(text.encode())


@contextmanager
def _binary(path: Path | None, kind: str) -> Generator[BinaryIO]:
    """The file, or stdout; UsageError where it cannot be written, or would be unreadable on a terminal."""
    if path is None:
        if kind in {"parquet", "arrow"} and sys.stdout.isatty():
            raise UsageError(f"{kind} is not for reading on a terminal: name a file with -o")
        yield sys.stdout.buffer
        return
    # beside it, so that what was there stays whole until the new one is; a pipe or device is written to itself
    part = path if path.exists() and not path.is_file() else path.with_name(f".{path.name}.part-{os.getpid()}")
    try:
        try:
            with part.open("wb") as file:
                yield file
            if part != path:
                part.replace(path)
        finally:
            if part != path:
                part.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"-o {path}: {error.strerror}") from error

"""`perftrack db`: looking after the database."""

import re
import time
from pathlib import Path

import click

from perftrack.cli.group import Group
from perftrack.cli.opening import open_store, option
from perftrack.errors import UsageError

_DAY_US = 86_400_000_000


@click.group(cls=Group)
def db() -> None:
    """Look after the database."""


@db.command()
@option
def upgrade(db: str | None) -> None:
    """Bring the database to this program's schema."""
    with open_store(db, checked=False) as store:
        done = store.upgrade()
    if done.before == done.after:
        click.echo(f"{done.after}, nothing to do")
    else:
        click.echo(f"{done.before or 'empty'} -> {done.after}")
    if done.copy is not None:
        click.echo(f"as it was before: {done.copy}")


@db.command()
@option
def current(db: str | None) -> None:
    """Print the database's schema revision."""
    with open_store(db, checked=False) as store:
        click.echo(store.current() or "empty")


@db.command()
@option
def check(db: str | None) -> int:
    """Ask the database whether it is whole: pages, rows, references, and the schema.

    Exit codes: 0 it is, 3 it is not; every line says one thing that is wrong.
    """
    from perftrack.report.words import counted

    with open_store(db) as store:
        found, label = store.problems(), store.label
    for line in found:
        click.echo(line)
    click.echo(f"{label}: {counted(len(found), 'problem') if found else 'sound'}")
    return 3 if found else 0


@db.command()
@click.argument("file", type=click.Path(path_type=Path))
@option
def backup(file: Path, db: str | None) -> None:
    """Copy a SQLite database to a new FILE, while others may be writing. PostgreSQL has pg_dump for that."""
    with open_store(db) as store:
        store.back_up(file)
    click.echo(f"{store.label} copied to {file}, {file.stat().st_size} bytes")


@db.command()
@click.option("--keep-samples", "keep", default="90d", metavar="DAYS", show_default=True, help="Of newer runs.")
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@option
def prune(keep: str, dry_run: bool, db: str | None) -> None:  # noqa: FBT001 (click passes options by name)
    """Let the raw samples of older complete runs expire into their quantiles.

    Results, verdicts, regressions and the attempts themselves stay for ever.
    """
    from perftrack.report.words import counted

    found = re.fullmatch(r"(\d{1,6})d", keep)
    if found is None:
        raise UsageError(f"--keep-samples {keep}: write a number of days, e.g. 90d")
    before_us = time.time_ns() // 1000 - int(found[1]) * _DAY_US
    with open_store(db) as store:
        done = store.expiring(before_us) if dry_run else store.expire(before_us)
    goes = "would expire" if dry_run else "expired"
    what = f"{counted(done.samples, 'measurement')} in {counted(done.runs, 'run')}"
    click.echo(f"raw samples of {what} {goes}: {done.bytes} bytes")
    if done.unfinished:
        click.echo(
            f"{counted(done.unfinished, 'run')} as old, never completed: samples kept (`perftrack submit --resume RUN`)"
        )


@db.command()
@click.argument("old")
@click.argument("new")
@click.option("--suite", metavar="NAME", help="Only in this suite [default: every one that has both].")
@option
def alias(old: str, new: str, suite: str | None, db: str | None) -> None:
    """Show the history of case OLD under the name NEW, in results, history and compare.

    Both are keys of cases, or names of benchmarks: then it goes for all their cases. `alias OLD OLD` ends it.
    """
    with open_store(db) as store:
        for name, before, after in store.rename(old, new, suite):
            click.echo(f"{name}: {before} " + ("has its own name" if before == after else f"-> {after}"))

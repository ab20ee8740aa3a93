"""`perftrack sweep`, `perftrack watch` and `perftrack cancel`: long runs, and what to do about them from elsewhere."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perftrack.cli import output as output_file
from perftrack.cli.opening import open_store
from perftrack.cli.opening import option as _db

if TYPE_CHECKING:
    from perftrack.report import Style

_json = click.option("--format", "style", type=click.Choice(["text", "json"]), default="text", show_default=True)


@click.command()
@click.argument("name", default="", metavar="[NAME]")
@click.option("--since", metavar="last-sweep|REV", help="Only commits after this one [default: last-sweep].")
@click.option("--steps", type=click.IntRange(min=1), metavar="N", help="At most N commits: tags and merges first.")
@click.option("--fill-gaps", is_flag=True, help="Commits without results, in the middle of the widest gap first.")
@click.option("--budget", default="", metavar="TIME", help="Stop after this long, e.g. 3h or 90m.")
@click.option("-d", "--device", default="", metavar="CLASS", help="Device class (a glob), or `cpu`.")
@click.option("--address", metavar="HOST:PORT|URL", envvar="RAY_ADDRESS", help="Ray cluster, or its dashboard.")
@click.option("--detach", is_flag=True, help="Leave the work to the cluster at http://HEAD:PORT and return at once.")
@_db
@_json
def sweep(
    name: str,
    since: str | None,
    steps: int | None,
    fill_gaps: bool,  # noqa: FBT001 (click passes options by name)
    budget: str,
    device: str,
    address: str | None,
    detach: bool,  # noqa: FBT001
    db: str | None,
    style: "Style",
) -> int:
    """Measure many commits, each by itself: the sweep NAME of [tool.perftrack.sweeps].

    The newest commit first, then tags, merges and the rest, evenly spread. What is stored is not measured again: the
    same command goes on where an interrupted one was. Exit codes: 0, or 4 where something is left for the next time.
    """
    from perftrack.cli.talk import make_talk
    from perftrack.pipeline.sweep import Request
    from perftrack.pipeline.sweep import sweep as run
    from perftrack.report import sweep as shown
    from perftrack.report import text

    request = Request(
        start=Path.cwd(),
        name=name,
        since=since,
        steps=steps,
        fill_gaps=fill_gaps,
        budget=budget,
        device=device,
        database=db,
        address=address,
        detach=detach,
    )
    made = run(request, make_talk())
    output_file.write_value(made, shown.text(made, text.look(terminal=sys.stdout.isatty())), style)
    return made.exit_code


@click.command()
@click.argument("run", default="latest")
@_db
@_json
def watch(run: str, db: str | None, style: "Style") -> int:
    """Follow a RUN that another process carries out, and print its report at its end."""
    from perftrack.cli.talk import make_talk
    from perftrack.pipeline.following import watch as follow

    outputs = output_file.outputs(style, None, ())
    with open_store(db) as store:
        made = follow(store, store.find_run(run), make_talk())
    outputs.write(made)
    return made.exit_code


@click.command()
@click.argument("run")
@_db
def cancel(run: str, db: str | None) -> None:
    """Stop a RUN after the job at hand, wherever it is carried out; what was measured is kept."""
    from perftrack.pipeline.following import cancel as stop

    with open_store(db) as store:
        click.echo(stop(store, store.find_run(run)))

"""The commands for the first minutes: a configuration with a suite, and completion of what is typed."""

import os
import shlex
from pathlib import Path

import click

from perftrack.cli.opening import option
from perftrack.errors import UsageError

SHELLS = ("bash", "zsh", "fish")
TO_TRY = (
    "report",
    "history 'softmax[cols=4096,dtype=float16,rows=8192]'",
    "regressions --all",
    "judge --replay",
    "serve",
    "publish pages",
)
"""What shows something over the demo's database."""


@click.command()
@click.argument("folder", default="suites")
def init(folder: str) -> None:
    """Write the configuration and a first suite into this repository, the suite into FOLDER [default: suites].

    Nothing is overwritten. The suite runs at once, on a GPU and without one.
    """
    from perftrack.pipeline.starting import begin

    for path in begin(Path.cwd(), folder):
        click.echo(f"wrote {path}")
    click.echo("next: perftrack submit --quick --base none")


@click.command()
@option
def demo(db: str | None) -> None:
    """Fill a new database with a made-up history, to try reports and pages on; nothing is measured.

    Its repository and devices are called synthetic wherever they are shown. A database that holds anything else is
    refused.
    """
    from perftrack.pipeline.demo import fill
    from perftrack.store import Store

    url = db or os.environ.get("PERFTRACK_DB")
    if not url:
        raise UsageError("the demo needs a database of its own: perftrack demo --db demo.db")
    with Store.open(url) as store:
        made = fill(store)
        click.echo(f"{store.label}: " + (f"{made} synthetic runs" if made else "the synthetic runs are there already"))
    where = f" --db {shlex.quote(db)}" if db else ""
    for words in TO_TRY:
        click.echo(f"try: perftrack {words}{where}")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the script that lets SHELL complete commands and options.

    bash: eval "$(perftrack completion bash)" in ~/.bashrc; zsh: the same with zsh in ~/.zshrc;
    fish: perftrack completion fish > ~/.config/fish/completions/perftrack.fish
    """
    from click.shell_completion import get_completion_class

    from perftrack.cli.app import app

    script = get_completion_class(shell)
    if script is None:
        raise click.UsageError(f"no completion is known for {shell}; there is one for {', '.join(SHELLS)}")
    click.echo(script(app, {}, "perftrack", "_PERFTRACK_COMPLETE").source())

"""The commands for the first minutes: a configuration with a suite, and completion of what is typed."""

from pathlib import Path

import click

SHELLS = ("bash", "zsh", "fish")


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

"""The commands that show what is stored as web pages."""

from pathlib import Path

import click

from perftrack.cli.opening import open_store, option


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Another lets others in, and needs a token.")
@click.option("--port", type=click.IntRange(0, 65535), default=8787, show_default=True, help="0 takes any.")
@click.option(
    "--token",
    envvar="PERFTRACK_TOKEN",
    metavar="TEXT",
    help="Asked of everybody, and lets them acknowledge [env PERFTRACK_TOKEN, which no list of processes shows].",
)
@option
def serve(host: str, port: int, token: str | None, db: str | None) -> None:
    """Show what is stored as web pages, on this machine only."""
    from perftrack.web import access
    from perftrack.web.serve import check_installed
    from perftrack.web.serve import serve as answer

    check_installed()
    access.check(host, token)
    with open_store(db) as store:
        answer(store, host=host, port=port, token=token, say=click.echo)


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--last", type=click.IntRange(min=1), default=50, show_default=True, help="Newest runs only.")
@option
def publish(folder: Path, last: int, db: str | None) -> None:
    """Write the same pages into DIR, as files that open without a server."""
    from perftrack.report.words import counted
    from perftrack.web.publish import publish as write

    with open_store(db) as store:
        pages = write(store, folder, runs=last, say=lambda text: click.echo(text, err=True))
    click.echo(f"{folder / 'index.html'}: {counted(pages, 'page')}")

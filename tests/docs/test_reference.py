"""The reference has every command and option of the program, each in its place."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from perftrack.cli.app import app

DOCS = Path(__file__).parents[2] / "docs"


def commands(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from commands(inner, (*path, name))


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The one page, without those that `make docs` makes beside it."""
    source, site = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site")
    shutil.copy(DOCS / "reference.md", source)
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "text", "-c", str(DOCS), "-D", "root_doc=reference"]
    subprocess.run([*command, str(source), str(site)], check=True, timeout=120)
    return (site / "reference.txt").read_text()


def test_no_command_and_no_option_is_missing(built):
    parts = re.split(r"^ {3}(perftrack(?: [a-z]+)*) \[OPTIONS\].*$", built, flags=re.MULTILINE)
    found = dict(zip(parts[1::2], parts[2::2], strict=True))
    known = {" ".join(path): command for path, command in commands(app, ("perftrack",))}
    assert len(known) > 20
    assert set(found) == set(known)
    for name, command in known.items():
        listed = {
            word
            for line in found[name].splitlines()
            if line.startswith("-")
            for word in re.findall(r"--?[a-z-]+", line)
        }
        expected = {
            word
            for option in command.params
            if isinstance(option, click.Option)
            for word in (*option.opts, *option.secondary_opts)
        }
        assert expected <= listed, name
        assert command.help, name


def test_every_page_is_led_to():
    index = (DOCS / "index.md").read_text()
    for page in DOCS.glob("*.md"):
        assert page.stem == "index" or re.search(rf"^{page.stem}$", index, flags=re.MULTILINE), page

"""What a terminal, a pipe and an old terminal get of the commands that read the store."""

import os
import pty
import re
import subprocess
import sys

import pytest
from test_command_line import CASE, database  # noqa: F401 - a fixture

from perftrack.report.layout import cell_width


def on_a_terminal(args, environ):
    """What the command writes to a terminal of its own."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "perftrack", *args], stdout=theirs, stderr=theirs, env=environ
    ) as done:
        os.close(theirs)
        shown = b""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # so Linux says that the other end is closed
                break
            if not piece:
                break
            shown += piece
    os.close(ours)
    return done.returncode, shown.decode().replace("\r\n", "\n")


@pytest.fixture
def environ(database, tmp_path, monkeypatch):  # noqa: F811 - that fixture
    monkeypatch.chdir(tmp_path)
    passed = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLUMNS", "GITHUB_ACTIONS")}
    return {**passed, "PERFTRACK_DB": f"sqlite:///{database}", "TERM": "xterm"}


def test_a_terminal_gets_colours_and_its_own_width(environ):
    code, shown = on_a_terminal(["history", CASE.key], {**environ, "COLUMNS": "80"})
    assert code == 0
    assert "\x1b[" in shown
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    wide = [line for line in plain.splitlines() if cell_width(line) > 80]
    assert all("[" in line for line in wide), wide


def test_an_ascii_terminal_gets_ascii(environ):
    for args in (["history", CASE.key], ["compare", "0000007", "0000007"]):
        done = subprocess.run(
            [sys.executable, "-m", "perftrack", *args],
            env={**environ, "PYTHONIOENCODING": "ascii"},
            capture_output=True,
            check=False,
            timeout=60,
        )
        assert done.stderr == b"", args
        assert done.stdout.isascii()
        assert len(done.stdout) > 100

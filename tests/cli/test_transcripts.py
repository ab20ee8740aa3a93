"""What every command prints at 80, 120 and 200 columns, with and without colour, kept whole to be looked at.

With PERFTRACK_WRITE_GOLDEN set they are written instead of compared. A transcript is that of a terminal: standard
output and error in the order in which they came, then the exit code where it is not 0.
"""

import io
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from perftrack import cli
from perftrack.cli.app import app
from perftrack.pipeline import synthetic
from perftrack.store import Store

GOLDEN = Path(__file__).parent / "golden"
WIDTHS = (80, 120, 200)
WAYS = [(width, color) for color in (False, True) for width in WIDTHS]

SOFTMAX = "softmax[cols=4096,dtype=float16,rows=8192]"
NORM = "residual_rms_norm[cols=8192,dtype=float16,rows=4096]"
BENCHER = '{"sum": {"latency": {"value": 2000.0, "lower_value": 1990.0, "upper_value": 2010.0}}}'


class Line(NamedTuple):
    words: tuple[str, ...]
    writes: bool = False
    """Into the database or beside it: each time into a new copy."""
    db: bool = True
    """`--db demo.db` is added."""


LINES = {
    "report": Line(("report",)),
    "report-green": Line(("report", "GREEN")),
    "report-faster": Line(("report", "FASTER")),
    "report-failed": Line(("report", "FAILED")),
    "report-first": Line(("report", "FIRST")),
    "report-unknown": Line(("report", "00000000")),
    "compare": Line(("compare", "SLOW_BASE", "SLOW_HEAD")),
    "compare-apart": Line(("compare", "FIRST_HEAD", "SLOW_HEAD", "-d", "*large*")),
    "history": Line(("history", NORM, "-d", "*small*", "--last", "30")),
    "history-unknown": Line(("history", "sofmax")),
    "regressions": Line(("regressions",)),
    "regressions-all": Line(("regressions", "--all")),
    "ack": Line(("ack", "4", "--reason", "smaller code, as was agreed"), writes=True),
    "ack-unknown": Line(("ack", "9", "--reason", "none")),
    "judge": Line(("judge", "softmax", "--replay")),
    "judge-creep": Line(("judge", "layer_norm*", "--replay", "-d", "*small*")),
    "judge-without": Line(("judge",)),
    "export": Line(("export", "--format", "bencher", "-d", "*small*")),
    "export-csv": Line(("export", "--format", "csv", "--case", SOFTMAX, "--variant", "fused", "--last", "1")),
    "import": Line(("import", "bencher.json", "--device", "lab", "--db", "new.db"), writes=True, db=False),
    "import-none": Line(("import", "none.json")),
    "watch": Line(("watch",)),
    "cancel": Line(("cancel", "latest")),
    "publish": Line(("publish", "pages", "--db", "empty.db"), db=False),
    "publish-none": Line(("publish", "pages", "--db", "none.db"), db=False),
    "serve-others": Line(("serve", "--host", "192.0.2.1")),
    "demo": Line(("demo",)),
    "demo-where": Line(("demo",), db=False),
    "db-current": Line(("db", "current")),
    "db-upgrade": Line(("db", "upgrade")),
    "db-check": Line(("db", "check")),
    "db-backup": Line(("db", "backup", "copy.db"), writes=True),
    "db-prune": Line(("db", "prune", "--dry-run", "--keep-samples", "0d")),
    "db-alias": Line(("db", "alias", "adamw", "adamw"), writes=True),
    "init-outside": Line(("init",), db=False),
    "submit-outside": Line(("submit",)),
    "sweep-outside": Line(("sweep", "nightly")),
    "bisect-outside": Line(("bisect", NORM, "v1..v2")),
    "comment-none": Line(("comment", "none.json"), db=False),
    "completion-other": Line(("completion", "tcsh"), db=False),
    "doctor-alone": Line(("doctor", "--rounds", "3")),
    "devices-nowhere": Line(("devices", "--address", "nowhere"), db=False),
    "no-such-command": Line(("sumbit",), db=False),
}


def commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name, inner in command.commands.items() if isinstance(command, click.Group) else ():
        yield from commands(inner, (*path, name))


HELP = {"-".join(("help", *path)): Line((*path, "--help"), db=False) for path in commands(app)}


class Terminal(io.TextIOWrapper):
    """Both streams of a program on a terminal, or of one whose output is redirected."""

    def __init__(self, *, terminal: bool) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", write_through=True)
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


@pytest.fixture(scope="module")
def runs() -> dict[str, str]:
    """Names of runs and commits of the demo, so that no digits stand in a test."""
    run = {"FIRST": 1, "GREEN": 10, "FASTER": 41, "FAILED": 46}
    commit = {"FIRST_HEAD": 1, "SLOW_BASE": synthetic.COMMITS - 1, "SLOW_HEAD": synthetic.COMMITS}
    return {name: synthetic.run_uid(number)[:8] for name, number in run.items()} | {
        name: synthetic.revision(number).sha[:7] for name, number in commit.items()
    }


@pytest.fixture(scope="module")
def shared(demo_db, tmp_path_factory) -> Path:
    """A folder in no repository, for commands that change nothing."""
    folder = tmp_path_factory.mktemp("shared")
    furnish(folder, demo_db)
    Store.open(str(folder / "empty.db")).close()
    return folder


def furnish(folder, demo_db):
    shutil.copy(demo_db, folder / "demo.db")
    (folder / "bencher.json").write_text(BENCHER)
    os.utime(folder / "bencher.json", (1_767_600_000, 1_767_600_000))


@pytest.fixture
def type_in(monkeypatch):
    """Run the program in this process: what a terminal of that width then shows."""

    def run(words, folder, width, *, color):
        monkeypatch.chdir(folder)
        for name in ("CI", "GITHUB_ACTIONS", "GITLAB_CI", "NO_COLOR", "FORCE_COLOR", "PERFTRACK_DB", "RAY_ADDRESS"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setenv("TERM", "xterm-256color")
        monkeypatch.setenv("LOGNAME", "ada")
        screen = Terminal(terminal=color)
        with monkeypatch.context() as patched:
            patched.setattr(sys, "stdout", screen)
            patched.setattr(sys, "stderr", screen)
            patched.setattr(sys, "argv", ["perftrack", *words])
            before = signal.getsignal(signal.SIGTERM)
            with pytest.raises(SystemExit) as ended:
                cli.main()
            signal.signal(signal.SIGTERM, before)
        return steady(screen.buffer.getvalue().decode(), folder) + (
            f"[{ended.value.code}]\n" if ended.value.code else ""
        )

    return run


def steady(text, folder):
    """Without what differs from machine to machine."""
    text = text.replace(str(folder), "/home/ada")
    text = re.sub(r"\d+ bytes", "N bytes", text)
    return re.sub(r"perftrack \d+\.\d+[^ ]*", "perftrack X.Y", text)


def together(shown):
    """The transcripts of all ways, equal ones once."""
    parts = []
    for text in dict.fromkeys(shown.values()):
        ways = [f"{width}{' in colour' if color else ''}" for (width, color), one in shown.items() if one == text]
        parts.append(f"=== {'every way' if len(ways) == len(WAYS) else ', '.join(ways)}\n{text}")
    return "".join(parts)


@pytest.mark.parametrize("name", [*LINES, *HELP])
def test_transcript(name, demo_db, shared, runs, type_in, tmp_path):
    line = (LINES | HELP)[name]
    words = [*(runs.get(word, word) for word in line.words), *(("--db", "demo.db") if line.db else ())]
    shown = {}
    for width, color in WAYS:
        folder = shared
        if line.writes:
            folder = tmp_path / f"{width}{color}"
            folder.mkdir()
            furnish(folder, demo_db)
        shown[width, color] = type_in(words, folder, width, color=color)
    text = together(shown)
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("PERFTRACK_WRITE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_every_command_has_one():
    named = {line.words[:2] if line.words[0] == "db" else line.words[:1] for line in LINES.values()}
    assert {path for path in commands(app) if path not in ((), ("db",))} <= named


def test_a_real_terminal_shows_the_same(shared, command, type_in):
    """The program in a process of its own, on a pseudo-terminal of 80 columns."""
    ours, theirs = pty.openpty()
    words = ["report", "--db", "demo.db"]
    environment = {**os.environ, "COLUMNS": "80", "TERM": "xterm-256color", "NO_COLOR": ""}
    with subprocess.Popen([command, *words], cwd=shared, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        seen = b"".join(iter(lambda: _read(ours), b""))
    os.close(ours)
    text = steady(seen.decode().replace("\r\n", "\n"), shared) + f"[{process.returncode}]\n"
    assert text == type_in(words, shared, 80, color=True)
    assert "\x1b[" in text


def _read(terminal):
    """Empty at the end, which Linux makes an error."""
    try:
        return os.read(terminal, 4096)
    except OSError:
        return b""

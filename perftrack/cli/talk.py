"""How progress looks: bars on a terminal, plain lines elsewhere. Everything goes to stderr."""

import os
import sys
import time

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from perftrack.cli.log import harmless


class PlainTalk:
    """Lines for logs: what was decided, and a count every few seconds."""

    def __init__(self, *, every_s: float = 10.0) -> None:
        self.every_s = every_s
        self.title, self.total, self.done = "", 0, 0
        self.last_s = 0.0

    def say(self, text: str) -> None:
        """A line for the user."""
        click.echo(harmless(text), err=True)

    def stage(self, title: str, total: int) -> None:
        """A stage with `total` jobs begins."""
        self.title, self.total, self.done, self.last_s = title, total, 0, time.monotonic()
        self.say(f"{title:<7} {total} job" + ("" if total == 1 else "s"))

    def working(self, text: str) -> None:
        """Too much for a log."""

    def advance(self) -> None:
        """One job is done; said at most every `every_s` seconds."""
        self.done += 1
        now = time.monotonic()
        if now - self.last_s >= self.every_s and self.done < self.total:
            self.last_s = now
            self.say(f"{self.title:<7} {self.done}/{self.total}")

    def end(self) -> None:
        """The stage is over."""
        self.say(f"{self.title:<7} {self.done}/{self.total} done")


class TerminalTalk(PlainTalk):
    """A live bar under the lines."""

    def __init__(self) -> None:
        super().__init__()
        self.console = Console(stderr=True)
        self.bar: Progress | None = None
        self.task = TaskID(0)

    def say(self, text: str) -> None:
        """A line for the user, above the bar."""
        self.console.print(text, markup=False, highlight=False)

    def stage(self, title: str, total: int) -> None:
        """A bar with `total` steps."""
        self.bar = Progress(
            TextColumn(f"  {title:<7}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[now]}", markup=False),
            console=self.console,
            transient=True,
        )
        self.bar.start()
        self.task = self.bar.add_task(title, total=total, now="")

    def working(self, text: str) -> None:
        """What is going on now, beside the bar."""
        if self.bar:
            self.bar.update(self.task, now=text)

    def advance(self) -> None:
        """One step."""
        if self.bar:
            self.bar.advance(self.task)

    def end(self) -> None:
        """Take the bar away."""
        if self.bar:
            self.bar.stop()
            self.bar = None


def make_talk() -> PlainTalk:
    """Bars where a person looks at a terminal, lines in CI and pipes."""
    live = sys.stderr.isatty() and not os.environ.get("CI") and os.environ.get("TERM") != "dumb"
    return TerminalTalk() if live else PlainTalk()

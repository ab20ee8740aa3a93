"""What can befall a pool, done to real processes of the soak: to those of its own sessions only."""

import os
import random
import signal
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Protocol

from several_nodes import Nodes

MOST_NODES, FEWEST_NODES = 4, 2


class Submission(Protocol):
    """What the faults need to know of the command that is being tested."""

    database: Path

    @property
    def pid(self) -> int:
        """Of the command as it runs now."""

    def resume_too(self) -> str:
        """Start a second driver on the same run; how that ended."""


class Faults:
    """Injects one random fault at a time; each says what it did, or None where that cannot be done now."""

    def __init__(self, nodes: Nodes, random_: random.Random) -> None:
        self._nodes = nodes
        self._random = random_
        self._added = 0
        self.kinds: list[Callable[[Submission], str | None]] = [
            self.child_killed,
            self.child_crashed,
            self.child_silent,
            self.card_killed,
            self.node_killed,
            self.node_silent,
            self.node_added,
            self.driver_killed,
            self.driver_paused,
            self.host_killed,
            self.database_locked,
            self.two_drivers,
        ]

    def inject(self, submission: Submission) -> str:
        """Whatever of these can be done first, in random order."""
        for kind in self._random.sample(self.kinds, len(self.kinds)):
            with suppress(ProcessLookupError, FileNotFoundError):
                if said := kind(submission):
                    return f"{kind.__name__} {said}"
        return ""

    def child_killed(self, _: Submission) -> str | None:
        return self._to_a("simulated_child", signal.SIGKILL)

    def child_crashed(self, _: Submission) -> str | None:
        return self._to_a("simulated_child", signal.SIGSEGV)

    def child_silent(self, _: Submission) -> str | None:
        return self._to_a("simulated_child", signal.SIGSTOP)

    def card_killed(self, _: Submission) -> str | None:
        return self._to_a("ray::Card", signal.SIGKILL)

    def node_killed(self, _: Submission) -> str | None:
        names = self._workers()
        if len(names) <= FEWEST_NODES:
            return None
        name = self._random.choice(names)
        self._nodes.kill(name)
        return name

    def node_silent(self, _: Submission) -> str | None:
        """Long enough to be given up; then it is gone for good."""
        names = self._workers()
        if len(names) <= FEWEST_NODES:
            return None
        name = self._random.choice(names)
        self._nodes.signal(name, signal.SIGSTOP)
        time.sleep(8)
        self._nodes.kill(name)
        return name

    def node_added(self, _: Submission) -> str | None:
        if len(self._workers()) >= MOST_NODES:
            return None
        self._added += 1
        self._nodes.add(f"more{self._added}")
        return f"more{self._added}"

    def driver_killed(self, submission: Submission) -> str:
        os.kill(submission.pid, signal.SIGKILL)
        return str(submission.pid)

    def driver_paused(self, submission: Submission) -> str:
        """As when its network is gone for a while, or its machine sleeps."""
        os.kill(submission.pid, signal.SIGSTOP)
        time.sleep(5)
        os.kill(submission.pid, signal.SIGCONT)
        return "for 5 s"

    def host_killed(self, submission: Submission) -> str | None:
        children = Path(f"/proc/{submission.pid}/task/{submission.pid}/children").read_text().split()
        hosts = [int(pid) for pid in children if b"pool.host" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        if not hosts:
            return None
        os.kill(hosts[0], signal.SIGKILL)
        return str(hosts[0])

    def database_locked(self, submission: Submission) -> str:
        """For longer or shorter than the store waits for a lock."""
        seconds = self._random.choice((3, 34))
        threading.Thread(target=_lock, args=(submission.database, seconds), daemon=True).start()
        return f"for {seconds} s"

    def two_drivers(self, submission: Submission) -> str:
        return submission.resume_too()

    def _workers(self) -> list[str]:
        return [name for name in self._nodes.joined if name != "head"]

    def _to_a(self, what: str, number: int) -> str | None:
        """A signal to one process of our nodes."""
        there = [pid for name in self._nodes.joined for pid in self._nodes.pids(name, what)]
        if not there:
            return None
        pid = self._random.choice(there)
        os.kill(pid, number)
        return str(pid)


def _lock(database: Path, seconds: float) -> None:
    connected = closing(sqlite3.connect(database, timeout=20, isolation_level=None))
    with connected as connection, suppress(sqlite3.OperationalError):
        connection.execute("BEGIN IMMEDIATE")
        time.sleep(seconds)
        connection.execute("ROLLBACK")

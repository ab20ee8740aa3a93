"""A Ray cluster of several nodes on this machine, each a raylet of its own that can be killed, silenced and joined."""

import os
import secrets
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

from ports import free_port
from ray_processes import START, session, started

_SIZE = (f"--object-store-memory={128 << 20}", "--num-gpus=0")


@dataclass
class Nodes:
    """The head and what has joined it. The head has no CPU to measure on, unless it is asked to."""

    port: int
    environment: Mapping[str, str]
    folder: Path
    joined: dict[str, subprocess.Popen[str]] = field(default_factory=dict)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def add_head(self, cpus: int = 0) -> None:
        """At the port, with nothing of an earlier head."""
        made = mkdtemp(dir=self.folder, prefix="h")
        head = [*START, "--head", f"--port={self.port}", f"--num-cpus={cpus}", *_SIZE, "--include-dashboard=false"]
        self.joined["head"] = started([*head, f"--temp-dir={made}"], self.environment)

    def add(self, name: str, *options: str, **extra: str) -> None:
        """A node of one CPU, unless `options` say otherwise; `extra` is part of the environment of its workers."""
        command = [*START, f"--address={self.address}", "--num-cpus=1", *_SIZE, f"--node-name={name}", *options]
        environment = {**self.environment, "NVIDIA_FAKE_CPU": name, **extra}
        self.joined[name] = started(command, environment)

    def kill(self, name: str) -> None:
        """As when the power fails: all processes of the node at once, without a word."""
        self.signal(name, signal.SIGKILL)
        with self.joined.pop(name):
            pass

    def signal(self, name: str, number: int) -> None:
        """Send a signal to all processes of a node."""
        for pid in self.pids(name):
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def pids(self, name: str, word: str = "") -> list[int]:
        """The living processes of a node, whatever groups they made (they are one session), with `word` in their
        command line.
        """
        return session(self.joined[name].pid, word)

    def close(self) -> None:
        for name in list(self.joined):
            self.kill(name)


@contextmanager
def several_nodes(environment: Mapping[str, str], names: tuple[str, ...], **extra: str) -> Iterator[Nodes]:
    """A cluster with nodes of these names; a silent node counts as lost after 5 s. `extra`: settings of Ray."""
    port = free_port()
    others = {key: value for key, value in environment.items() if not key.startswith("RAY_")}
    settings = {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_worker_niceness": "0",
        "RAY_health_check_initial_delay_ms": "1000",
        "RAY_health_check_period_ms": "1000",
        "RAY_health_check_timeout_ms": "2000",
        "RAY_health_check_failure_threshold": "3",
        **extra,
    }
    with TemporaryDirectory(prefix="ptn-", ignore_cleanup_errors=True) as folder:
        nodes = Nodes(port, others | settings, Path(folder))
        nodes.add_head()
        try:
            for name in names:  # one after the other: two that start at once may both wait until Ray gives up
                nodes.add(name)
            yield nodes
        finally:
            nodes.close()

"""Ray's own processes on this machine: started by its command, found by their session."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

START = (
    *(sys.executable, "-u", "-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats"),
    "--dashboard-agent-listen-port=0",  # else each node but the first of a machine begs for seconds for the same port
)
_TRIES = 3


def processes() -> Iterator[tuple[int, int, str]]:
    """Process id, session and command line of everything that lives."""
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            fields = (path / "stat").read_text().rpartition(")")[2].split()
            words = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if fields[0] != "Z":
                yield int(path.name), int(fields[3]), words


def started(command: list[str], environment: Mapping[str, str]) -> subprocess.Popen[str]:
    """Ray gives up after half a minute in which a busy machine did not start it; whoever runs a cluster tries again."""
    said: list[str] = []
    for _ in range(_TRIES):
        process = subprocess.Popen(
            command,
            env=dict(environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        for line in process.stdout or ():
            said.append(line)
            if "Ray runtime started" in line:
                return process
        with process:  # else what it has started goes on without it
            for pid in session(process.pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
    raise RuntimeError(f"Ray does not start: {''.join(said)}")


def session(leader: int, word: str = "") -> list[int]:
    """The living processes that one has started, whatever groups they made, with `word` in their command line."""
    return [pid for pid, of, words in processes() if of == leader and word in words]

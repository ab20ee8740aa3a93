"""Whether the system has ended processes because memory ran out: what its counters say, and of how much memory.

The counters are those of this process's control group (cgroup v2 `memory.events`, v1 `memory.oom_control`), whose
processes the children are too; else of the whole machine (`/proc/vmstat`). Each is raised before the signal is sent.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec

_COUNTER = "oom_kill"
_FILES = {"": ("memory.events", "memory.max"), "memory": ("memory.oom_control", "memory.limit_in_bytes")}
"""Controller in /proc/self/cgroup (none: version 2) → the files of a group with its counter and its limit."""


class HostMemory(msgspec.Struct, frozen=True, kw_only=True):
    """Where to look, and what there is."""

    counter: str
    """Path of a file with a line `oom_kill N`."""
    total_bytes: int
    """Memory of the machine, or the limit of the group where that is less."""

    def kills(self) -> int:
        """How many processes were ended for want of memory so far; 0 where the system does not count."""
        return _entry(Path(self.counter), _COUNTER)


class Shortage(msgspec.Struct, frozen=True, kw_only=True):
    """The system ended a process for want of memory while this one was at work."""

    peak_bytes: int
    """The most memory this one, or a process it waited for, ever held."""
    total_bytes: int

    @property
    def own(self) -> bool:
        """Whether it was itself what used the memory: more of it than everybody else together."""
        return self.peak_bytes > self.total_bytes / 2

    def __str__(self) -> str:
        return f"it held at most {self.peak_bytes / 2**30:.1f} of {self.total_bytes / 2**30:.1f} GiB"


def here(membership: Path = Path("/proc/self/cgroup"), mounted: Path = Path("/sys/fs/cgroup")) -> HostMemory:
    """For this process, whose groups stand in `membership` and have their files below `mounted`."""
    groups = list(_groups(membership, mounted))
    counters = [path for path, _ in groups if _has(path)]
    limits = [int(text) for _, path in groups if (text := _text(path).strip()).isdecimal()]
    total_bytes = _entry(Path("/proc/meminfo"), "MemTotal:") * 1024
    return HostMemory(counter=str([*counters, Path("/proc/vmstat")][0]), total_bytes=min([*limits, total_bytes]))


def _groups(membership: Path, mounted: Path) -> Iterator[tuple[Path, Path]]:
    """Files of counter and limit of each group this process may be in; inside a container its own is the root."""
    for line in _text(membership).splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            if names := _FILES.get(controller):
                for folder in (mounted / controller / path.lstrip("/"), mounted / controller):
                    yield folder / names[0], folder / names[1]


def _has(path: Path) -> bool:
    return any(line.startswith(f"{_COUNTER} ") for line in _text(path).splitlines())


def _entry(path: Path, name: str) -> int:
    found = (line.split() for line in _text(path).splitlines())
    return next((int(words[1]) for words in found if words[:1] == [name]), 0)


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""

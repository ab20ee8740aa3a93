"""Every format that is read, and how a file's own is told from its first part."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import get_args

from perftrack.errors import UsageError
from perftrack.interop import asv, bencher, github_action, go_bench, google_benchmark, nvbench, pytest_benchmark, source
from perftrack.interop.document import Hints
from perftrack.interop.value import FormatName, Notes, Session

FORMATS: tuple[FormatName, ...] = get_args(FormatName)

Reader = Callable[[Path, Notes, Hints], Iterator[Session]]

_READERS: dict[FormatName, Reader] = {
    "pytest-benchmark": pytest_benchmark.sessions,
    "google-benchmark": google_benchmark.sessions,
    "nvbench": nvbench.sessions,
    "asv": asv.sessions,
    "github-action-benchmark": github_action.sessions,
    "bencher": bencher.sessions,
    "go": go_bench.sessions,
}

_MARKS: tuple[tuple[FormatName, tuple[str, ...]], ...] = (
    ("github-action-benchmark", ("entries", "benches")),
    ("asv", ("commit_hash", "results")),
    ("pytest-benchmark", ("stats", "fullname")),
    ("pytest-benchmark", ("machine_info",)),
    ("pytest-benchmark", ("commit_info",)),
    ("nvbench", ("states",)),
    ("nvbench", ("devices", "nvbench")),
    ("google-benchmark", ("context", "benchmarks")),
    ("google-benchmark", ("real_time",)),
    ("google-benchmark", ("run_type",)),
)
"""Keys that a format's file has, the most telling first."""

_DATA_JS = re.compile(r"\s*window\.\w+\s*=")
_NAME_LIST = re.compile(r'\s*\[\s*(\]|\{.*"(name|unit|value)"\s*:)', re.DOTALL)
_METRICS = re.compile(r'\s*\{\s*"(?:[^"\\]|\\.)*"\s*:\s*\{\s*"(?:[^"\\]|\\.)*"\s*:\s*\{\s*"(lower_|upper_)?value"')
_GO_LINE = re.compile(r"^(Benchmark\S+\s+\d+\s+\S+ \S+/op|goos: |pkg: |ok  \t)", re.MULTILINE)


def sessions(path: Path, name: FormatName | None, notes: Notes, hints: Hints) -> Iterator[Session]:
    """The sessions of a file; `name` None tells the format from the file. UsageError where that cannot be told."""
    head = source.head(path)
    if name in (None, "asv") and (described := _description(path, head)):
        notes.leave_out(None, described)
        return iter(())
    found = name or tell(path, head)
    if found == "github-action-benchmark" and head.lstrip("\ufeff \t\r\n").startswith("["):
        return github_action.list_sessions(path, notes, hints)
    return _READERS[found](path, notes, hints)


def tell(path: Path, head: str) -> FormatName:
    """The format of a file that begins with `head`; UsageError naming those there are."""
    keys = _keys(head)
    if _DATA_JS.match(head):
        return "github-action-benchmark"
    if _NAME_LIST.match(head):
        return "github-action-benchmark"
    for name, marks in _MARKS:
        if keys.issuperset(marks):
            return name
    if _METRICS.match(head):
        return "bencher"
    if _GO_LINE.search(head):
        return "go"
    raise UsageError(f"the format of {path} cannot be told: give --format, one of {', '.join(FORMATS)}")


def _keys(head: str) -> set[str]:
    return set(re.findall(r'(?<!\\)"(\w+)"\s*:', head))


def _description(path: Path, head: str) -> str:
    """What a file of asv's results folder is that has none itself; empty for any other file."""
    keys = _keys(head)
    if {"param_names", "code"} <= keys and "result_columns" not in keys:
        return "describes asv's benchmarks, and has no results itself"
    if path.name.endswith("machine.json") and {"arch", "cpu", "machine"} <= keys:
        return "describes asv's machine, and has no results itself"
    return ""

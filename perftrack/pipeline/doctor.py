"""`perftrack doctor`: what is here, what is missing, and what to type about it."""

import importlib.util
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from perftrack import config
from perftrack.errors import PerftrackError, UsageError
from perftrack.measure.device import gpu_names
from perftrack.measure.tree import find_suites
from perftrack.revision import Repository
from perftrack.store import Store, default_url, safe_url

Level = Literal["ok", "warn", "FAIL"]

_EXTRAS = (
    ("numba", "cpu", "variants that need it are skipped on a CPU"),
    ("uvicorn", "web", "`perftrack serve` needs it, `perftrack publish` does not"),
    ("matplotlib", "plot", "charts in notebooks need it"),
    ("pyarrow", "arrow", "Parquet and Arrow files need it"),
)
"""Package, the extra that brings it, and who misses it."""

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the doctor's answer."""

    level: Level
    subject: str
    text: str


def examine(start: Path, database: str | None) -> Iterator[Check]:
    """Look at configuration, suites, git, database, Ray, GPU and optional packages, in that order."""
    settings = _guard("config", lambda: _config(start))
    yield settings
    if settings.level == "ok":
        yield _guard("suites", lambda: _suites(start))
    yield _guard("git", lambda: _git(start))
    yield _guard("database", lambda: _database(start, database))
    yield _package("ray", "FAIL", "pip install ray")
    yield _gpu()
    for name, extra, purpose in _EXTRAS:
        yield _package(name, "warn", f"{purpose}: pip install 'perftrack[{extra}]'")


def _guard(subject: str, look: Callable[[], str]) -> Check:
    try:
        return Check("ok", subject, look())
    except PerftrackError as error:
        return Check("FAIL", subject, str(error))


def _config(start: Path) -> str:
    settings = config.resolve(Repository.discover(start).root)
    source = "PERFTRACK_DB" if os.environ.get("PERFTRACK_DB") else "pyproject.toml" if settings.db else "default"
    return f"suites in {', '.join(settings.suites)}; {settings.rounds} rounds; db from {source}"


def _suites(start: Path) -> str:
    root = Repository.discover(start).root
    paths = config.resolve(root).suites
    found, problems = find_suites(root, paths)
    for problem in problems.values():
        raise UsageError(problem)
    if not found:
        raise UsageError(
            f"{', '.join(paths)} of {root} has no suite: docs/suites.md says how to declare one, "
            "or remove [tool.perftrack] and type `perftrack init` for an example"
        )
    return f"{len(found)} of them: {', '.join(sorted(found)[:_SHOWN])}{', …' if len(found) > _SHOWN else ''}"


def _git(start: Path) -> str:
    repository = Repository.discover(start)
    head = repository.revision("HEAD")
    base, note = repository.base_for(head)
    return f"HEAD {head.label}, base " + (f"{base.label} ({note})" if base else f"none ({note})")


def _database(start: Path, database: str | None) -> str:
    url = config.database_url(database, config.settings_near(start)) or default_url()
    with Store.open(url) as store:
        return f"{safe_url(url)}, schema {store.current()}"


def _package(name: str, missing: Level, remedy: str) -> Check:
    if importlib.util.find_spec(name) is None:
        return Check(missing, name, f"not installed: {remedy}")
    return Check("ok", name, version(name))


def _gpu() -> Check:
    names = gpu_names()
    if not names:
        return Check(
            "warn", "gpu", "no NVIDIA GPU here: the CPU backend works; --address names a cluster that has some"
        )
    if importlib.util.find_spec("cupy") is None:
        return Check("FAIL", "gpu", f"{', '.join(names)}, but no CuPy: pip install 'perftrack[cuda13x]'")
    return Check("ok", "gpu", ", ".join(names))

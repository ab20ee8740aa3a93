"""`perftrack doctor`: what is here, what is missing, and what to type about it."""

import importlib.util
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from perftrack import config
from perftrack.errors import PerftrackError
from perftrack.measure.device import gpu_names
from perftrack.revision import Repository
from perftrack.store import Store, default_url, safe_url

Level = Literal["ok", "warn", "FAIL"]


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the doctor's answer."""

    level: Level
    subject: str
    text: str


def examine(start: Path, database: str | None) -> Iterator[Check]:
    """Look at configuration, git, database, Ray, GPU and optional packages, in that order."""
    yield _guard("config", lambda: _config(start))
    yield _guard("git", lambda: _git(start))
    yield _guard("database", lambda: _database(start, database))
    yield _package("ray", "FAIL", "pip install ray")
    yield _gpu()
    yield _package("numba", "warn", "the fused CPU variants of this repository need it: pip install 'perftrack[cpu]'")


def _guard(subject: str, look: Callable[[], str]) -> Check:
    try:
        return Check("ok", subject, look())
    except PerftrackError as error:
        return Check("FAIL", subject, str(error))


def _config(start: Path) -> str:
    settings = config.resolve(Repository.discover(start).root)
    source = "PERFTRACK_DB" if os.environ.get("PERFTRACK_DB") else "pyproject.toml" if settings.db else "default"
    return f"suites in {', '.join(settings.suites)}; {settings.rounds} rounds; db from {source}"


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

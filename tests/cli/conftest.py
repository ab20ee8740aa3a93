"""The command as users run it: a process of its own, in a repository of theirs."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

COMMAND = str(Path(sys.executable).parent / "perftrack")

CODE = """
import numpy as np


def unfused(x, **_):
    once, twice, out = np.empty_like(x), np.empty_like(x), np.empty_like(x)

    def launch():
        np.multiply(x, 2, out=once)
        np.add(once, 1, out=twice)
        np.maximum(twice, 0, out=out)

    return launch, out


def fused(x, **_):
    out = np.empty_like(x)

    def launch():
        np.multiply(x, 2, out=out)
        np.add(out, 1, out=out)
        np.maximum(out, 0, out=out)

    return launch, out


def reference(x, **_):
    return np.maximum(2 * x + 1, 0)


def traffic(n, **_):
    return {"reads": 8 * n, "writes": 8 * n, "moved": {"unfused": 48 * n, "fused": 48 * n}}
"""

SUITE = """
from perftrack.declare import benchmark

import code_under_test as op

declare = benchmark(
    variants={"unfused": op.unfused, "fused": op.fused},
    reference=op.reference,
    axes={"n": [50_000]},
    traffic=op.traffic,
    min_effect=0.1,
)


@declare
def scale_shift(rng, n):
    \"\"\"max(2x + 1, 0).\"\"\"
    return rng.normal((n,), "float64")
"""

# the same operation from a file of its own, so that one of the two can be changed alone
OTHER = SUITE.replace("code_under_test", "other_code").replace("scale_shift", "bystander")

PYPROJECT = '[tool.perftrack]\nsuites = ["bench"]\nconfirm-rounds = 3\n'

FILES = {
    "pyproject.toml": PYPROJECT,
    "code_under_test.py": CODE,
    "other_code.py": CODE,
    "bench/flat.py": SUITE,
    "bench/other.py": OTHER,
}

Run = Callable[..., subprocess.CompletedProcess[str]]


def runner(folder: Path, database: Path, environment: Mapping[str, str]) -> Run:
    """Runs `perftrack ARGS` in `folder`."""
    own = {**environment, "PERFTRACK_DB": f"sqlite:///{database}", "COLUMNS": "160"}

    def call(*args: str, env: Mapping[str, str] | None = None, **options) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [COMMAND, *args],
            cwd=options.pop("cwd", folder),
            env={**own, **(env or {})},
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
            **options,
        )

    return call


@pytest.fixture(scope="session")
def alone(cache_home: str) -> dict[str, str]:
    """Environment of a command that starts a Ray of its own."""
    passed = {key: value for key, value in os.environ.items() if not key.startswith("RAY_")}
    return {**passed, "XDG_CACHE_HOME": cache_home}


@pytest.fixture(scope="session")
def joining(alone: dict[str, str], cluster) -> dict[str, str]:
    """Environment of a command that joins the tests' cluster, whose start costs more than most of what it measures."""
    return {**alone, **cluster.environment}


@pytest.fixture
def run(repo, tmp_path: Path, joining: dict[str, str]) -> Run:
    """Run `perftrack ARGS` in the repository; its database is a file beside it."""
    return runner(repo.root, tmp_path / "perf.db", joining)


@pytest.fixture
def run_alone(repo, tmp_path: Path, alone: dict[str, str]) -> Run:
    """The same where there is no cluster to join."""
    return runner(repo.root, tmp_path / "perf.db", alone)


@pytest.fixture(scope="session")
def track(repo_in, tmp_path_factory: pytest.TempPathFactory, joining: dict[str, str]):
    """Make a repository that several tests share; with it comes how to run a command there."""

    def make(name: str):
        folder = tmp_path_factory.mktemp(name)
        repo = repo_in(folder / "repo")
        return repo, runner(repo.root, folder / "perf.db", joining)

    return make


@pytest.fixture
def own_tmp() -> Iterator[Path]:
    """For TMPDIR: the folder shows what a command leaves behind; its path is short enough for Ray's sockets."""
    with TemporaryDirectory(prefix="ptt-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def files() -> dict[str, str]:
    """A small tracked repository: two suites of one benchmark each, on files of their own."""
    return FILES


@pytest.fixture
def living_in(own_tmp: Path) -> Callable[[], list[str]]:
    """Commands of the processes that still live with `own_tmp` in their environment."""

    def look() -> list[str]:
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):
                if str(own_tmp).encode() in path.read_bytes():
                    found.append((path.parent / "comm").read_text())
        return found

    return look


@pytest.fixture
def command() -> str:
    return COMMAND


@pytest.fixture(scope="session")
def demo_db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `perftrack demo` makes; tests that write copy it."""
    path = tmp_path_factory.mktemp("demo") / "demo.db"
    subprocess.run([COMMAND, "demo", "--db", str(path)], check=True, capture_output=True, timeout=120)
    return path

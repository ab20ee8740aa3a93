"""The command as users run it: a process of its own, in a repository of theirs."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

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


@pytest.fixture
def run(repo, tmp_path) -> Run:
    """Run `perftrack ARGS` in the repository; its database is a file beside it."""

    def call(*args: str, **options) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PERFTRACK_DB": f"sqlite:///{tmp_path}/perf.db", "COLUMNS": "160"}
        environment.pop("RAY_ADDRESS", None)
        environment.update(options.pop("env", {}))
        return subprocess.run(
            [COMMAND, *args],
            cwd=options.pop("cwd", repo.root),
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
            **options,
        )

    return call


@pytest.fixture
def files() -> dict[str, str]:
    """A small tracked repository: two suites of one benchmark each, on files of their own."""
    return dict(FILES)


@pytest.fixture
def command() -> str:
    return COMMAND

"""`pytest suites/` of a small tracked repository, in a pytest of its own."""

import json
import os
import subprocess
import sys

import pytest

SUITE = """
import numpy as np

from perftrack.declare import benchmark, variant


def build(wrong=False):
    def made(x, **_):
        out = np.empty_like(x)
        return (lambda: np.multiply(x, 3 if wrong else 2, out=out)), out

    return made


@benchmark(
    variants={
        "unfused": build(),
        "fused": build(),
        "wrong": build(wrong=True),
        "needy": variant(build(), requires=["a_package_that_is_not_there"]),
        "card": variant(cuda=build()),
    },
    reference=lambda x, **_: 2 * x,
    axes={"n": [1000, 1001]},
    traffic=lambda n: {"reads": 8 * n, "writes": 8 * n},
)
def double(rng, n):
    return rng.normal((n,), "float64")
"""

FILES = {
    "pyproject.toml": '[tool.perftrack]\nsuites = ["bench"]\n',
    "bench/flat.py": SUITE,
    "elsewhere/flat2.py": "raise RuntimeError('not a suite: nobody imports it')",
    "tests/test_ordinary.py": "def test_ordinary():\n    assert True\n",
}


@pytest.fixture
def run_pytest(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def run(*args):
        # the outer pytest's settings are not meant for the inner one
        outside = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
        environment = {**outside, "CUDA_VISIBLE_DEVICES": ""}
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", *args],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    return run


def test_every_case_and_variant_that_can_run_here_is_a_benchmark(run_pytest, tmp_path):
    done = run_pytest("bench", "--benchmark-json", "out.json", "--benchmark-max-time=0.05", "--benchmark-warmup=off")
    assert "4 passed, 2 skipped" in done.stdout.replace("2 failed, ", ""), done.stdout
    assert "2 failed" in done.stdout
    assert "a_package_that_is_not_there" in run_pytest("bench", "-rs", "-k", "needy").stdout
    results = json.loads((tmp_path / "out.json").read_text())["benchmarks"]
    assert {result["name"] for result in results} == {
        f"double[n={n}]::{variant}" for n in (1000, 1001) for variant in ("unfused", "fused")
    }
    info = next(result["extra_info"] for result in results if result["name"] == "double[n=1000]::fused")
    assert info["speedup"] > 0
    assert info["gb_per_s"] > 0
    assert info["utilization"] > 0
    assert info["variant"] == "fused"


def test_a_wrong_variant_fails_with_its_error(run_pytest):
    done = run_pytest("bench", "-k", "wrong")
    assert done.returncode == 1
    assert "wrong: " in done.stdout


def test_a_bad_declaration_is_a_collection_error_in_one_sentence(run_pytest, tmp_path):
    (tmp_path / "bench" / "bad.py").write_text(SUITE.replace('"n": [1000, 1001]', '"n": [object()]'))
    done = run_pytest("bench/bad.py")
    assert done.returncode == 2
    assert "must be the same in every process" in done.stdout


def test_other_tests_and_files_are_left_alone(run_pytest):
    assert "1 passed" in run_pytest("tests").stdout
    assert "no tests ran" in run_pytest("elsewhere").stdout


def test_settings_are_checked(run_pytest, tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.perftrack]\nsuits = 3\n")
    done = run_pytest("tests")
    assert done.returncode == 4
    assert "suits" in done.stderr

"""`pytest --perftrack` in another project: a pytest of its own, in a repository of its own."""

import json
import os
import subprocess
import sys

import pytest

from perftrack.store import Store

TESTS = """
import pytest


@pytest.mark.parametrize("n", [10, 20])
def test_sum(benchmark, n):
    benchmark.pedantic(sum, args=(range(n),), rounds=5, iterations=3)


def test_broken(benchmark):
    benchmark.pedantic(sum, args=(1,), rounds=5)


def test_ordinary():
    assert True
"""


@pytest.fixture
def project(repo):
    repo.commit("first", {"test_speed.py": TESTS, "pytest.ini": "[pytest]\n", ".gitignore": "__pycache__/\n*.db*\n"})
    return repo


@pytest.fixture
def run_pytest(project):
    def run(*args, **environment):
        # the outer pytest's settings are not meant for the inner one
        outside = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", *args],
            cwd=project.root,
            env=outside | {"CUDA_VISIBLE_DEVICES": "", "COLUMNS": "200"} | environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    return run


def test_results_are_series_of_the_revision_and_the_next_run_is_held_against_them(run_pytest, project, tmp_path):
    path = tmp_path / "perf.db"
    done = run_pytest("--benchmark-only", f"--perftrack=sqlite:///{path}")
    assert done.returncode == 1, done.stdout  # the broken test is, and its result is not stored
    assert "2 results of" in done.stdout
    assert "not side by side: 2 new" in done.stdout
    project.commit("second", {"README": "2"})
    project.write({"README": "3"})
    again = run_pytest("--benchmark-only", "-k", "test_sum", PERFTRACK_DB=str(path), PYTEST_ADDOPTS="--perftrack")
    assert again.returncode == 0, again.stdout
    assert "against the revision before, not side by side: " in again.stdout
    assert "2 new" not in again.stdout
    with Store.open(str(path), create=False) as store:
        points = store.history("test_sum[10]", suite_name="test_speed.py")
        revisions = [point.revision.revision for point in points]
        assert [one.position for one in revisions] == [0, 2]  # the work tree comes after the commit it is made from
        assert [one.dirty for one in revisions] == [False, True]
        assert revisions[0].sha == project.git("rev-parse", "HEAD~")
        assert {point.revision.repo for point in points} == {"repo"}
        assert {(point.summary.speedup, point.summary.samples) for point in points} == {(None, 5)}
        (first, *_) = store.jobs(points[-1].run_uid)
        assert len(first.measurements[0].samples_s) == 5
        assert first.measurements[0].calls_per_sample == 3


def test_a_database_that_cannot_be_written_is_said_before_anything_runs(run_pytest):
    done = run_pytest("--perftrack=/proc/nowhere.db")
    assert done.returncode == 4
    assert "--perftrack: " in done.stderr
    assert "passed" not in done.stdout


def test_results_that_could_not_be_stored_stay_in_a_file(run_pytest, project, tmp_path):
    path = tmp_path / "perf.db"
    project.write(
        {"conftest.py": f"def pytest_runtest_teardown(): open({str(path)!r}, 'w').write('no database' * 99)\n"}
    )
    done = run_pytest("-k", "test_sum", f"--perftrack={path}")
    assert done.returncode == 3, done.stdout
    assert "NOT STORED" in done.stdout
    kept = json.loads((project.root / "perftrack-not-stored.json").read_text())
    assert len(kept["benchmarks"]) == 2


def test_a_session_of_which_nothing_could_be_stored_fails(run_pytest, project, tmp_path):
    coarse = """
import pytest


@pytest.mark.benchmark(timer=lambda: 0.0)
def test_coarse(benchmark):
    benchmark.pedantic(len, args=("",), rounds=3)
"""
    project.write({"test_speed.py": coarse})
    done = run_pytest("--benchmark-only", f"--perftrack={tmp_path / 'perf.db'}")
    assert done.returncode == 3, done.stdout
    assert "NOT STORED: no result could be read" in done.stdout
    assert "not stored: test_coarse: `stats.median` is 0.0, which is no time" in done.stdout
    assert "nothing stored" not in done.stdout


def test_tests_are_no_database(run_pytest):
    done = run_pytest("--perftrack", "test_speed.py")
    assert done.returncode == 4
    assert "--perftrack test_speed.py names tests, not a database" in done.stderr

"""`perftrack sweep`, `cancel` and `watch` end to end on the CPU: real git, real Ray, real timing."""

import json
import sqlite3
import subprocess
import time

import pytest

SWEEP = """
[tool.perftrack.sweeps.nightly]
suites = ["flat"]
devices = ["cpu"]
rounds = 1
quick = true
axes = { n = [50000] }
"""


@pytest.fixture(scope="module")
def swept(track, files):
    """A repository of five commits, whose newest was swept; commits by subject, reports, and how to run more."""
    repo, run = track("swept")
    tracked = {**files, "pyproject.toml": files["pyproject.toml"] + SWEEP}
    shas = {"one": repo.commit("one", tracked)}
    shas["two"] = repo.commit("two", {"README.md": "two"})
    repo.git("tag", "v1")
    shas["broken"] = repo.commit("broken", {"bench/flat.py": "raise RuntimeError('typo')\n"})
    shas["mended"] = repo.commit("mended", {"bench/flat.py": files["bench/flat.py"]})
    shas["five"] = repo.commit("five", {"README.md": "five"})
    return repo, run, shas, sweep(run)


def sweep(run, *args):
    done = run("sweep", *args, "--format", "json")
    assert done.returncode in {0, 4}, done.stderr
    return done, json.loads(done.stdout)


def outcomes(report):
    return [(one["subject"], one["outcome"]) for one in report["commits"]]


def test_the_first_sweep_is_of_the_newest_commit_and_again_there_is_nothing(swept):
    _, run, _, (done, report) = swept
    assert (done.returncode, report["name"], outcomes(report)) == (0, "nightly", [("five", "measured")])
    assert report["commits"][0]["jobs"] == 1
    again, report = sweep(run, "nightly")
    assert (again.returncode, report["commits"]) == (0, [])
    assert report["since"].startswith("the last sweep")


def test_steps_take_tags_first_gaps_are_filled_and_what_cannot_be_measured_is_listed(swept):
    """The later tests of the file go on with what this one has measured."""
    _, run, shas, _ = swept
    done, report = sweep(run, "--since", shas["one"][:9], "--steps", "2")
    assert outcomes(report) == [("five", "stored"), ("two", "measured")], done.stderr
    done, report = sweep(run, "--fill-gaps")
    assert outcomes(report) == [("broken", "impossible"), ("mended", "measured"), ("one", "measured")], done.stderr
    broken = next(one for one in report["commits"] if one["subject"] == "broken")
    assert "flat" in broken["why"]
    _, report = sweep(run, "--fill-gaps")
    assert report["commits"] == [], "what cannot be measured is not tried again"
    points = json.loads(run("history", "scale_shift[n=50000]", "--variant", "fused", "--format", "json").stdout)
    (series,) = points
    names = ("one", "two", "mended", "five")
    assert [point["revision"] for point in series["points"]] == [shas[name][:7] for name in names]


def test_a_budget_that_is_used_up_leaves_the_rest_for_the_next_sweep(swept):
    repo, run, _, _ = swept
    repo.commit("six", {"README.md": "six"})
    done, report = sweep(run, "--budget", "0s")
    assert (done.returncode, outcomes(report)) == (4, [("six", "left")])
    assert report["commits"][0]["why"] == "the budget is used up"
    done, report = sweep(run)
    assert (done.returncode, outcomes(report)) == (0, [("six", "measured")])


def test_what_a_submission_measured_is_not_measured_again(swept):
    repo, run, _, _ = swept
    repo.commit("seven", {"README.md": "seven"})
    done = run("submit", "flat", "-d", "cpu", "--quick", "--base", "none", "--rounds", "1")
    assert done.returncode == 0, done.stderr
    done, report = sweep(run)
    assert outcomes(report) == [("seven", "stored")]
    assert "measure" not in done.stderr


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("weekly",), "no sweep is called 'weekly'"),
        (("--budget", "soon"), "'soon' is no time: write it like 3h"),
        (("--since", "v9"), "unknown revision 'v9'"),
    ],
)
def test_what_is_not_there_is_said_in_a_sentence(swept, args, said):
    _, run, _, _ = swept
    done = run("sweep", *args)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.fault
def test_a_run_is_watched_by_one_cancelled_by_another_and_goes_on_afterwards(repo, files, command, joining, tmp_path):
    repo.commit("base", files)
    database = tmp_path / "perf.db"
    places = {"cwd": repo.root, "env": {**joining, "PERFTRACK_DB": f"sqlite:///{database}"}, "text": True}

    def call(*args):
        return subprocess.run([command, *args], **places, capture_output=True, check=False, timeout=120)

    wanted = ("-d", "cpu", "--quick", "--base", "none", "--rounds", "10", "flat")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([command, "submit", *wanted], **places, **pipes) as submitted:
        wait_until(lambda: jobs_in(database) > 0)
        second = call("submit", "--resume", "latest")
        assert second.returncode == 2
        assert f"is being measured by another process (process {submitted.pid} on " in second.stderr
        with subprocess.Popen([command, "watch"], **places, **pipes) as watching:
            cancelled = call("cancel", "latest")
            assert cancelled.returncode == 0, cancelled.stderr
            assert "its process stops in a few seconds" in cancelled.stdout
            _, said = submitted.communicate(timeout=120)
            assert (submitted.returncode, "was cancelled; what was measured is kept" in said) == (4, True)
            _, said = watching.communicate(timeout=120)
            assert (watching.returncode, "`perftrack submit --resume" in said) == (4, True)
    assert call("cancel", "latest").returncode == 2, "it is not running any more"
    assert list(tmp_path.glob("*.lock")) == []
    kept = jobs_in(database)
    assert 0 < kept < 10
    done = call("submit", "--resume", "latest")
    assert done.returncode == 0, done.stderr
    assert f"{10 - kept} jobs" in done.stderr


def jobs_in(database):
    if not database.exists():
        return 0
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=10) as connection:
        try:
            return connection.execute("select count(*) from job_attempt").fetchone()[0]
        except sqlite3.OperationalError:
            return 0


def wait_until(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.1)

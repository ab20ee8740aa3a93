"""`perftrack submit` end to end on the CPU: real git, real Ray, real SQLite, real timing."""

import json
import signal
import sqlite3
import subprocess
import time

import pytest

CLAMP = "        np.maximum(out, 0, out=out)\n"
REDUNDANT = CLAMP + 60 * "        np.add(out, 0, out=out)\n"
THREE_BUFFERS = (
    "        np.multiply(x, 2, out=once)\n        np.add(once, 1, out=twice)\n        np.maximum(twice, 0, out=out)\n"
)


def submit(run, *args):
    done = run("submit", "-d", "cpu", "--quick", "--format", "json", *args)
    return done, (json.loads(done.stdout) if done.stdout else {})


def fused(report):
    return {row["case"].partition("[")[0]: row for row in report["rows"] if row["variant"] == "fused"}


@pytest.fixture(scope="module")
def changed(track, files):
    """How a submission of two changes ended, its report, and how to run more commands there.

    One suite's fused variant does redundant passes; the other's baseline no longer repeats its own.
    """
    repo, run = track("changed")
    code = files["code_under_test.py"]
    # a busy machine moves also what has not changed: the changes are large, so that noise hides none of them
    tolerant = files["bench/other.py"].replace("min_effect=0.1", "min_effect=0.9")
    repeated = code.replace(THREE_BUFFERS, 20 * THREE_BUFFERS)
    patient = files["pyproject.toml"].replace("confirm-rounds = 3", "confirm-rounds = 5")
    repo.commit("base", {**files, "pyproject.toml": patient, "bench/other.py": tolerant, "other_code.py": repeated})
    repo.commit("changes", {"code_under_test.py": code.replace(CLAMP, REDUNDANT), "other_code.py": code})
    return *submit(run), run


def test_a_planted_slowdown_is_the_only_red(changed):
    done, report, run = changed
    assert (done.returncode, report["verdict"]) == (1, "RED"), done.stderr
    red = [row for row in report["rows"] if row["red"]]
    assert [(row["case"], row["variant"], row["cause"]) for row in red] == [
        ("scale_shift[n=50000]", "fused", "fused-slower")
    ]
    assert red[0]["confirmed"]
    assert red[0]["change"]["point"] > 1.2
    again = run("report", "latest", "--format", "json")
    assert (again.returncode, json.loads(again.stdout)) == (1, report)
    text = run("report", "latest")
    assert text.stdout.startswith("RED")
    assert "scale_shift[n=50000]" in text.stdout


def test_a_faster_baseline_is_said_and_is_not_red(changed):
    _, report, run = changed
    assert not fused(report)["bystander"]["red"], "nor beside a red one"
    done, report = submit(run, "other")
    row = fused(report)["bystander"]
    assert (done.returncode, report["verdict"]) == (0, "GREEN"), done.stderr
    assert (row["red"], row["verdict"], row["cause"]) == (False, "same", "unfused-faster")
    assert "because unfused got" in row["message"]


def test_what_the_second_look_has_no_time_for_stays_a_suspicion(repo, run, files):
    hurried = "confirm-rounds = 2\nconfirm-minutes = 0\n"
    repo.commit("base", {**files, "pyproject.toml": files["pyproject.toml"].replace("confirm-rounds = 3\n", hurried)})
    slow = files["code_under_test.py"].replace(CLAMP, REDUNDANT)
    repo.commit("changes", {"code_under_test.py": slow, "other_code.py": slow})
    done, report = submit(run, "--rounds", "2")
    assert "confirm 1 of 2 cases" in done.stderr
    assert done.returncode in (1, 4), "by what two fresh rounds of the other say"
    assert report["reasons"][0] == "1 suspect not looked at again"
    (left,) = (row for row in fused(report).values() if "not looked at again" in row["message"])
    assert "0 minutes (`confirm-minutes`) hold no more" in left["message"]
    assert (left["confirmed"], left["red"]) == (False, False)


def test_an_unchanged_commit_is_green_and_a_first_commit_is_new(repo, run, files):
    repo.commit("first", files)
    done, report = submit(run, "flat", "--rounds", "1")
    assert (done.returncode, report["base"], fused(report)["scale_shift"]["verdict"]) == (0, None, "new"), done.stderr
    repo.commit("documentation", {"README.md": "words"})
    done, report = submit(run, "flat", "--rounds", "1")
    row = fused(report)["scale_shift"]
    assert (done.returncode, report["verdict"], row["verdict"], row["cause"]) == (0, "GREEN", "same", "identical-code")


@pytest.fixture(scope="module")
def broken(track, files):
    """How a submission of uncommitted changes ended, its report, and the commit they were made to.

    Each suite has its own trouble: one crashes, one computes something else, one no longer imports, a new one does not
    import either; nothing is the matter with the last one, which uses none of what has changed.
    """
    repo, run = track("broken")

    def suite(module, name):
        return files["bench/flat.py"].replace("code_under_test", module).replace("scale_shift", name)

    code = files["code_under_test.py"]
    tracked = {
        **files,
        "pyproject.toml": '[tool.perftrack]\nsuites = ["bench", "quiet"]\nconfirm-rounds = 2\n',
        "calm_code.py": code,
        "bench/typo.py": suite("calm_code", "mistyped"),
        # measured for what it is, since it could read what has changed; no noise of a busy machine is that large
        "quiet/calm.py": suite("calm_code", "calm").replace("min_effect=0.1", "min_effect=0.9"),
    }
    sha = repo.commit("base", tracked)
    repo.write(
        {
            "code_under_test.py": code.replace(CLAMP, CLAMP + "        import os; os.abort()\n"),
            "other_code.py": code.replace("return launch, out", "out[:] = 0; return launch, out").replace(CLAMP, ""),
            "bench/typo.py": tracked["bench/typo.py"] + "\nraise RuntimeError('typo')\n",
            "bench/bad.py": "import nothing_here\n",
        }
    )
    return *submit(run, "--rounds", "1"), sha


def test_a_dirty_tree_is_submitted_as_what_it_is(broken):
    done, report, sha = broken
    assert (done.returncode, report["head"], report["base_sha"]) == (1, f"{sha[:7]}+dirty", sha), done.stderr
    assert fused(report)["bystander"]["verdict"] == "wrong", "as the files are, not as they were committed"


@pytest.mark.fault
def test_broken_variants_and_suites_are_statuses_and_the_rest_goes_on(broken):
    _, report, _ = broken
    verdicts = {name: (row["verdict"], row["red"]) for name, row in fused(report).items()}
    assert verdicts == {
        "scale_shift": ("failed", True),
        "bystander": ("wrong", True),
        "mistyped": ("failed", True),
        "calm": ("same", False),
    }
    assert "SIGABRT" in fused(report)["scale_shift"]["message"]
    assert fused(report)["calm"]["cause"] != "identical-code", "other files of the tree have changed"
    assert any("nothing_here" in problem for problem in report["problems"])


@pytest.mark.fault
def test_a_suite_that_no_longer_imports_makes_its_cases_fail(broken):
    _, report, _ = broken
    row = next(row for row in report["rows"] if row["case"].startswith("mistyped"))
    assert (row["verdict"], row["red"]) == ("failed", True)
    assert "typo" in row["message"]


@pytest.mark.fault
def test_ctrl_c_keeps_what_was_measured_and_resume_measures_nothing_twice(
    repo, run, files, command, alone, own_tmp, living_in, tmp_path
):
    repo.commit("base", files)
    database = tmp_path / "perf.db"
    process = subprocess.Popen(
        [command, "submit", "-d", "cpu", "--quick", "--base", "none", "--rounds", "4", "flat"],
        cwd=repo.root,
        env={**alone, "PERFTRACK_DB": f"sqlite:///{database}", "TMPDIR": str(own_tmp)},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and jobs_in(database) < 1:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    kept = jobs_in(database)
    assert process.returncode == 130, said
    assert "--resume" in said
    assert 1 <= kept < 4
    assert living_in() == []
    assert list(own_tmp.iterdir()) == []
    done = run("submit", "--resume", "latest", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert jobs_in(database) == 4
    with sqlite3.connect(database) as connection:
        (attempts,) = connection.execute("select max(attempt) from job_attempt").fetchone()
    assert attempts == 1
    assert {row["rounds"] for row in json.loads(done.stdout)["rows"]} == {4}


@pytest.mark.fault
def test_a_command_that_is_terminated_says_in_the_store_that_its_run_was_interrupted(
    repo, files, command, joining, tmp_path
):
    repo.commit("base", files)
    database = tmp_path / "perf.db"
    process = subprocess.Popen(
        [command, "submit", "-d", "cpu", "--quick", "--base", "none", "--rounds", "40", "flat"],
        cwd=repo.root,
        env={**joining, "PERFTRACK_DB": f"sqlite:///{database}"},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and jobs_in(database) < 1:
        time.sleep(0.1)
    process.terminate()
    _, said = process.communicate(timeout=60)
    assert process.returncode == 143, said
    with sqlite3.connect(database) as connection:
        assert connection.execute("select state from run").fetchall() == [("interrupted",)]


def jobs_in(database):
    if not database.exists():
        return 0
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=10) as connection:
        try:
            return connection.execute("select count(*) from job_attempt").fetchone()[0]
        except sqlite3.OperationalError:
            return 0

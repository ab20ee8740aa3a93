"""`perftrack submit` end to end on the CPU: real git, real Ray, real SQLite, real timing."""

import json
import os
import signal
import sqlite3
import subprocess
import time

CLAMP = "        np.maximum(out, 0, out=out)\n"
REDUNDANT = CLAMP + 6 * "        np.add(out, 0, out=out)\n"
THREE_BUFFERS = (
    "        np.multiply(x, 2, out=once)\n        np.add(once, 1, out=twice)\n        np.maximum(twice, 0, out=out)\n"
)


def submit(run, *args):
    done = run("submit", "-d", "cpu", "--quick", "--format", "json", *args)
    return done, (json.loads(done.stdout) if done.stdout else {})


def fused(report):
    return {row["case"].partition("[")[0]: row for row in report["rows"] if row["variant"] == "fused"}


def test_a_planted_slowdown_is_the_only_red(repo, run, files):
    repo.commit("base", files)
    repo.commit("a redundant pass", {"code_under_test.py": files["code_under_test.py"].replace(CLAMP, REDUNDANT)})
    done, report = submit(run)
    assert (done.returncode, report["verdict"]) == (1, "RED"), done.stderr
    red = [row for row in report["rows"] if row["red"]]
    assert [(row["case"], row["variant"], row["cause"]) for row in red] == [
        ("scale_shift[n=50000]", "fused", "fused-slower")
    ]
    assert red[0]["confirmed"]
    assert red[0]["change"]["point"] > 1.2
    assert (fused(report)["bystander"]["verdict"], fused(report)["bystander"]["cause"]) == ("same", "identical-code")
    again = run("report", "latest", "--format", "json")
    assert (again.returncode, json.loads(again.stdout)) == (1, report)
    text = run("report", "latest")
    assert text.stdout.startswith("RED")
    assert "scale_shift[n=50000]" in text.stdout


def test_a_faster_baseline_is_said_and_is_not_red(repo, run, files):
    repo.commit(
        "base", {**files, "code_under_test.py": files["code_under_test.py"].replace(THREE_BUFFERS, 3 * THREE_BUFFERS)}
    )
    repo.commit("unfused without repeats", {"code_under_test.py": files["code_under_test.py"]})
    done, report = submit(run, "flat")
    row = fused(report)["scale_shift"]
    assert (done.returncode, row["verdict"], row["cause"]) == (0, "same", "unfused-faster"), done.stderr
    assert "because unfused got" in row["message"]


def test_an_unchanged_commit_is_green_and_a_first_commit_is_new(repo, run, files):
    repo.commit("first", files)
    done, report = submit(run, "flat")
    assert (done.returncode, report["base"], fused(report)["scale_shift"]["verdict"]) == (0, None, "new"), done.stderr
    repo.commit("documentation", {"README.md": "words"})
    done, report = submit(run, "flat")
    row = fused(report)["scale_shift"]
    assert (done.returncode, report["verdict"], row["verdict"], row["cause"]) == (0, "GREEN", "same", "identical-code")


def test_broken_variants_and_suites_are_statuses_and_the_rest_goes_on(repo, run, files):
    repo.commit("base", files)
    crash = files["code_under_test.py"].replace(CLAMP, CLAMP + "        import os; os.abort()\n")
    wrong = files["other_code.py"].replace("return launch, out", "out[:] = 0; return launch, out").replace(CLAMP, "")
    repo.commit(
        "breaks things", {"code_under_test.py": crash, "other_code.py": wrong, "bench/bad.py": "import nothing_here\n"}
    )
    done, report = submit(run)
    assert done.returncode == 1, done.stderr
    verdicts = {name: (row["verdict"], row["red"]) for name, row in fused(report).items()}
    assert verdicts == {"scale_shift": ("failed", True), "bystander": ("wrong", True)}
    assert "SIGABRT" in fused(report)["scale_shift"]["message"]
    assert any("nothing_here" in problem for problem in report["problems"])


def test_a_suite_that_no_longer_imports_makes_its_cases_fail(repo, run, files):
    repo.commit("base", files)
    repo.commit("typo", {"bench/flat.py": files["bench/flat.py"] + "\nraise RuntimeError('typo')\n"})
    done, report = submit(run)
    assert done.returncode == 1, done.stderr
    row = next(row for row in report["rows"] if row["case"].startswith("scale_shift"))
    assert (row["verdict"], row["red"]) == ("failed", True)
    assert "typo" in row["message"]
    assert fused(report)["bystander"]["verdict"] == "same"


def test_a_dirty_tree_is_submitted_as_what_it_is(repo, run, files):
    sha = repo.commit("base", files)
    repo.write({"code_under_test.py": files["code_under_test.py"].replace(CLAMP, REDUNDANT)})
    done, report = submit(run, "flat")
    assert (done.returncode, report["head"], report["base_sha"]) == (1, f"{sha[:7]}+dirty", sha), done.stderr
    assert fused(report)["scale_shift"]["cause"] == "fused-slower"


def test_ctrl_c_keeps_what_was_measured_and_resume_measures_nothing_twice(repo, run, files, command, tmp_path):
    repo.commit("base", files)
    database = tmp_path / "perf.db"
    environment = {**os.environ, "PERFTRACK_DB": f"sqlite:///{database}"}
    process = subprocess.Popen(
        [command, "submit", "-d", "cpu", "--quick", "--base", "none", "--rounds", "6", "flat"],
        cwd=repo.root,
        env=environment,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and jobs_in(database) < 2:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    kept = jobs_in(database)
    assert process.returncode == 130, said
    assert "--resume" in said
    assert 2 <= kept < 6
    done = run("submit", "--resume", "latest", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert jobs_in(database) == 6
    with sqlite3.connect(database) as connection:
        (attempts,) = connection.execute("select max(attempt) from job_attempt").fetchone()
    assert attempts == 1
    assert {row["rounds"] for row in json.loads(done.stdout)["rows"]} == {6}


def jobs_in(database):
    if not database.exists():
        return 0
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=10) as connection:
        try:
            return connection.execute("select count(*) from job_attempt").fetchone()[0]
        except sqlite3.OperationalError:
            return 0

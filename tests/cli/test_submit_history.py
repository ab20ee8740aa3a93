"""A head that each comparison with its parent passes and its history does not: real git, Ray, SQLite, timing.

The history itself is written, not measured: so many commits would take minutes.
"""

import json

import msgspec
import numpy as np
import pytest

from perftrack.revision import Repository
from perftrack.store import Store

CLAMP = "        np.maximum(out, 0, out=out)\n"
COMMITS = 22
"""Written ones; the newest ten are 30 % slower than those before, which nobody remembers."""
CASE = "scale_shift[n=50000]"


def passes(code, count):
    """The head's 60 passes over the data take at most 1.25 times as long as 48, and several times as long as three."""
    return code.replace(CLAMP, CLAMP + (count - 3) * "        np.add(out, 0, out=out)\n")


def write_history(path, repo, shas, first_uid):
    """Each commit as a run of its own, with what the first one measured, moved by 1 % of noise and the levels."""
    git, noise = Repository.discover(repo.root), np.exp(0.01 * np.random.default_rng(5).standard_normal(len(shas)))
    with Store.open(str(path)) as store:
        first = store.load_run(first_uid)
        (job,) = [one for one in store.jobs(first_uid) if one.round == 1]
        for at, sha in enumerate(shas[1:], start=1):
            factor = float(noise[at]) * (1.3 if at >= COMMITS - 10 else 1.0)
            uid = f"{at:032x}"
            run = msgspec.structs.replace(first.run, uid=uid, head=git.revision(sha), base=None, started_us=at)
            store.begin_run(run)
            store.add_job(uid, first.cases[0], job, first.devices[0])
            summaries = [
                msgspec.structs.replace(one, time_s=one.time_s * factor) for one in first.summaries if one.time_s
            ]
            store.finish_run(uid, state="complete", finished_us=at, summaries=summaries, findings=[])


@pytest.fixture(scope="module")
def crept(track, files):
    """The repository after the submission of the head, its report, and how to run more commands there."""
    repo, run = track("crept")
    code = files["code_under_test.py"]
    tracked = {
        "pyproject.toml": files["pyproject.toml"].replace("confirm-rounds = 3", "confirm-rounds = 4"),
        "bench/flat.py": files["bench/flat.py"].replace("min_effect=0.1", "min_effect=0.9"),
        "code_under_test.py": code,
    }
    shas = [repo.commit("first", tracked)]
    args = ("-d", "cpu", "--quick", "--format", "json")
    done = run("submit", *args, "--rounds", "1")
    assert done.returncode == 0, done.stderr
    first = json.loads(done.stdout)["run"]
    for at in range(1, COMMITS):
        code_of_it = passes(code, 48) if at >= COMMITS - 10 else code
        shas.append(repo.commit(f"commit {at}", {"code_under_test.py": code_of_it}))
    write_history(repo.root.parent / "perf.db", repo, shas, first)
    repo.commit("one more pass or four", {"code_under_test.py": passes(code, 60)})
    return repo, run, run("submit", *args, "--rounds", "2"), args


def fused(report):
    return next(row for row in report["rows"] if row["variant"] == "fused")


def test_slow_creep_that_each_comparison_passes_is_confirmed_beside_the_best_known_commit(crept):
    _, run, done, _ = crept
    report = json.loads(done.stdout)
    row = fused(report)
    assert (done.returncode, report["verdict"], row["verdict"], row["confirmed"]) == (1, "RED", "slower", True), (
        row["message"],
        row["change"],
        done.stderr,
    )
    assert "slow creep: the newest commits are" in row["message"]
    assert row["change"]["point"] > 1.9, "measured, not taken from stored times"
    assert [one["since"] for one in row["regressions"]] == [""], "a regression of this commit"
    assert json.loads(run("report", "latest", "--format", "json").stdout)["run"] == report["run"]
    regressions = json.loads(run("regressions", "--format", "json").stdout)
    rows = regressions["regressions"] if isinstance(regressions, dict) else regressions
    assert [(one["state"], len(one["cases"])) for one in rows] == [("open", 1)]


def test_what_is_known_is_told_once_and_a_mark_holds(crept):
    repo, run, done, args = crept
    run_uid = json.loads(done.stdout)["run"]
    accepted = run("ack", CASE, "--reason", "exact sums need it")
    assert accepted.returncode == 0, accepted.stderr
    again = run("submit", "--resume", run_uid[:8], "--format", "json")
    assert (again.returncode, fused(json.loads(again.stdout))["verdict"]) == (0, "slower"), again.stderr
    assert "measure" not in again.stderr
    code = (repo.root / "code_under_test.py").read_text()
    repo.commit("words", {"code_under_test.py": code + "\n# nothing\n"})
    after = run("submit", *args, "--rounds", "1")
    report = json.loads(after.stdout)
    assert (after.returncode, report["verdict"]) == (0, "GREEN"), after.stderr
    assert "history" not in after.stderr, "the level begins at the regression that is known"
    with Store.open(str(repo.root.parent / "perf.db")) as store:
        assert len(store.regressions()) == 1

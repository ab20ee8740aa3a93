"""`perftrack doctor --measure` as users run it: real git, real Ray, real timing, and no trace in the database."""

import json

import pytest

MORE_CASES = '"n": [50_000, 60_000]'


def test_a_commit_is_measured_against_itself_and_not_stored(repo, run, files, tmp_path):
    repo.commit("first", {**files, "bench/flat.py": files["bench/flat.py"].replace('"n": [50_000]', MORE_CASES)})
    sha = repo.commit("second", {"README.md": "words"})
    repo.write({"code_under_test.py": "raise RuntimeError('not what HEAD has')"})
    done = run("doctor", "--measure", "-d", "cpu", "--rounds", "2", "--suite", "flat", "--format", "json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["head_sha"], report["rounds"], report["unmeasured"]) == (sha, 2, [])
    (family,) = report["families"]
    assert family["suite"] == "flat"
    assert (family["comparisons"], family["rounds"]) == (2, 2), "two variants of the first case"
    assert 0 < family["deviation"] <= family["worst"] * 1.5
    assert family["detectable_worst"] >= family["detectable"] > 0
    (device,) = report["devices"]
    (seen,) = report["noise"]
    assert (seen["uuid"], seen["processes"]) == (device["uuid"], 2)
    assert seen["ceiling_bytes_per_s"] > 1e8
    assert "temporary database" in done.stderr
    assert not (tmp_path / "perf.db").exists()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--suite", "flat"], "add --measure"),
        (["--measure", "--suite", "nosuch"], "unknown suite 'nosuch'"),
        (["--measure", "--rounds", "0"], "--rounds"),
    ],
)
def test_bad_input(repo, run, files, args, said):
    repo.commit("first", files)
    done = run("doctor", *args)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_what_is_here_as_json(repo, run, files):
    repo.commit("first", files)
    done = run("doctor", "--format", "json", env={"CUDA_VISIBLE_DEVICES": ""})
    checks = {check["subject"]: check["level"] for check in json.loads(done.stdout)}
    assert (done.returncode, checks["git"], checks["ray"]) == (0, "ok", "ok")

"""A regression from the commit that brings it to the one that mends it, on the command line."""

import json

import pytest

CLAMP = "        np.maximum(out, 0, out=out)\n"


@pytest.fixture(scope="module")
def lived(track, files):
    """What each command said: broken, listed, marked, reported again, mended. Wrong answers need no timing."""
    repo, run = track("lived")
    code = files["code_under_test.py"]
    repo.commit("base", files)
    broken = repo.commit("faster, somehow", {"code_under_test.py": code.replace(CLAMP, "")})
    short = ("flat", "-d", "cpu", "--quick", "--rounds", "1", "--format", "json")
    said = {"red": run("submit", *short), "open": run("regressions", "--format", "json")}
    said["ack"] = run("ack", "scale_shift*", "--reason", "only negative numbers suffer", "--until", "2999-12-31")
    said |= {"again": run("report", "latest"), "none": run("regressions"), "refused": run("ack", "99", "--reason", "x")}
    repo.commit("mend", {"code_under_test.py": code})
    return said | {"mended": run("submit", *short), "end": run("regressions", "--all")}, broken


def test_what_is_found_is_listed_with_its_commit(lived):
    said, broken = lived
    (row,) = [row for row in json.loads(said["red"].stdout)["rows"] if row["red"]]
    assert (said["red"].returncode, row["verdict"], row["regressions"][0]["id"]) == (1, "wrong", 1), said["red"].stderr
    assert row["regressions"][0]["text"] == "regression 1, open"
    (one,) = json.loads(said["open"].stdout)
    assert (one["id"], one["state"], one["kind"], one["found_sha"]) == (1, "open", "wrong", broken)
    assert [(case["case"], case["variant"]) for case in one["cases"]] == [("scale_shift[n=50000]", "fused")]


def test_what_is_acknowledged_fails_no_longer_and_says_so(lived):
    said, _ = lived
    assert said["ack"].returncode == said["again"].returncode == 0, said["ack"].stderr
    assert "1 acknowledged" in said["ack"].stdout
    assert said["again"].stdout.startswith("GREEN  nothing red: 1 acknowledged")
    assert "until 2999-12-31: only negative numbers suffer" in said["again"].stdout
    assert said["none"].stdout.strip() == "no regression"


def test_the_mending_commit_ends_it(lived):
    said, broken = lived
    report = json.loads(said["mended"].stdout)
    assert (said["mended"].returncode, len(report["fixed"])) == (0, 1), said["mended"].stderr
    assert report["fixed"][0].startswith(f"regression 1 (wrong since {broken[:7]} on cpu-")
    assert said["end"].stdout.splitlines()[-1] == "1 fixed"


def test_a_mark_that_cannot_be_made_is_refused(lived):
    done = lived[0]["refused"]
    assert (done.returncode, done.stdout) == (2, "")
    assert "perftrack: no regression 99 in" in done.stderr
    assert "there are 1 to 1" in done.stderr

"""`perftrack bisect` end to end on the CPU: real git, real Ray, real timing."""

import json

CLAMP = "        np.maximum(out, 0, out=out)\n"
SLOW = CLAMP + 60 * "        np.add(out, 0, out=out)\n"
CASE = "scale_shift[n=50000]"


def test_the_commit_of_a_step_is_found_skipping_what_cannot_be_measured_and_nothing_is_measured_twice(repo, run, files):
    code, suite = files["code_under_test.py"], files["bench/flat.py"]
    good = repo.commit("good", {**files, "bench/other.py": ""})
    repo.commit("does not import", {"bench/flat.py": suite + "\nraise RuntimeError('typo')\n"})
    repo.commit("slow", {"bench/flat.py": suite, "code_under_test.py": code.replace(CLAMP, SLOW)})
    repo.commit("words", {"README.md": "words"})
    args = ("bisect", CASE, f"{good[:12]}..HEAD", "-d", "cpu", "--quick", "--rounds", "4", "--format", "json")
    done = run(*args)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["variant"], report["commits"], report["suite"]) == ("fused", 3, "flat")
    assert report["step"]["point"] > 1.5
    answers = {one["subject"]: one["answer"] for one in report["tested"]}
    assert answers == {"does not import": "skipped", "slow": "bad", "words": "bad"}
    assert [one["subject"] for one in report["found"]] == ["does not import", "slow"], "a range, the last one measured"
    assert "typo" in report["tested"][0]["message"]
    assert report["found"][-1]["rounds"] >= 2
    again = run(*args[:-2])
    assert again.returncode == 0, again.stderr
    assert again.stdout.startswith("RANGE")
    assert again.stderr.count("stored  ") == 2
    assert "measure" not in again.stderr

"""`perftrack submit` as the recipe of docs/ci.md runs it, on a code host of these tests: measured, shown, commented."""

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml
from code_host import code_host

BOT = {"login": "github-actions[bot]", "type": "Bot"}
TOKEN = "ghs_0000000000000000000000000000000000c0ffee"  # noqa: S105 - of the host of these tests


def recipe():
    """The line of the first workflow that measures."""
    text = (Path(__file__).parents[2] / "docs" / "ci.md").read_text(encoding="utf-8")
    workflow = yaml.safe_load(re.search(r"```yaml\n(.*?)```", text, re.DOTALL)[1])
    (job,) = workflow["jobs"].values()
    return next(step["run"] for step in job["steps"] if "perftrack submit" in step.get("run", ""))


@pytest.fixture
def github(tmp_path):
    """A pull request on a host, and the environment of its job."""
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 12}}))
    with code_host() as host:
        host.writers[TOKEN] = BOT
        yield (
            host,
            {
                "GITHUB_ACTIONS": "true", "GITHUB_API_URL": f"{host.root}/gh", "GITHUB_REPOSITORY": "ada/kernels",
                "GITHUB_EVENT_PATH": str(event), "GITHUB_WORKFLOW": "performance", "GITHUB_TOKEN": TOKEN,
                "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
            },
        )  # fmt: skip


def test_a_broken_variant_is_shown_commented_and_kept(repo, files, joining, command, tmp_path, github):
    host, environ = github
    repo.commit("base", files)
    clamp = "        np.maximum(out, 0, out=out)\n"
    repo.commit("a step less", {"code_under_test.py": files["code_under_test.py"].replace(clamp, "")})
    script = f'perftrack() {{ {shlex.quote(command)} "$@" -d cpu --quick --rounds 1 flat; }}\n{recipe()}'
    done = subprocess.run(
        ["bash", "-ec", script],
        cwd=repo.root,
        env={**joining, **environ, "PERFTRACK_DB": f"sqlite:///{tmp_path / 'perf.db'}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("RED  1 newly wrong on ")
    assert "base    " in done.stdout
    assert "parent, 1 commit back" in done.stdout
    assert (tmp_path / "summary.md").read_text().startswith("### RED: 1 newly wrong on ")
    assert "\n::error title=wrong%3A scale_shift[n=50000] fused on " in done.stderr
    assert done.stderr.splitlines()[-1] == "comment made on #12"
    assert "### RED: 1 newly wrong on " in host.said()[0]
    assert json.loads((repo.root / "perf.json").read_text())["exit_code"] == 1
    assert '<failure message="' in (repo.root / "perf.xml").read_text()
    assert TOKEN not in done.stdout + done.stderr + host.said()[0]


def test_a_job_that_cannot_measure_says_so(repo, run, files, tmp_path, github):
    host, environ = github
    repo.commit("base", files)
    done = run("submit", "nosuch", "--report", "ci", env=environ)
    assert done.returncode == 2
    assert (tmp_path / "summary.md").read_text().startswith("### NO VERDICT: unknown suite")
    assert "::error title=perftrack%3A no verdict::unknown suite" in done.stderr
    assert host.comments == []

"""The recipes of docs/ci.md: they parse, their commands exist, and what posts a comment posts it."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
import yaml

from perftrack.cli.app import app
from perftrack.cli.output import FORMATS, outputs
from perftrack.report import as_annotations, as_json, markdown

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "ci.md").read_text(encoding="utf-8")
RECIPES = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)]
MEASURE, COMMENT, GITLAB = RECIPES
ON = True
"""The key `on`, as YAML 1.1 reads it."""


def steps(workflow):
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def commands():
    """Every `perftrack …` of the recipes, as words."""
    lines = [step["run"] for recipe in (MEASURE, COMMENT) for step in steps(recipe) if "run" in step]
    lines += GITLAB["performance"]["script"]
    lines += re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)
    return [shlex.split(line) for line in lines if line.startswith("perftrack")]


def test_every_command_is_one_that_exists():
    found = commands()
    assert [words[1] for words in found] == ["submit", "comment", "submit", "submit"]
    for _, name, *args in found:
        # by way of the group: a command keeps the help option of the first context that asks for it
        parent = click.Context(app, info_name="perftrack", **app.context_settings)
        context = app.commands[name].make_context(name, args, parent=parent)
        wishes = context.params.get("wishes", ())
        assert outputs("text", None, [wish for wish in wishes if wish != "ci"]).stdout == ("text",)


def test_the_workflow_that_measures_may_comment_and_keeps_what_it_measured():
    assert MEASURE["permissions"] == {"contents": "read", "pull-requests": "write"}
    checkout, *_, measure, upload = steps(MEASURE)
    # the pull request's own commit, which stays in the history, and the pushed one where there is none
    assert checkout["with"] == {"fetch-depth": 0, "ref": "${{ github.event.pull_request.head.sha }}"}
    assert measure["env"]["GITHUB_TOKEN"] == "${{ github.token }}"  # noqa: S105 - an expression
    assert (upload["if"], upload["with"]["path"]) == ("always()", "perf.*")


def test_the_workflow_that_comments_follows_it_and_runs_nothing_of_the_fork():
    assert COMMENT[ON]["workflow_run"] == {"workflows": [MEASURE["name"]], "types": ["completed"]}
    assert COMMENT["permissions"] == {"actions": "read", "pull-requests": "write"}
    assert not any("checkout" in step.get("uses", "") for step in steps(COMMENT))
    download = steps(COMMENT)[0]["with"]
    assert download["name"] == steps(MEASURE)[-1]["with"]["name"]
    # what an event holds is never pasted into a shell
    assert not any("${{" in step.get("run", "") for recipe in (MEASURE, COMMENT) for step in steps(recipe))


def test_gitlab_keeps_the_files_that_are_written():
    job = GITLAB["performance"]
    kept = {*job["artifacts"]["paths"], *job["artifacts"]["reports"].values()}
    written = {word.partition(":")[2] for words in commands()[2:3] for word in words if ":" in word}
    assert kept == written
    assert job["artifacts"]["when"] == "always"


def test_the_second_workflow_posts_the_comment(github, host, report_file):
    event = {
        "workflow_run": {
            "name": MEASURE["name"], "event": "pull_request", "head_sha": "f" * 40, "head_branch": "topic",
            "head_repository": {"owner": {"login": "bob"}},
        }
    }  # fmt: skip
    host.pulls = [{"number": 31, "head": {"sha": "f" * 40}, "label": "bob:topic"}]
    line = next(step["run"] for step in steps(COMMENT) if "perftrack comment" in step.get("run", ""))
    done = subprocess.run(
        ["bash", "-ec", f'perftrack() {{ {shlex.quote(sys.executable)} -m perftrack "$@"; }}\n{line}'],
        cwd=report_file.parent,
        env={**os.environ, **github(event, GITHUB_WORKFLOW=COMMENT["name"])},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "comment made on #31\n")
    assert host.said()[0].count("\n") > 5


REPORTS = (DOCS / "reports.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_told(name):
    assert f"\n| `{name}` |" in REPORTS


def test_the_limits_are_those_of_the_program():
    assert f"{markdown.GITHUB_COMMENT_BYTES:,} bytes" in REPORTS
    assert f"{markdown.GITHUB_SUMMARY_BYTES // 1024:,} KiB" in REPORTS
    assert f"{markdown.GITLAB_NOTE_BYTES:,} bytes" in REPORTS
    assert (as_annotations.EACH, as_annotations.MESSAGE_BYTES, as_annotations.TOTAL_BYTES) == (10, 4 << 10, 64 << 10)


def test_the_schema_is_where_the_page_says():
    link = re.search(r"\]\((\S+\.json)\)", REPORTS)[1]
    assert (DOCS / link).resolve() == as_json.SCHEMA_FILE.resolve()

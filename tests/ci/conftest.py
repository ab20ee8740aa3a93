"""A code host, and jobs that run on it."""

import json

import msgspec
import pytest
from ci_builders import BOT, TOKEN, make_report
from code_host import code_host


@pytest.fixture
def host():
    with code_host() as state:
        state.writers[TOKEN] = BOT
        yield state


@pytest.fixture
def github(host, tmp_path):
    """Make the environment of a job of GitHub Actions; `event` is what started it."""

    def make(event=None, **more):
        path = tmp_path / "event.json"
        path.write_text(json.dumps({"pull_request": {"number": 12}} if event is None else event))
        return {
            "GITHUB_ACTIONS": "true",
            "GITHUB_API_URL": f"{host.root}/gh",
            "GITHUB_SERVER_URL": "https://github.example",
            "GITHUB_REPOSITORY": "ada/kernels",
            "GITHUB_RUN_ID": "99",
            "GITHUB_WORKFLOW": "performance",
            "GITHUB_EVENT_NAME": "pull_request",
            "GITHUB_EVENT_PATH": str(path),
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
            "GITHUB_TOKEN": TOKEN,
            **more,
        }

    return make


@pytest.fixture
def gitlab(host):
    """Make the environment of a job of GitLab."""
    host.users[TOKEN] = BOT

    def make(**more):
        return {
            "GITLAB_CI": "true",
            "CI_API_V4_URL": f"{host.root}/gl/api/v4",
            "CI_PROJECT_ID": "5",
            "CI_MERGE_REQUEST_PROJECT_ID": "4",
            "CI_MERGE_REQUEST_IID": "12",
            "CI_JOB_NAME": "performance",
            "CI_JOB_URL": "https://gitlab.example/jobs/1",
            "GITLAB_TOKEN": TOKEN,
            **more,
        }

    return make


@pytest.fixture
def red():
    return make_report()


@pytest.fixture
def green():
    return make_report("GREEN")


@pytest.fixture
def report_file(tmp_path, red):
    path = tmp_path / "perf.json"
    path.write_bytes(msgspec.json.encode(red))
    return path

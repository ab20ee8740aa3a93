"""One comment: made for news only, updated in place, found among others, never twice."""

import pytest
from ci_builders import ADA, BOT, TOKEN, make_report
from code_host import Fault

from perftrack.ci import comment
from perftrack.ci.api import HostError
from perftrack.ci.deliver import deliver, deliver_failure, post
from perftrack.ci.host import NoThreadError, host_of
from perftrack.errors import StoreError, UsageError


@pytest.fixture(params=["github", "gitlab"])
def job(request):
    """A job on each host, on a change number 12."""
    return host_of(request.getfixturevalue(request.param)())


@pytest.fixture
def mark(job):
    return comment.marker(job.job)


def test_news_make_one_comment_and_the_next_run_updates_it(job, host, red, green):
    for number in range(5):
        host.add(f"a discussion of {number}", ADA)
    assert post(red, job) in ("comment made on #12", "comment made on !12")
    assert "RED: 1 confirmed slowdown" in host.said()[5]
    assert post(green, job).startswith("comment updated on ")
    assert len(host.comments) == 6
    assert "GREEN: no confirmed slowdown" in host.said()[5]
    assert host.said()[:5] == [f"a discussion of {number}" for number in range(5)]


@pytest.mark.parametrize("name", ["github", "gitlab"])
def test_the_comment_leads_to_the_pages_of_the_store(request, name, host, red, tmp_path):
    make = request.getfixturevalue(name)
    job = host_of(make(PERFTRACK_WEB="https://perf.example/kernels/"))
    link = f"[Pictures and histories](https://perf.example/kernels/run?id={red.run})"
    deliver(red, job, print)
    assert link in host.said()[0]
    assert name != "github" or link in (tmp_path / "summary.md").read_text()
    assert "Pictures" not in comment.report_body(make_report(run="1) [x](y"), job="", limit=60_000, web=job.web)
    for web in ("perf.example", "javascript:x", "https://x) [y](z", "https://a b"):
        with pytest.raises(UsageError, match="PERFTRACK_WEB is"):
            host_of(make(PERFTRACK_WEB=web))


def test_without_news_no_comment_is_made(job, host, green):
    assert post(green, job) == "comment not needed: nothing changed"
    assert host.writes() == []


def test_what_is_there_already_is_not_written_again(job, host, red):
    post(red, job)
    before = host.writes()
    assert post(red, job).startswith("comment unchanged on ")
    assert host.writes() == before


def test_it_ends_with_a_link_to_the_run_and_begins_with_the_marker(job, host, red, mark):
    post(red, job)
    assert host.said()[0].startswith(f"{mark}\n### RED: ")
    assert f"[The run]({job.page})" in host.said()[0]


def test_a_marker_that_somebody_copied_is_not_ours(job, host, red, mark):
    host.add(f"{mark}\n### GREEN, believe me", ADA)
    host.add(f"quoted:\n> {mark}", BOT)
    assert post(red, job).startswith("comment made on ")
    assert host.said()[:2] == [f"{mark}\n### GREEN, believe me", f"quoted:\n> {mark}"]


def test_jobs_do_not_take_each_others_comment(host, red, github):
    post(red, host_of(github()))
    post(red, host_of(github(GITHUB_WORKFLOW="other")))
    assert len(host.comments) == 2


def test_a_personal_token_knows_its_own_comments(host, red, github):
    host.writers[TOKEN] = host.users[TOKEN] = ADA
    job = host_of(github())
    host.add(f"{comment.marker(job.job)}\na bot's", BOT)
    assert post(red, job) == "comment made on #12"
    assert post(make_report("GREEN"), job) == "comment updated on #12"
    assert len(host.comments) == 2


def test_a_lost_answer_does_not_make_a_second_comment(job, host, red):
    host.faults.append(Fault("POST", "comments|notes", 502, after=True))
    assert comment.put(job.thread(), f"{comment.marker(job.job)}\nx", may_make=True, pause_s=0.01) == "made"
    assert len(host.comments) == 1


def test_a_broken_connection_does_neither(job, host):
    host.faults.append(Fault("POST", "comments|notes", 0, after=True))
    assert comment.put(job.thread(), f"{comment.marker(job.job)}\nx", may_make=True, pause_s=0.01) == "made"
    assert len(host.comments) == 1


def test_a_read_only_token_is_said_with_the_remedy_and_the_verdict_stands(host, red, github):
    del host.writers[TOKEN]
    host.readers[TOKEN] = BOT
    said = []
    deliver(red, host_of(github()), said.append)
    assert said[-1].startswith("comment none: POST /gh/repos/ada/kernels/issues/12/comments")
    assert "pull-requests: write" in said[-1]
    assert "docs/ci.md" in said[-1]
    with pytest.raises(HostError) as refused:
        post(red, host_of(github()))
    assert (refused.value.status, refused.value.exit_code) == (403, 3)


def test_the_longest_report_fits_into_a_comment(job, host, red):
    rows = tuple(make_report(rows=()).rows) + red.rows * 5000
    flood = make_report(rows=rows, problems=("日本語 " * 1000,) * 500, head_subject="<" * 5000)
    post(flood, job)
    assert len(host.comments) == 1


def test_a_run_without_a_report_outdates_the_comment_and_makes_none(job, host, red):
    deliver_failure(StoreError("the database is gone"), job, lambda _: None)
    assert host.comments == []
    post(red, job)
    deliver_failure(StoreError("the database is gone"), job, lambda _: None)
    assert len(host.comments) == 1
    assert "NO VERDICT: the database is gone" in host.said()[0]


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ({"ref": "refs/heads/main"}, "the event `push` belongs to no pull request"),
        ({"workflow_run": {"event": "push"}}, "was not started by a pull request"),
    ],
)
def test_a_push_has_nothing_to_comment_on(host, red, github, event, said):
    with pytest.raises(NoThreadError, match=said):
        post(red, host_of(github(event, GITHUB_EVENT_NAME="push")))
    assert host.comments == []


def test_without_a_token_the_remedy_is_said(red, github, gitlab):
    for environ, name in ((github(GITHUB_TOKEN=""), "GITHUB_TOKEN"), (gitlab(GITLAB_TOKEN=""), "GITLAB_TOKEN")):
        with pytest.raises(UsageError, match=f"{name} is not set"):
            post(red, host_of(environ))


def fork_run(sha="f" * 40):
    """The event of a second workflow, after a fork's pull request was measured."""
    return {
        "workflow_run": {
            "name": "performance",
            "event": "pull_request",
            "head_sha": sha,
            "head_branch": "topic",
            "head_repository": {"owner": {"login": "bob"}},
            "html_url": "https://github.example/runs/98",
            "pull_requests": [],
        }
    }


def pull(number, sha, label="bob:topic"):
    return {"number": number, "head": {"sha": sha}, "label": label}


def test_a_second_workflow_finds_the_pull_request_of_a_fork(host, red, github):
    host.pulls = [pull(1, "a" * 40), pull(2, "b" * 40), pull(31, "f" * 40), pull(4, "f" * 40, "eve:topic")]
    job = host_of(github(fork_run(), GITHUB_WORKFLOW="performance comment", GITHUB_EVENT_NAME="workflow_run"))
    assert post(red, job) == "comment made on #31"
    assert host.said()[0].startswith(comment.marker("performance"))
    assert "https://github.example/runs/98" in host.said()[0]


def test_a_pull_request_that_moved_on_gets_no_old_report(host, red, github):
    host.pulls = [pull(31, "e" * 40)]
    with pytest.raises(NoThreadError, match="fffffff as its head any more"):
        post(red, host_of(github(fork_run())))


def test_a_branch_pipeline_finds_its_merge_request(host, red, gitlab):
    environ = gitlab(CI_MERGE_REQUEST_IID="", CI_OPEN_MERGE_REQUESTS="ada/deep/kernels!7,ada/kernels!8")
    assert post(red, host_of(environ)) == "comment made on !7"
    assert host.writes() == [("POST", "/gl/api/v4/projects/ada%2Fdeep%2Fkernels/merge_requests/7/notes")]


def test_a_merge_request_from_a_fork_is_in_the_target_project(host, red, gitlab):
    post(red, host_of(gitlab()))
    assert host.writes() == [("POST", "/gl/api/v4/projects/4/merge_requests/12/notes")]

"""GitHub Actions: job summary, annotations, and one comment on the pull request.

Which pull request it is comes from the event that GitHub wrote, never from a report: that may be the artifact of a
fork. Sources: docs.github.com, "Variables reference", "Events that trigger workflows: workflow_run", and the REST API
for issue comments and pulls, version 2022-11-28.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from perftrack.ci.api import Api, HostError
from perftrack.ci.comment import Comment, with_pictures
from perftrack.ci.host import NoThreadError, need, web_of
from perftrack.errors import PerftrackError, UsageError
from perftrack.foreign import plain
from perftrack.report import as_annotations, markdown
from perftrack.report.value import Report

_LEAST_SUMMARY_BYTES = 30_000


@dataclass(frozen=True, slots=True)
class GitHub:
    """One job of a workflow."""

    environ: Mapping[str, str] = field(repr=False)  # it has the token
    event: Mapping[str, Any] = field(repr=False)
    """What started the workflow."""
    job: str
    page: str
    web: str = ""
    comment_bytes: int = markdown.GITHUB_COMMENT_BYTES

    @classmethod
    def here(cls, environ: Mapping[str, str]) -> "GitHub":
        """From the runner's environment and the event's file."""
        event = _event(environ)
        started = event.get("workflow_run") or {}
        server, repository = environ.get("GITHUB_SERVER_URL", ""), environ.get("GITHUB_REPOSITORY", "")
        run = environ.get("GITHUB_RUN_ID", "")
        page = f"{server}/{repository}/actions/runs/{run}" if server and repository and run else ""
        return cls(
            environ,
            event,
            # the workflow that measured, in both workflows the same
            job=str(started.get("name") or environ.get("GITHUB_WORKFLOW", "")),
            page=str(started.get("html_url") or page),
            web=web_of(environ),
        )

    def show(self, report: Report) -> str:
        """Append to the step's summary; the annotations are the answer."""
        self._summarize(lambda limit: with_pictures(markdown.render(report, limit=limit), report, self.web))
        return as_annotations.render(report)

    def show_failure(self, error: PerftrackError) -> str:
        """The same of a run without a report."""
        said = f"### NO VERDICT: {markdown.escape(plain(str(error))[:2000])}"
        self._summarize(lambda _: said)
        return as_annotations.failure(error)

    def _summarize(self, render: Any) -> None:
        if not (name := self.environ.get("GITHUB_STEP_SUMMARY")):
            return
        path = Path(name)
        try:
            used = path.stat().st_size if path.exists() else 0
            limit = max(_LEAST_SUMMARY_BYTES, markdown.GITHUB_SUMMARY_BYTES - used)
            with path.open("a", encoding="utf-8") as file:
                file.write(render(limit) + "\n")
        except OSError as error:
            raise UsageError(f"GITHUB_STEP_SUMMARY {path}: {error.strerror}") from error

    def thread(self) -> "Pull":
        """The pull request of the event; for `workflow_run` the open one whose head was measured."""
        if not (token := self.environ.get("GITHUB_TOKEN", "").strip()):
            raise UsageError("GITHUB_TOKEN is not set; give the step `env: GITHUB_TOKEN: ${{ github.token }}`")
        api = Api(need(self.environ, "GITHUB_API_URL"), token)
        repository = quote(need(self.environ, "GITHUB_REPOSITORY"))
        pull = self.event.get("pull_request")
        if isinstance(pull, dict):
            return Pull(api, repository, int(pull["number"]))
        if "workflow_run" in self.event:
            return Pull(api, repository, _pull_of(api, repository, self.event["workflow_run"]))
        event = plain(self.environ.get("GITHUB_EVENT_NAME", "unknown"))
        raise NoThreadError(f"the event `{event}` belongs to no pull request")


def _event(environ: Mapping[str, str]) -> Mapping[str, Any]:
    path = environ.get("GITHUB_EVENT_PATH")
    if not path:
        return {}
    try:
        event = msgspec.json.decode(Path(path).read_bytes())
    except (OSError, msgspec.DecodeError) as error:
        raise UsageError(f"GITHUB_EVENT_PATH {path} cannot be read: {error}") from error
    return event if isinstance(event, dict) else {}


def _pull_of(api: Api, repository: str, run: Mapping[str, Any]) -> int:
    """GitHub names no pull request for runs of a fork; its owner and branch do, if its head is still the same."""
    head = run.get("head_repository") or {}
    owner, branch, sha = (head.get("owner") or {}).get("login"), run.get("head_branch"), run.get("head_sha")
    if run.get("event") not in ("pull_request", "pull_request_target") or not (owner and branch and sha):
        raise NoThreadError("the workflow that measured was not started by a pull request")
    query = urlencode({"state": "open", "head": f"{owner}:{branch}", "per_page": 100})
    for pull in api.pages(f"repos/{repository}/pulls?{query}"):
        if pull["head"]["sha"] == sha:
            return int(pull["number"])
    raise NoThreadError(f"no open pull request has {str(sha)[:7]} as its head any more")


@dataclass(frozen=True, slots=True)
class Pull:
    """A pull request; its comments are those of an issue."""

    api: Api
    repository: str
    number: int

    @property
    def name(self) -> str:
        """`#12`."""
        return f"#{self.number}"

    def own_comments(self, start: str) -> Iterator[Comment]:
        """A workflow's token has no account to ask for: its comments are a bot's; else those of the token's owner."""
        path = f"repos/{self.repository}/issues/{self.number}/comments?per_page=100"
        found = [one for one in self.api.pages(path) if str(one.get("body", "")).startswith(start)]
        me = self._me() if found else None
        for one in found:
            author = one.get("user") or {}
            if author.get("login") == me if me else author.get("type") == "Bot":
                yield Comment(str(one["id"]), str(one["body"]))

    def _me(self) -> str | None:
        try:
            return self.api.get("user").get("login")
        except HostError as error:
            if error.status in (401, 403, 404):
                return None
            raise

    def make(self, body: str) -> None:
        """Post a comment."""
        try:
            self.api.post(f"repos/{self.repository}/issues/{self.number}/comments", {"body": body})
        except HostError as error:
            raise _explained(error) from None

    def update(self, comment: Comment, body: str) -> None:
        """Change it in place; nobody is notified."""
        try:
            self.api.change("PATCH", f"repos/{self.repository}/issues/comments/{comment.id}", {"body": body})
        except HostError as error:
            raise _explained(error) from None


def _explained(error: HostError) -> HostError:
    if error.status not in (403, 404):
        return error
    return HostError(
        f"{error}; the token may not write here: give the job `permissions: pull-requests: write`, or, for pull "
        "requests from forks, post the report from a second workflow (docs/ci.md)",
        error.status,
    )

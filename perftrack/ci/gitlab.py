"""GitLab CI: one note on the merge request. The report itself reaches GitLab as JUnit and OpenMetrics artifacts.

Sources: docs.gitlab.com, "Predefined CI/CD variables" and "Notes API"; a job's own token may not write notes.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from perftrack.ci.api import Api, HostError
from perftrack.ci.comment import Comment
from perftrack.ci.host import NoThreadError, need, web_of
from perftrack.errors import PerftrackError, UsageError
from perftrack.report import markdown
from perftrack.report.value import Report


@dataclass(frozen=True, slots=True)
class GitLab:
    """One job of a pipeline."""

    environ: Mapping[str, str] = field(repr=False)  # it has the token
    job: str
    page: str
    web: str = ""
    comment_bytes: int = markdown.GITLAB_NOTE_BYTES

    @classmethod
    def here(cls, environ: Mapping[str, str]) -> "GitLab":
        """From the runner's environment."""
        return cls(environ, job=environ.get("CI_JOB_NAME", ""), page=environ.get("CI_JOB_URL", ""), web=web_of(environ))

    def show(self, report: Report) -> str:
        """Nothing: GitLab shows the job's log, and what the artifacts hold."""
        del report
        return ""

    def show_failure(self, error: PerftrackError) -> str:
        """Nothing: the error is in the log."""
        del error
        return ""

    def thread(self) -> "MergeRequest":
        """The merge request of the pipeline; of a branch's pipeline, the first one that is open for it."""
        environ = self.environ
        project = environ.get("CI_MERGE_REQUEST_PROJECT_ID") or environ.get("CI_PROJECT_ID", "")
        number = environ.get("CI_MERGE_REQUEST_IID", "")
        if not number:
            project, _, number = environ.get("CI_OPEN_MERGE_REQUESTS", "").partition(",")[0].rpartition("!")
        if not (project and number.isdecimal()):
            raise NoThreadError("this pipeline belongs to no merge request")
        if not (token := environ.get("GITLAB_TOKEN", "").strip()):
            raise UsageError(
                "GITLAB_TOKEN is not set: make a project access token with the scope `api`, and a masked CI/CD "
                "variable of it (a job's own token may not write notes)"
            )
        api = Api(need(environ, "CI_API_V4_URL"), token, header="PRIVATE-TOKEN", scheme="")
        return MergeRequest(api, quote(project, safe=""), int(number))


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """A merge request and its notes."""

    api: Api
    project: str
    number: int

    @property
    def name(self) -> str:
        """`!12`."""
        return f"!{self.number}"

    @property
    def _notes(self) -> str:
        return f"projects/{self.project}/merge_requests/{self.number}/notes"

    def own_comments(self, start: str) -> Iterator[Comment]:
        """Those of the token's own user."""
        me = self.api.get("user").get("id")
        for one in self.api.pages(f"{self._notes}?per_page=100&sort=asc"):
            if str(one.get("body", "")).startswith(start) and (one.get("author") or {}).get("id") == me:
                yield Comment(str(one["id"]), str(one["body"]))

    def make(self, body: str) -> None:
        """Post a note."""
        try:
            self.api.post(self._notes, {"body": body})
        except HostError as error:
            raise _explained(error) from None

    def update(self, comment: Comment, body: str) -> None:
        """Change it in place."""
        try:
            self.api.change("PUT", f"{self._notes}/{comment.id}", {"body": body})
        except HostError as error:
            raise _explained(error) from None


def _explained(error: HostError) -> HostError:
    if error.status not in (401, 403, 404):
        return error
    return HostError(f"{error}; GITLAB_TOKEN needs the scope `api` and the role Reporter or above", error.status)

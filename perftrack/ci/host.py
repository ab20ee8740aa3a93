"""The CI host that runs this command, as its environment tells."""

import re
from collections.abc import Mapping, MutableMapping
from typing import Protocol

from perftrack.ci.comment import Thread
from perftrack.errors import PerftrackError, UsageError
from perftrack.foreign import plain
from perftrack.report.value import Report

_WEB = re.compile(r"https?://[A-Za-z0-9.:\[\]_-]+(/[A-Za-z0-9._~/-]*)?")


class NoThreadError(PerftrackError):
    """There is nothing to comment on; the sentence says why."""


class Host(Protocol):
    """What every host can do."""

    @property
    def comment_bytes(self) -> int:
        """The longest comment, with a margin."""
        ...

    @property
    def job(self) -> str:
        """What tells the comments of several jobs apart."""
        ...

    @property
    def page(self) -> str:
        """URL of the run; may be empty."""
        ...

    @property
    def web(self) -> str:
        """Where the pages of the store are served, without a last slash; empty where nobody said."""
        ...

    def show(self, report: Report) -> str:
        """Put the report where the host shows it; the answer is for standard error, where the host reads it."""
        ...

    def show_failure(self, error: PerftrackError) -> str:
        """The same where there is no report."""
        ...

    def thread(self) -> Thread:
        """Where comments on this change stand; NoThreadError where there is none."""
        ...


TOKENS = ("GITHUB_TOKEN", "GITLAB_TOKEN")
"""Variables that hold a secret."""


def this_host(environ: MutableMapping[str, str]) -> Host:
    """The host, which takes the tokens with it: what is measured later is somebody's code, and inherits the rest."""
    host = host_of(dict(environ))
    for name in TOKENS:
        environ.pop(name, None)
    return host


def host_of(environ: Mapping[str, str]) -> Host:
    """UsageError where this is no host that is known."""
    if environ.get("GITHUB_ACTIONS") == "true":
        from perftrack.ci.github import GitHub  # noqa: PLC0415 - only the one that is needed

        return GitHub.here(environ)
    if environ.get("GITLAB_CI") == "true":
        from perftrack.ci.gitlab import GitLab  # noqa: PLC0415 - the same

        return GitLab.here(environ)
    raise UsageError(
        "no CI host is known here: neither GITHUB_ACTIONS nor GITLAB_CI is set; elsewhere use "
        "--report markdown:FILE or --report junit:FILE"
    )


def web_of(environ: Mapping[str, str]) -> str:
    """PERFTRACK_WEB; UsageError where it cannot stand in a link."""
    web = environ.get("PERFTRACK_WEB", "").strip().rstrip("/")
    if web and not _WEB.fullmatch(web):
        raise UsageError(
            f"PERFTRACK_WEB is {plain(web[:200])!r}; give where `perftrack serve` answers, such as https://perf.example"
        )
    return web


def need(environ: Mapping[str, str], name: str) -> str:
    """A variable that the host always sets; UsageError where it is missing."""
    if not (value := environ.get(name)):
        raise UsageError(f"{name} is not set: the CI host sets it for every job; do not clear the environment")
    return value

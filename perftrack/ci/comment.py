"""One comment a job on a change, found again by a hidden marker, and written only where there is something to say."""

import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

from perftrack.ci.api import HostError
from perftrack.errors import PerftrackError
from perftrack.foreign import plain
from perftrack.report import markdown, words
from perftrack.report.value import Report

_ATTEMPTS = 3

Outcome = Literal["made", "updated", "unchanged", "not needed"]


@dataclass(frozen=True, slots=True)
class Comment:
    """One comment that is there already."""

    id: str
    body: str


class Thread(Protocol):
    """The comments of a pull or merge request."""

    @property
    def name(self) -> str:
        """For people: `#12`."""
        ...

    def own_comments(self, start: str) -> Iterator[Comment]:
        """Those that begin with `start` and were written by us: a marker can be copied, an author cannot."""
        ...

    def make(self, body: str) -> None:
        """A new comment."""
        ...

    def update(self, comment: Comment, body: str) -> None:
        """Another text for one of ours."""
        ...


def report_body(report: Report, *, job: str, limit: int, page: str = "", web: str = "") -> str:
    """The comment about a report: marker, Markdown within the host's limit, links to the run's `page` and pictures."""
    head, foot = marker(job), _link(page, pictures(report, web))
    return f"{head}\n{markdown.render(report, limit=limit - len(head) - len(foot.encode()) - 1)}{foot}"


def failure_body(error: PerftrackError, *, job: str, page: str = "") -> str:
    """The comment about a run that ended without a report."""
    said = markdown.escape(plain(str(error))[:2000])
    return f"{marker(job)}\n### NO VERDICT: {said}\n\nWhat stood here before is outdated.{_link(page)}"


def marker(job: str) -> str:
    """The comment's first line, which nobody sees; other jobs have other ones."""
    return f"<!-- perftrack {hashlib.sha256(job.encode()).hexdigest()[:16]} -->"


def is_worth_making(report: Report) -> bool:
    """Whether there is news; where there is none, only a comment that is there already is brought up to date."""
    return words.changed(report)


def put(thread: Thread, body: str, *, may_make: bool, pause_s: float = 1.0) -> Outcome:
    """Bring the comment to `body`. After a failure that may have made one it is looked for before trying again."""
    start = body.partition("\n")[0]
    for attempt in range(_ATTEMPTS):
        there = next(thread.own_comments(start), None)
        if there is None and not may_make:
            return "not needed"
        if there is not None and there.body.replace("\r\n", "\n").strip() == body.strip():
            return "made" if attempt else "unchanged"
        try:
            if there is None:
                thread.make(body)
                return "made"
            thread.update(there, body)
        except HostError as error:
            if not error.uncertain or attempt == _ATTEMPTS - 1:
                raise
            time.sleep(pause_s * 2**attempt)
        else:
            return "updated"
    raise AssertionError("the last attempt returns or raises")


def pictures(report: Report, web: str) -> str:
    """Address of the run among the pages served at `web`; empty where nobody said where they are."""
    return f"{web}/run?id={report.run}" if web and report.run.isascii() and report.run.isalnum() else ""


def _link(page: str, shown: str = "") -> str:
    links = [f"[{name}]({url})" for name, url in (("Pictures and histories", shown), ("The run", page)) if url]
    return f"\n\n<sub>{' · '.join(links)}</sub>" if links else ""


def with_pictures(text: str, report: Report, web: str) -> str:
    """A summary with the link at its end."""
    return text + _link("", pictures(report, web))

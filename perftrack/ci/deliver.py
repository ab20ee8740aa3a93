"""A report on its way to the host: what is shown, what is said about the comment. The verdict outweighs both."""

from collections.abc import Callable

from perftrack.ci import comment
from perftrack.ci.api import HostError
from perftrack.ci.host import Host, NoThreadError
from perftrack.errors import PerftrackError, UsageError
from perftrack.report.value import Report

Say = Callable[[str], None]
"""Writes a line to standard error."""


def deliver(report: Report, host: Host, say: Say) -> None:
    """Summary and annotations always, the comment where there is news and a way; what fails there is only said.

    What cannot be written there must not turn a verdict into another exit code.
    """
    try:
        if shown := host.show(report):
            say(shown)
    except UsageError as error:
        say(f"summary none: {error}")
    try:
        say(post(report, host))
    except (HostError, NoThreadError, UsageError) as error:
        say(f"comment none: {error}")


def deliver_failure(error: PerftrackError, host: Host, say: Say) -> None:
    """That there is no verdict is shown as well, and an earlier comment does not stand as if it were this run's."""
    try:
        if shown := host.show_failure(error):
            say(shown)
        body = comment.failure_body(error, job=host.job, page=host.page)
        comment.put(host.thread(), body, may_make=False)
    except (HostError, NoThreadError, UsageError):
        return


def post_alone(report: Report, host: Host) -> str:
    """`post`, for a command that does nothing else: where there is nothing to comment on, that is all it says."""
    try:
        return post(report, host)
    except NoThreadError as error:
        return f"comment none: {error}"


def post(report: Report, host: Host) -> str:
    """Make or update the one comment, and say what became of it. Raises HostError, NoThreadError or UsageError."""
    may_make = comment.is_worth_making(report)
    thread = host.thread()
    body = comment.report_body(report, job=host.job, limit=host.comment_bytes, page=host.page, web=host.web)
    outcome = comment.put(thread, body, may_make=may_make)
    return f"comment {outcome}" + (": nothing changed" if outcome == "not needed" else f" on {thread.name}")

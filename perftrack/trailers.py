"""The trailer of a commit message by which a commit accepts what it makes slower."""

from dataclasses import dataclass

from perftrack.errors import UsageError

ACCEPT = "Perftrack-Accept"

LOG_FORMAT = f"%H%n%an%n%(trailers:key={ACCEPT},valueonly,unfold)"
"""Of `git log -z`, for `read`."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """One trailer `Perftrack-Accept: CASE-GLOB REASON`."""

    pattern: str
    """Of case keys."""
    reason: str
    author: str
    """Of the commit."""
    sha: str
    """The commit that says so."""


def read(log: str, head: str) -> list[Accepted]:
    """Every trailer of what git printed by `LOG_FORMAT`, in its order.

    UsageError where one of the commit `head` has no reason; one of another commit, which may be anybody's, accepts
    nothing.
    """
    found: list[Accepted] = []
    for record in filter(None, log.split("\0")):
        sha, author, *said = record.split("\n")
        for value in filter(None, map(str.strip, said)):
            pattern, _, reason = value.partition(" ")
            if reason.strip():
                found.append(Accepted(pattern, reason.strip(), author.strip(), sha))
            elif sha == head:
                raise UsageError(
                    f"{sha[:7]} says `{ACCEPT}: {value}` without a reason: write `{ACCEPT}: CASE-GLOB REASON`"
                )
    return found

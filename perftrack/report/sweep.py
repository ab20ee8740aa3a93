"""The answer of `perftrack sweep`: its value and its text."""

from collections import Counter
from typing import Literal

import msgspec

from perftrack.foreign import plain
from perftrack.report import words
from perftrack.report.layout import Line, Look, entry, line, table
from perftrack.report.text import draw

SCHEMA = "perftrack.sweep/1"

Outcome = Literal["measured", "partial", "submitted", "stored", "impossible", "stopped", "left"]
"""`partial`: the machine lost some of it, which is tried again next time. `submitted`: the cluster measures it.
`stored`: nothing was left to measure. `impossible`: this commit has nothing that can run, for good. `stopped`: broken
off in the middle, goes on next time. `left`: not begun, is next time's."""


class Swept(msgspec.Struct, frozen=True, kw_only=True):
    """One commit on one device class of a sweep."""

    commit: str
    sha: str
    subject: str
    device: str
    """As it was asked for; empty: what there is."""
    outcome: Outcome
    jobs: int = 0
    """That its run has stored."""
    run: str = ""
    why: str = ""
    lacking: tuple[str, ...] = ()
    """What of it has no time: case, variant, status and reason."""


class SweepReport(msgspec.Struct, frozen=True, kw_only=True):
    """What became of each chosen commit, as JSON: `perftrack.sweep/1`. Fields are added, never renamed."""

    schema: Literal["perftrack.sweep/1"] = SCHEMA
    name: str
    of: int
    """Commits in the range."""
    since: str
    """What the range begins after, in words."""
    commits: tuple[Swept, ...]
    """In the order of measuring."""
    problems: tuple[str, ...] = ()
    """What of pool or database failed, each once."""

    @property
    def exit_code(self) -> int:
        """0: every chosen commit is measured as far as it can be; 4: something is left for the next time.

        3: so it is, as pool or database failed.
        """
        if self.problems:
            return 3
        return 4 if any(one.outcome in {"partial", "stopped", "left"} for one in self.commits) else 0


COLUMNS = ("commit", "device", "outcome", "jobs", "run", "why")

_MOST_LACKING = 20


def text(report: SweepReport, look: Look | None = None) -> str:
    """How much first, then each commit, then what has no time and why."""
    look = look or Look()
    counts = Counter(one.outcome for one in report.commits)
    told = ", ".join(f"{count} {name}" for name, count in counts.items()) or "nothing to measure"
    lines: list[Line] = [
        line(f"SWEPT  {report.name}: {told}; {words.counted(report.of, 'commit')} since {report.since}", "bold"),
    ]
    if report.commits:
        lines += [line(), *table(COLUMNS, [_cells(one) for one in report.commits], look.width, align="lllrll")]
    for problem in report.problems:
        lines += entry("problem", plain(problem), look.width)
    lacking = [f"{one.commit} {plain(text)}" for one in report.commits for text in one.lacking]
    if lacking:
        lines.append(line())
    for text_of_one in lacking[:_MOST_LACKING]:
        lines += entry("no time", text_of_one, look.width)
    if len(lacking) > _MOST_LACKING:
        lines += entry("no time", f"and {len(lacking) - _MOST_LACKING} more: --format json has all", look.width)
    return draw(lines, look)


def _cells(one: Swept) -> list[str]:
    return [
        plain(f"{one.commit} {one.subject}"),
        plain(one.device) or "any",
        one.outcome,
        str(one.jobs or words.NOT_KNOWN),
        one.run[:8] or words.NOT_KNOWN,
        plain(one.why),
    ]

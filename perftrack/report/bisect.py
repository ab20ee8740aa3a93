"""The answer of `perftrack bisect`: its value and its text."""

from typing import Literal

import msgspec

from perftrack.foreign import plain
from perftrack.judge import life
from perftrack.judge.life import Kind
from perftrack.judge.value import Interval, spell
from perftrack.report import words
from perftrack.report.layout import Line, Look, entry, line, table
from perftrack.report.text import draw

SCHEMA = "perftrack.bisect/1"


class Tested(msgspec.Struct, frozen=True, kw_only=True):
    """One commit that was measured, or could not be."""

    commit: str
    sha: str
    subject: str
    answer: Literal["good", "bad", "skipped"]
    change: Interval | None = None
    """Its time, or error, ÷ that of the good end, measured side by side; 95 % interval over its rounds."""
    rounds: int = 0
    message: str = ""
    """Why it was skipped."""
    run: str = ""


class BisectReport(msgspec.Struct, frozen=True, kw_only=True):
    """Which commit made a step, as JSON: `perftrack.bisect/1`. Fields are added, never renamed."""

    schema: Literal["perftrack.bisect/1"] = SCHEMA
    suite: str
    case: str
    variant: str
    device_class: str
    of: Literal["time", "error"] = "time"
    good: str
    bad: str
    commits: int
    """After the good end, the bad end included."""
    step: Interval
    """Time, or error, at the bad end ÷ that at the good end."""
    rounds: int
    """That a commit between the ends was measured in."""
    found: tuple[Tested, ...]
    """The commit; or, where some could not be measured, all that may have made the step, the last one measured."""
    before: Tested | None = None
    """The last commit without the step, where it is not the good end."""
    change: float
    """Time, or error, at the first commit with the step ÷ that at the last one without."""
    tested: tuple[Tested, ...]
    """Every commit that was looked at, the bad end included, in the order of the history."""


COLUMNS = ("commit", "change", "95 % interval", "rounds", "answer", "why")


def text(report: BisectReport, look: Look | None = None) -> str:
    """The commit first, then every commit that was looked at."""
    look = look or Look()
    last = report.found[-1]
    several = len(report.found) > 1
    head = f"one of {len(report.found)} commits up to {last.commit}" if several else last.commit
    lines: list[Line] = [
        line(
            f"{'RANGE' if several else 'FOUND'}  {head}: {_spell(report, report.change)}  {plain(last.subject)}", "bold"
        ),
        *entry("case", f"{report.suite}: {report.case} {report.variant} on {report.device_class}", look.width),
        *entry("step", _step(report), look.width),
        line(),
        *table(COLUMNS, [_cells(report, one) for one in report.tested], look.width, align="llrrll"),
    ]
    if several:
        names = ", ".join(one.commit for one in report.found)
        lines += [line(), *entry("range", f"{names}: all but the last could not be measured", look.width)]
    return draw(lines, look)


def _spell(report: BisectReport, ratio: float) -> str:
    return life.size(Kind.LESS_ACCURATE if report.of == "error" else Kind.SLOWER, ratio)


def _step(report: BisectReport) -> str:
    commits = words.counted(report.commits, "commit")
    if report.of == "error":
        return f"{_spell(report, report.step.point)} at {report.bad} than at {report.good}, {commits}"
    low, high = (spell(bound) for bound in (report.step.low, report.step.high))
    return (
        f"{spell(report.step.point)} at {report.bad} than at {report.good} (99 % interval {low} to {high}), "
        f"{commits}, {words.counted(report.rounds, 'round')} each"
    )


def _cells(report: BisectReport, one: Tested) -> list[str]:
    bounds = one.change if report.of == "time" else None
    return [
        plain(f"{one.commit} {one.subject}"),
        _spell(report, one.change.point) if one.change else words.NOT_KNOWN,
        f"{spell(bounds.low)} to {spell(bounds.high)}" if bounds else words.NOT_KNOWN,
        str(one.rounds or words.NOT_KNOWN),
        one.answer,
        plain(one.message),
    ]

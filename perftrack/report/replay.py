"""The answer of `perftrack judge --replay`: its value and its text."""

from collections import Counter
from collections.abc import Sequence
from typing import Literal

import msgspec

from perftrack import stats
from perftrack.foreign import plain
from perftrack.judge.life import State, day
from perftrack.report import words
from perftrack.report.layout import Line, Look, entry, fits, line, table, wrap
from perftrack.report.text import draw

SCHEMA = "perftrack.replay/1"


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """A change of level of one series, and after which commit it was told first."""

    repo: str
    suite: str
    case: str
    device_class: str
    variant: str
    direction: int
    """+1 slower, -1 faster."""
    change: float
    """Time since ÷ time before, of what was known when it was told."""
    commit: str
    sha: str
    subject: str
    committed_us: int
    seen: str
    seen_sha: str
    delay: int
    """Measured or not, the commits of the series from the change to its telling; 0 is the very commit."""
    regression: int | None = None
    """Remembered at that commit, or at most two commits of the series from it, for the same case; None: unknown."""
    state: State | None = None
    looked_at: bool = False
    """Somebody has marked a case of that regression."""


class Untold(msgspec.Struct, frozen=True, kw_only=True):
    """A case of a remembered slowdown, neither invalid nor infra, that these rules did not tell."""

    regression: int
    state: State
    suite: str
    case: str
    device_class: str
    variant: str
    commit: str


class Suspected(msgspec.Struct, frozen=True, kw_only=True):
    """A head that its own history would have had measured again, beside an older commit: no alarm."""

    repo: str
    suite: str
    case: str
    device_class: str
    variant: str
    reading: str
    """`higher`, `lower` or `creeping`."""
    change: float
    """Time ÷ that of its level, or of the best-known one."""
    commit: str
    sha: str


class ReplayReport(msgspec.Struct, frozen=True, kw_only=True):
    """What the rules would have told, as JSON: `perftrack.replay/1`. Fields are added, never renamed."""

    schema: Literal["perftrack.replay/1"] = SCHEMA
    series: int
    commits: int
    """Different ones, of all series."""
    values: int
    """Times of one series at one commit; each was the newest once."""
    first: str
    last: str
    told: tuple[Told, ...]
    """In the order of the commits that they were told at."""
    false_alarms: int
    """Slowdowns among them that somebody marked invalid."""
    not_looked_at: int
    """Slowdowns among them of which nobody has said anything yet: any of them may be false, too."""
    min_effect: float | None = None
    """What was smaller when the rules saw it is not told; None: everything that they see is."""
    untold: tuple[Untold, ...] = ()
    suspected: tuple[Suspected, ...] = ()
    """In the order of their commits, by repository and device class."""


def text(report: ReplayReport, look: Look | None = None) -> str:
    """What was told, the newest last, then the counts, the delays and the false alarms."""
    look = look or Look()
    several = len({one.repo for one in report.told}) > 1
    lines: list[Line] = [
        line(
            f"REPLAY  {report.series} series, {words.counted(report.commits, 'commit')} {report.first}..{report.last}",
            "bold",
        )
    ]
    if report.told:
        cells = [_cells(one, several=several) for one in report.told]
        if fits(COLUMNS, cells, look.width):
            lines += [line(), *table(COLUMNS, cells, look.width, align="llrrll"), line()]
        else:
            below = [_below(one, several=several) for one in report.told]
            lines += [line(), *table(BELOW, below, look.width, align="lllrrl"), line()]
    lines += entry("told", _counts(report.told), look.width)
    if report.told:
        delays = [one.delay for one in report.told]
        middle = words.counted(round(stats.median(delays)), "commit")
        said = f"{middle} (median), {max(delays)} at most, {delays.count(0)} at once"
        lines += entry("delay", said, look.width)
    if report.min_effect is not None:
        lines += entry("limit", f"changes of {words.percent(report.min_effect)} and more are told", look.width)
    lines += entry("false", _false(report), look.width)
    lines += entry("suspect", _suspected(report), look.width)
    for one in report.untold:
        where = f"{one.suite}: {one.case} {one.variant} on {one.device_class}"
        lines += entry(
            "untold", f"regression {one.regression} ({one.state.value}) since {one.commit}, {where}", look.width
        )
    return draw([*lines, *(line(one, "dim") for one in wrap(EXPLAINED, look.width))], look)


COLUMNS = ("commit", "told at", "delay", "change", "case", "remembered")
BELOW = ("case", "commit", "told at", "delay", "change", "remembered")
"""Of a table that is too wide: the case above the rest, no subject."""

EXPLAINED = (
    "The rules of the history alone, each commit judged by what lay before it; nothing of this was stored. Delay = "
    "commits of the series from the change to its telling. False = told, and marked invalid. Suspect = heads that a "
    "submission would have measured again side by side, which alone makes them red."
)


def _cells(one: Told, *, several: bool) -> list[str]:
    repo = f"{one.repo} " if several else ""
    known = f"{one.regression} {one.state.value}" if one.state else ""
    return [
        plain(f"{repo}{one.commit} {day(one.committed_us)} {one.subject}"),
        one.seen,
        str(one.delay),
        words.effect(one.change),
        f"{one.suite}: {one.case} {one.variant} on {one.device_class}",
        known or words.NOT_KNOWN,
    ]


def _below(one: Told, *, several: bool) -> list[str]:
    _, seen, delay, change, case, known = _cells(one, several=several)
    repo = f"{one.repo} " if several else ""
    return [case, f"{repo}{one.commit} {day(one.committed_us)}", seen, delay, change, known]


def _counts(told: Sequence[Told]) -> str:
    slower = sum(one.direction > 0 for one in told)
    states = Counter(one.state for one in told if one.state)
    known = ", ".join(f"{states[state]} {state.value}" for state in State if states[state])
    return f"{slower} slower, {len(told) - slower} faster" + (f"; of regressions {known}" if known else "")


def _false(report: ReplayReport) -> str:
    """The share that is known to be false, and how much of it could be, so that silence does not read as a score."""
    least, most = (
        1000 * count / report.values if report.values else 0.0
        for count in (report.false_alarms, report.false_alarms + report.not_looked_at)
    )
    said = f"{report.false_alarms} marked invalid: {least:.2f} in 1000 values of {report.values}"
    slower = sum(one.direction > 0 for one in report.told)
    told = words.counted(slower, "slowdown")
    if not report.not_looked_at:
        return (
            f"{said}; somebody has looked at every slowdown told ({slower})" if slower else f"{said}; no slowdown told"
        )
    return f"{said}, or up to {most:.2f}: of {told} told nobody has looked at {report.not_looked_at} yet"


def _suspected(report: ReplayReport) -> str:
    readings = Counter(one.reading for one in report.suspected)
    share = 1000 * len(report.suspected) / report.values if report.values else 0.0
    said = ", ".join(f"{readings[name]} {name}" for name in ("higher", "lower", "creeping") if readings[name])
    return f"{said}: {share:.2f} in 1000 values" if said else "none"

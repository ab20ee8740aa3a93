"""What `compare`, `history`, `devices` and `regressions` print: tables of simple values."""

from collections import Counter
from collections.abc import Sequence

from perftrack import chart
from perftrack.foreign import plain
from perftrack.judge.life import State, day
from perftrack.report import words
from perftrack.report.layout import Line, Look, fits, line, table, wrap
from perftrack.report.segments import began, borders, segments
from perftrack.report.text import draw
from perftrack.report.value import (
    CompareRow,
    Comparison,
    DeviceRow,
    History,
    HistoryPoint,
    RegressionRow,
    Segment,
)

COMPARED = ("case", "variant", "µs", "baseline µs", "speedup", "change", "verdict")


def comparison(sides: Comparison, look: Look | None = None) -> str:
    """Two stored revisions, a table for each device class."""
    look = look or Look()
    lines: list[Line] = [line(f"{sides.left} -> {sides.right}", "bold")]
    spare = (COMPARED.index("baseline µs"),)
    for name in dict.fromkeys(row.device_class for row in sides.rows):
        cells = compared([row for row in sides.rows if row.device_class == name])
        lines += [line(), line(plain(name), "bold"), *table(COMPARED, cells, look.width, align="llrrrrl", spare=spare)]
    note = f"{len(sides.rows)} of {sides.total} shown. {plain(sides.note)} {words.FOOTER}"
    return draw([*lines, line(), *(line(one, "dim") for one in wrap(note, look.width))], look)


def compared(rows: Sequence[CompareRow]) -> list[list[str]]:
    """The cells of the lines of a comparison."""
    return [
        [
            f"{row.suite}: {row.case}",
            row.variant,
            words.moved(words.microseconds(row.left_s), words.microseconds(row.right_s)),
            words.moved(words.microseconds(row.left_baseline_s), words.microseconds(row.right_baseline_s)),
            words.moved(words.times(row.left_speedup), words.times(row.right_speedup)),
            words.effect(row.change) if row.change is not None else words.NOT_KNOWN,
            ", ".join(filter(None, (row.verdict, row.accuracy.value.replace("-", " ")))) or words.NOT_KNOWN,
        ]
        for row in rows
    ]


def history(series: History, look: Look | None = None) -> str:
    """A sparkline of the speedup (of the time, where there is no baseline), its segments, the revisions, newest first.

    Below the sparkline are marked the revisions where another environment or method starts, or the level changed.
    """
    look = look or Look()
    measured = {point.revision for point in series.points if point.time_s is not None}
    every = {point.revision for point in series.points}
    what, values = drawn(series)
    last = values[-max(1, look.width - 2) :]
    cut = len(values) - len(last)
    marks = chart.marks(
        len(last),
        [index - cut for index in borders(series.points)],
        [index - cut for index, _ in series.changes],
        unicode=look.unicode,
    )
    shown = f", the last {len(last)} drawn" if cut else ""
    title = f"{series.suite}: {series.case} {series.variant} on {series.device_class}"
    lines: list[Line] = [
        *(line(one, "bold") for one in wrap(plain(title), look.width)),
        line(chart.sparkline(last, unicode=look.unicode), "cyan"),
        *([line(marks, "yellow")] if marks else []),
        line(f"{what}, {len(measured)} of {words.counted(len(every), 'revision')} measured{shown}", "dim"),
        line(),
    ]
    parts = segments(series)
    if len(parts) > 1:
        lines += [*table(SEGMENTS, [segment(one) for one in parts], look.width, align="lrrrrl"), line()]
    cells = points(series.points)
    if fits(POINTS, cells, look.width):
        return draw([*lines, *table(POINTS, cells, look.width, align="lrrrrl")], look)
    # one line each is worth more than the baseline's time, which the speedup implies
    return draw([*lines, *table(*_without_baseline(cells), look.width, align="lrrrl")], look)


def _without_baseline(cells: Sequence[Sequence[str]]) -> tuple[list[str], list[list[str]]]:
    at = POINTS.index("baseline µs")
    header, *rows = [[*one[:at], *one[at + 1 :]] for one in (POINTS, *cells)]
    return header, rows


def drawn(series: History) -> tuple[str, list[float | None]]:
    """What a chart of the series shows, `speedup` or `time`, and the numbers."""
    speedups = [point.speedup for point in series.points]
    return ("speedup", speedups) if any(speedups) else ("time", [point.time_s for point in series.points])


SEGMENTS = ("segment", "measured", "µs", "speedup", "step", "began")


def segment(one: Segment) -> list[str]:
    """The cells of a line of segments."""
    return [
        one.first if one.first == one.last else f"{one.first}..{one.last}",
        f"{one.measured} of {one.revisions}",
        words.microseconds(one.time_s),
        words.times(one.speedup),
        words.NOT_KNOWN if one.step is None else words.effect(one.step),
        plain(f"{one.began}: {one.subject}") if one.began else "",
    ]


POINTS = ("revision", "µs", "baseline µs", "speedup", "change", "note")


def devices(rows: Sequence[DeviceRow], look: Look | None = None) -> str:
    """One line a card."""
    look = look or Look()
    header = ["class", "node", "uuid", "driver", "cc", "SMs", "GB", "runs", "state"]
    cells = [
        [
            row.device.device_class,
            row.device.node,
            row.device.uuid[:12],
            str(row.environment.get("driver", words.NOT_KNOWN)),
            row.device.compute_capability or words.NOT_KNOWN,
            str(row.device.multiprocessors or words.NOT_KNOWN),
            f"{row.device.memory_bytes / 1e9:.0f}",
            words.NOT_KNOWN if row.runs is None else str(row.runs),
            plain(row.problem) or "ready",
        ]
        for row in rows
    ]
    if not cells:
        return "no devices"
    return draw(table(header, cells, look.width, align="llllrrrrl"), look)


def regressions(rows: Sequence[RegressionRow], look: Look | None = None) -> str:
    """A block a regression: what and since when, then its cases; last how many there are of each state."""
    look = look or Look()
    lines: list[Line] = []
    several = len({row.repo for row in rows}) > 1
    for row in rows:
        repo = f"{row.repo} " if several else ""
        found = plain(f"since {repo}{row.found} {day(row.found_us)} {row.found_subject}")
        what = f"{row.state.value} {row.kind.value}"
        first, *more = wrap(
            f"{what}  {words.counted(len(row.cases), 'case')} on {row.device_class}, {found}", look.width, 6
        )
        lines.append(((f"{row.id:>4}  ", "dim"), (what, "bold"), (first[6 + len(what) :], "")))
        lines += [line(text) for text in more]
        for one in row.cases:
            standing = "" if one.said == row.state.value else one.said
            said = plain(", ".join(filter(None, (f"{one.case} {one.variant}", one.size, one.why, standing))))
            lines += [line(text) for text in wrap(said, look.width, 6)]
    counts = Counter(row.state for row in rows)
    total = ", ".join(f"{counts[state]} {state.value}" for state in State if counts[state])
    return draw([*lines, line(total or "no regression", "dim")], look)


def points(points: Sequence[HistoryPoint]) -> list[list[str]]:
    """Newest first; a change is told from the measured revision before it, in the same segment only."""
    cells: list[list[str]] = []
    before: HistoryPoint | None = None
    for point in points:
        change, note = words.NOT_KNOWN, ""
        if point.time_s is None:
            note = point.status.value if point.status else "not measured"
        elif point.aside:
            note = "other branch"
        elif before is not None and before.segment != point.segment:
            note = began(before, point)
        elif before is not None and before.time_s:
            change = words.effect(point.time_s / before.time_s)
        before = point if point.time_s is not None and not point.aside else before
        cells.append(
            [
                plain(f"{point.revision} {day(point.committed_us)} {point.subject}"),
                words.microseconds(point.time_s),
                words.microseconds(point.baseline_s),
                words.times(point.speedup),
                change,
                note,
            ]
        )
    return cells[::-1]

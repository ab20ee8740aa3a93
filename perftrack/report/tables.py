"""What `compare`, `history`, `devices` and `regressions` print: tables of simple values."""

from collections import Counter
from collections.abc import Sequence

from perftrack.judge.life import State, day
from perftrack.report import words
from perftrack.report.layout import Line, Look, line, plain, sparkline, table, wrap
from perftrack.report.text import draw
from perftrack.report.value import Comparison, DeviceRow, History, HistoryPoint, RegressionRow


def comparison(compared: Comparison, look: Look | None = None) -> str:
    """Two stored revisions, a table for each device class."""
    look = look or Look()
    lines: list[Line] = [line(f"{compared.left} -> {compared.right}", "bold")]
    header = ["case", "variant", "µs", "baseline µs", "speedup", "change", "verdict"]
    for name in dict.fromkeys(row.device_class for row in compared.rows):
        cells = [
            [
                f"{row.suite}: {row.case}",
                row.variant,
                words.moved(words.microseconds(row.left_s), words.microseconds(row.right_s)),
                words.moved(words.microseconds(row.left_baseline_s), words.microseconds(row.right_baseline_s)),
                words.moved(words.times(row.left_speedup), words.times(row.right_speedup)),
                words.effect(row.change) if row.change is not None else words.NOT_KNOWN,
                ", ".join(filter(None, (row.verdict, row.accuracy.value.replace("-", " ")))) or words.NOT_KNOWN,
            ]
            for row in compared.rows
            if row.device_class == name
        ]
        lines += [line(), line(name, "bold"), *table(header, cells, look.width, align="llrrrrl")]
    note = f"{len(compared.rows)} of {compared.total} shown. {plain(compared.note)} {words.FOOTER}"
    return draw([*lines, line(), *(line(one, "dim") for one in wrap(note, look.width))], look)


def history(series: History, look: Look | None = None) -> str:
    """A sparkline of the speedup (of the time, where there is no baseline), and the revisions, newest first."""
    look = look or Look()
    measured = [point for point in series.points if point.time_s is not None]
    last = series.points[-max(1, look.width - 2) :]
    drawn = [point.speedup for point in last]
    what = "speedup"
    if not any(drawn):
        drawn, what = [point.time_s for point in last], "time"
    shown = "" if len(last) == len(series.points) else f", the last {len(last)} drawn"
    lines: list[Line] = [
        line(f"{series.suite}: {series.case} {series.variant} on {series.device_class}", "bold"),
        line(sparkline(drawn, unicode=look.unicode), "cyan"),
        line(f"{what}, {len(measured)} of {len(series.points)} revisions measured{shown}", "dim"),
        line(),
    ]
    header = ["revision", "µs", "baseline µs", "speedup", "change", "note"]
    return draw([*lines, *table(header, _points(series.points), look.width, align="lrrrrl")], look)


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
        what = f"  {len(row.cases)} {'case' if len(row.cases) == 1 else 'cases'} on {row.device_class}, {found}"
        lines.append(((f"{row.id:>4}  ", "dim"), (f"{row.state.value} {row.kind.value}", "bold"), (what, "")))
        for one in row.cases:
            standing = "" if one.said == row.state.value else one.said
            said = plain(", ".join(filter(None, (f"{one.case} {one.variant}", one.size, one.why, standing))))
            lines += [line(text) for text in wrap(said, look.width, 6)]
    counts = Counter(row.state for row in rows)
    total = ", ".join(f"{counts[state]} {state.value}" for state in State if counts[state])
    return draw([*lines, line(total or "no regression", "dim")], look)


def _points(points: Sequence[HistoryPoint]) -> list[list[str]]:
    """Newest first; a change is told from the measured revision before it, in the same segment only."""
    cells: list[list[str]] = []
    before: HistoryPoint | None = None
    for point in points:
        change, note = words.NOT_KNOWN, ""
        if point.time_s is None:
            note = point.status.value if point.status else "not measured"
        elif before is not None and before.segment != point.segment:
            note = "other environment or method"
        elif before is not None and before.time_s:
            change = words.effect(point.time_s / before.time_s)
        before = point if point.time_s is not None else before
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

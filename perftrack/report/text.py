"""The report for people: the verdict, at most ten rows worst first, a count of the rest, a line a device class.

Without a base there is nothing to be worst, so all rows follow in a table of speedups.
"""

import io
import os
import shutil
import sys
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.text import Text

from perftrack.foreign import plain, spelled
from perftrack.judge.life import State
from perftrack.model import Verdict
from perftrack.report import words
from perftrack.report.layout import Line, Look, Style, cell_width, entry, in_ascii, line, table, wrap
from perftrack.report.value import AccuracyRow, DeviceLine, Report, Row

_LOG_WIDTH = 160
"""Of a file or a CI log, where COLUMNS says nothing."""

_STYLES: dict[str, Style] = {
    "GREEN": "green",
    "RED": "red",
    "INCOMPLETE": "yellow",
    Verdict.SLOWER: "red",
    Verdict.FAILED: "red",
    Verdict.WRONG: "red",
    Verdict.FASTER: "green",
}


def look(*, terminal: bool, environ: Mapping[str, str] = os.environ, encoding: str | None = None) -> Look:
    """How to write to standard output, as `terminal` or not, by COLUMNS, NO_COLOR, TERM and the encoding."""
    columns = environ.get("COLUMNS", "")
    fallback = shutil.get_terminal_size((80, 24)).columns if terminal else _LOG_WIDTH
    width = int(columns) if columns.isdecimal() and int(columns) > 0 else fallback
    color = terminal and not environ.get("NO_COLOR") and environ.get("TERM", "dumb") != "dumb"
    return Look(width, color, _can_encode(encoding or sys.stdout.encoding or "ascii"))


def render(report: Report, look: Look | None = None, *, all_rows: bool = False) -> str:
    """The report as lines of text, without a last line end; `all_rows` adds the table of every other row."""
    look = look or Look()
    shown = words.attention(report)[: words.ROWS]
    rest = [row for row in report.rows if row not in shown]
    lines = _head(report, look.width)
    for row in shown:
        block = _block(row, look.width) if isinstance(row, Row) else _accuracy_block(row, look.width)
        lines += [line(), *block]
    if report.base is None or all_rows:
        lines += _tables(report, rest, look.width)
    elif rest and (shown or report.verdict != "GREEN"):
        left = words.counts(report, without=shown)
        lines += [line(), *entry("rest" if shown else "all", left, look.width)]
    return draw([*lines, *_foot(report, look.width)], look)


def draw(lines: Sequence[Line], look: Look) -> str:
    """Styled lines as one string: coloured or plain, in Unicode or ASCII, never wrapped again."""
    if look.color:
        # with TERM=dumb rich takes a given width only together with a height
        console = Console(file=io.StringIO(), force_terminal=True, color_system="standard", width=look.width, height=24)
        with console.capture() as capture:
            for one in lines:
                pieces = ((spelled(piece), style) for piece, style in one)
                console.print(Text.assemble(*pieces), soft_wrap=True, highlight=False)
        text = capture.get().rstrip("\n")
    else:
        text = "\n".join("".join(spelled(piece) for piece, _ in one).rstrip() for one in lines)
    return text if look.unicode else in_ascii(text)


def _can_encode(encoding: str) -> bool:
    try:
        "µ▁█·".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _head(report: Report, width: int) -> list[Line]:
    style = _STYLES[report.verdict]
    said, sides = plain(words.headline(report)), words.against(report)
    first, *more = wrap(said, width - len(report.verdict) - 2)
    room = width - len(report.verdict) - 2 - len(first) - len(sides)
    lines: list[Line] = [((report.verdict, style), ("  " + first, "bold"))]
    if room >= 2 and not more:
        lines = [(*lines[0], (" " * room + sides, "dim"))]
    lines += [line(" " * (len(report.verdict) + 2) + one, "bold") for one in more]
    if report.verdict == "RED" and report.reasons:
        lines += entry("also", "incomplete: " + "; ".join(report.reasons), width)
    lines += entry("head", f"{report.head}  {report.head_subject}", width)
    lines += entry("base", f"{report.base}  {report.base_note}" if report.base else f"none: {report.base_note}", width)
    return lines


def _block(row: Row, width: int) -> list[Line]:
    word = row.verdict.value.upper() if row.red else row.verdict.value
    lines = _title(word, _STYLES.get(row.verdict, "yellow"), row, width)
    cause = f"{row.cause.value}: " if row.cause.value else ""
    said = [words.evidence(row), cause + words.numbers(row), row.why, row.message if row.change else ""]
    known = [one.text for one in row.regressions]
    if row.cause in words.UNFUSED_MOVED:
        said = [row.message, *said[:-1]]
    return lines + _said([*said, *known], row.next, width)


def _accuracy_block(row: AccuracyRow, width: int) -> list[Line]:
    lines = _title("accuracy", "yellow", row, width)
    said = [words.accuracy(row), words.baseline_errors(row), *(one.text for one in row.regressions)]
    return [*lines, *_said(said, row.next, width)]


def _title(word: str, style: Style, row: Row | AccuracyRow, width: int) -> list[Line]:
    """The verdict and what it is about; where that is too wide, the suite and the device class on a second line."""
    name, where = plain(f"{row.case} {row.variant}"), plain(f"{row.suite} on {row.device_class}")
    first: Line = ((f"{word:<9} ", style), (name, "bold"))
    if 12 + cell_width(name) + cell_width(where) <= width:
        return [(*first, (f"  {where}", "dim"))]
    return [first, line(" " * 10 + where, "dim")]


def _said(parts: Sequence[str], command: str, width: int) -> list[Line]:
    """What stands below the first line of a block."""
    lines = [line(one) for part in parts if part for one in wrap(plain(part), width, 10)]
    return [*lines, ((" " * 10 + "next  ", "dim"), (command, "cyan"))] if command else lines


def _tables(report: Report, rows: Sequence[Row], width: int) -> list[Line]:
    """All these rows, one table for each device class, in order of suite and case."""
    lines: list[Line] = []
    ordered = sorted(rows, key=lambda row: (row.suite, row.case, row.variant))
    for name in dict.fromkeys(row.device_class for row in ordered):
        mine = [row for row in ordered if row.device_class == name]
        made = _changes(mine, width) if report.base else _speedups(mine, width)
        lines += [line(), line(name, "bold"), *made]
    for device in report.devices if not report.base else ():
        lines += _suites(device, width)
    return lines


def _speedups(rows: Sequence[Row], width: int) -> list[Line]:
    notes = [words.gain_note(row) for row in rows]
    header = ["case", "variant", "baseline µs", "µs", "speedup", "vector", "fusion", "GB/s", "copy", "model"]
    cells = [
        [
            f"{row.suite}: {row.case}",
            row.variant,
            words.microseconds(row.baseline_head_s),
            words.microseconds(row.head_s),
            words.times(row.speedup_head),
            words.times(row.vectorisation),
            words.times(row.fusion_gain),
            words.gigabytes(row.bandwidth_bytes_per_s),
            words.share(row.utilization) + ("*" if row.cached else ""),
            words.share(row.fusion_efficiency),
            *([note] if any(notes) else []),
        ]
        for row, note in zip(rows, notes, strict=True)
    ]
    header += ["note"] if any(notes) else []
    spare = (header.index("GB/s"), header.index("baseline µs"))
    return table(header, cells, width, align="llrrrrrrrrl"[: len(header)], spare=spare)


def _suites(device: DeviceLine, width: int) -> list[Line]:
    """What fusion brings in each suite that can tell."""
    cells = [
        [
            one.suite,
            f"{one.cases} of {one.measured}",
            words.times(one.vectorisation),
            words.times(one.fusion_gain),
            words.share(one.fusion_efficiency),
            str(one.no_gain or words.NOT_KNOWN),
        ]
        for one in device.suites
        if one.cases
    ]
    if not cells:
        return []
    header = ["suite", "cases", "vector", "fusion", "model", "no gain"]
    title = wrap(f"{device.device_class}, {words.SUITES}", width)
    return [line(), *(line(one, "bold") for one in title), *table(header, cells, width, align="lrrrrr")]


def _changes(rows: Sequence[Row], width: int) -> list[Line]:
    header = ["case", "variant", "baseline µs", "µs", "speedup", "vector", "fusion", "change", "visible", "verdict"]
    cells = [
        [
            f"{row.suite}: {row.case}",
            row.variant,
            words.microseconds(row.baseline_head_s),
            words.microseconds(row.head_s),
            words.times(row.speedup_head),
            words.times(row.vectorisation),
            words.times(row.fusion_gain),
            words.effect(row.change.point) if row.change else words.NOT_KNOWN,
            words.NOT_KNOWN if row.detectable is None else words.percent(row.detectable),
            row.cause.value or row.verdict.value,
        ]
        for row in rows
    ]
    spare = tuple(header.index(name) for name in ("baseline µs", "vector", "fusion"))
    return table(header, cells, width, align="llrrrrrrrl", spare=spare)


def _foot(report: Report, width: int) -> list[Line]:
    lines = [line(), *entry("run", report.run[:8], width)]
    for device in report.devices:
        lines += [line(one) for one in wrap(f"{device.device_class}: {words.device(device)}", width)]
        if used := words.cards(device):
            lines += [line(one) for one in wrap(f"{device.device_class}, {used}", width)]
    lines += [one for said in words.more_accurate(report) for one in entry("better", f"more accurate: {said}", width)]
    if any(one.state is State.OPEN for row in report.rows for one in row.regressions):
        lines += entry("accept", "perftrack ack ID --reason TEXT, where a regression is meant to be", width)
    lines += [one for said in report.fixed for one in entry("fixed", said, width)]
    for name, sentences in (("skipped", report.skipped), ("problem", report.problems), ("method", report.methods)):
        lines += [one for sentence in sentences for one in entry(name, sentence, width)]
    footer = words.FOOTER if report.base else words.FOOTER_WITHOUT_BASE
    return lines + [line(one, "dim") for one in wrap(footer, width)]

"""The report as GitHub Markdown, for a job summary or a comment."""

import re
from collections.abc import Sequence

from perftrack.report import words
from perftrack.report.layout import plain
from perftrack.report.value import AccuracyRow, Report, Row

ROWS = 10

MAX_LETTERS = 60_000
"""A comment may have 65,536; what does not fit is left out from the end, where the least severe rows are."""

_SPECIAL = re.compile(r"[\\`*_{}\[\]()#+!|~$@:-]")


def escape(text: str) -> str:
    """Foreign text for a table's cell: no markup, no HTML, no line ends."""
    safe = plain(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SPECIAL.sub(lambda match: "\\" + match[0], safe)


def render(report: Report) -> str:
    """Verdict, at most ten rows worst first, the commands that measure red rows again, a line a device class."""
    shown = words.attention(report)[:ROWS]
    rest = [row for row in report.rows if row not in shown]
    parts = [f"### {report.verdict}: {escape(words.headline(report))}", _sides(report)]
    if shown:
        parts.append(_changes(shown))
        parts.append(_commands(shown))
    tail = [_foot(report)]
    if report.base is None:
        suites = _suites(report)
        room = MAX_LETTERS - sum(len(part) + 2 for part in (*parts, suites, *tail))
        parts += [_speedups(rest, room), suites] if rest else [suites]
    elif rest:
        parts.append(f"Not shown: {words.counts(report, without=shown)}.")
    return "\n\n".join(part for part in (*parts, *tail) if part)


def _name(text: str) -> str:
    """A name in code type, in which nobody is mentioned and no issue linked."""
    return f"<code>{escape(text)}</code>"


def _sides(report: Report) -> str:
    head = f"head {_name(report.head)} {escape(report.head_subject)}"
    base = (
        f"base {_name(report.base)} {escape(report.base_note)}"
        if report.base
        else f"no base: {escape(report.base_note)}"
    )
    also = (
        f"\\\nalso incomplete: {escape('; '.join(report.reasons))}"
        if report.verdict == "RED" and report.reasons
        else ""
    )
    return f"{head}\\\n{base}{also}"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], *, left: int) -> list[str]:
    marks = [":--" if index < left else "--:" for index in range(len(header))]
    return [f"| {' | '.join(cells)} |" for cells in (header, marks, *rows)]


def _changes(rows: Sequence[Row | AccuracyRow]) -> str:
    header = ("verdict", "case", "device", "what was seen", "time µs", "baseline µs", "speedup")
    return "\n".join(_table(header, [_cells(row) for row in rows], left=4))


def _cells(row: Row | AccuracyRow) -> tuple[str, ...]:
    case = f"{_name(f'{row.suite}: {row.case}')} {_name(row.variant)}"
    if isinstance(row, AccuracyRow):
        seen = [words.accuracy(row), words.baseline_errors(row), *(one.text for one in row.regressions)]
        return ("accuracy", case, escape(row.device_class), _lines(seen), *(escape(words.NOT_KNOWN),) * 3)
    known = [one.text for one in row.regressions]
    return (
        f"**{row.verdict.value}**" if row.red else row.verdict.value,
        case,
        escape(row.device_class),
        _lines([row.cause.value, words.evidence(row), row.why, row.message if row.change else "", *known]),
        escape(words.moved(words.microseconds(row.base_s), words.microseconds(row.head_s))),
        escape(words.moved(words.microseconds(row.baseline_base_s), words.microseconds(row.baseline_head_s))),
        escape(words.moved(words.times(row.speedup_base), words.times(row.speedup_head)) + words.factors(row)),
    )


def _lines(parts: Sequence[str]) -> str:
    return "<br>".join(escape(part) for part in parts if part)


def _commands(rows: Sequence[Row | AccuracyRow]) -> str:
    """As indented code, which nothing inside can end."""
    commands = dict.fromkeys(row.next for row in rows if row.next)
    return "To measure again:\n\n" + "\n".join(f"    {plain(command)}" for command in commands) if commands else ""


def _speedups(rows: Sequence[Row], room: int) -> str:
    header = (
        *("case", "variant", "device", "baseline µs", "µs", "speedup", "vector", "fusion", "GB/s", "copy", "model"),
        "note",
    )
    cells = [
        (
            _name(f"{row.suite}: {row.case}"),
            _name(row.variant),
            escape(row.device_class),
            words.microseconds(row.baseline_head_s),
            words.microseconds(row.head_s),
            words.times(row.speedup_head),
            words.times(row.vectorisation),
            words.times(row.fusion_gain),
            words.gigabytes(row.bandwidth_bytes_per_s),
            words.share(row.utilization) + ("\\*" if row.cached else ""),
            words.share(row.fusion_efficiency),
            words.gain_note(row),
        )
        for row in sorted(rows, key=lambda row: (row.device_class, row.suite, row.case, row.variant))
    ]
    lines = _table(header, cells, left=3)
    kept: list[str] = []
    for one in lines:
        room -= len(one) + 1
        if room < 100:
            return "\n".join((*kept, "", f"{len(lines) - len(kept)} more rows did not fit."))
        kept.append(one)
    return "\n".join(kept)


def _suites(report: Report) -> str:
    header = ("suite", "device", "cases", "vector", "fusion", "model", "no gain")
    cells = [
        (
            _name(one.suite),
            escape(device.device_class),
            f"{one.cases} of {one.measured}",
            words.times(one.vectorisation),
            words.times(one.fusion_gain),
            words.share(one.fusion_efficiency),
            str(one.no_gain),
        )
        for device in report.devices
        for one in device.suites
        if one.cases
    ]
    title = f"{words.SUITES[0].upper()}{escape(words.SUITES[1:])}."
    return "\n".join((title, "", *_table(header, cells, left=2))) if cells else ""


def _foot(report: Report) -> str:
    lines = [f"run {_name(report.run[:8])}"]
    for one in report.devices:
        lines += [f"{_name(one.device_class)} {escape(said)}" for said in (words.device(one), words.cards(one)) if said]
    lines += [f"more accurate: {escape(said)}" for said in words.more_accurate(report)]
    lines += [f"fixed: {escape(said)}" for said in report.fixed]
    for name, sentences in (("skipped", report.skipped), ("problem", report.problems), ("method", report.methods)):
        lines += [f"{name}: {escape(sentence)}" for sentence in sentences]
    footer = words.FOOTER if report.base else words.FOOTER_WITHOUT_BASE
    return "\\\n".join((*lines, f"<sub>{escape(footer)}</sub>"))

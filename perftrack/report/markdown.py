"""The report as GitHub Markdown, for a job summary or a comment."""

import re
from collections import Counter
from collections.abc import Sequence

from perftrack.report import words
from perftrack.report.layout import plain
from perftrack.report.value import Report, Row

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
    shown = [row for row in report.rows if words.needs_attention(row)][:ROWS]
    rest = [row for row in report.rows if row not in shown]
    parts = [f"### {report.verdict}: {escape(words.headline(report))}", _sides(report)]
    if shown:
        parts.append(_changes(shown))
        parts.append(_commands(shown))
    tail = [_foot(report)]
    if report.base is None:
        room = MAX_LETTERS - sum(len(part) + 2 for part in (*parts, *tail))
        parts += [_speedups(rest, room)] if rest else []
    elif rest:
        parts.append(f"Not shown: {words.counts(report, Counter(row.verdict for row in shown))}.")
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


def _changes(rows: Sequence[Row]) -> str:
    header = ("verdict", "case", "device", "what was seen", "time µs", "baseline µs", "speedup")
    cells = [
        (
            f"**{row.verdict.value}**" if row.red else row.verdict.value,
            f"{_name(f'{row.suite}: {row.case}')} {_name(row.variant)}",
            escape(row.device_class),
            "<br>".join(escape(part) for part in _seen(row)),
            escape(words.moved(words.microseconds(row.base_s), words.microseconds(row.head_s))),
            escape(words.moved(words.microseconds(row.baseline_base_s), words.microseconds(row.baseline_head_s))),
            escape(words.moved(words.times(row.speedup_base), words.times(row.speedup_head))),
        )
        for row in rows
    ]
    return "\n".join(_table(header, cells, left=4))


def _seen(row: Row) -> list[str]:
    parts = [row.cause.value, words.evidence(row), row.why, row.message if row.change else ""]
    return [part for part in parts if part]


def _commands(rows: Sequence[Row]) -> str:
    """As indented code, which nothing inside can end."""
    commands = dict.fromkeys(row.next for row in rows if row.next)
    return "To measure again:\n\n" + "\n".join(f"    {plain(command)}" for command in commands) if commands else ""


def _speedups(rows: Sequence[Row], room: int) -> str:
    header = ("case", "variant", "device", "baseline µs", "µs", "speedup", "fusion", "GB/s", "copy", "model")
    cells = [
        (
            _name(f"{row.suite}: {row.case}"),
            _name(row.variant),
            escape(row.device_class),
            words.microseconds(row.baseline_head_s),
            words.microseconds(row.head_s),
            words.times(row.speedup_head),
            words.times(row.fusion_gain),
            words.gigabytes(row.bandwidth_bytes_per_s),
            words.share(row.utilization) + ("\\*" if row.cached else ""),
            words.share(row.fusion_efficiency),
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


def _foot(report: Report) -> str:
    lines = [f"run {_name(report.run[:8])}"]
    lines += [f"{_name(one.device_class)} {escape(words.device(one))}" for one in report.devices]
    for name, sentences in (("skipped", report.skipped), ("problem", report.problems), ("method", report.methods)):
        lines += [f"{name}: {escape(sentence)}" for sentence in sentences]
    footer = words.FOOTER if report.base else words.FOOTER_WITHOUT_BASE
    return "\\\n".join((*lines, f"<sub>{escape(footer)}</sub>"))

"""The report as the Markdown of GitHub and GitLab, for a job summary or a comment, within the host's limit."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from perftrack.foreign import plain, shortened, spelled
from perftrack.report import words
from perftrack.report.value import AccuracyRow, Report, Row

GITHUB_COMMENT_BYTES = 60_000
"""A comment may have 65,536 letters; no letter has less than a byte."""

GITHUB_SUMMARY_BYTES = 1_000 * 1024
"""The summary of a step may have 1 MiB, more is not shown at all."""

GITLAB_NOTE_BYTES = 900_000
"""A note may have 1,000,000 letters."""

_COMMAND_LETTERS = 1_000
_SENTENCES = 10
"""Of each kind, below the tables."""

_SPECIAL = re.compile(r"[\\`*_{}\[\]()#+!|~$@&<>:-]|(?<=www)\.", re.IGNORECASE)
_HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def escape(text: str) -> str:
    """Foreign text for a table's cell: no markup, no HTML, no line ends, no link; nobody is mentioned.

    Hosts look for `@name`, `#1` and `www.` after the Markdown is read, when a backslash is gone; a comment stays.
    """
    return _SPECIAL.sub(_harmless, plain(text))


def _harmless(match: re.Match[str]) -> str:
    letter, after = match[0], match.string[match.end() : match.end() + 1]
    named = letter in "@#!$~" and (after.isalnum() or after == "_")
    linked = letter == "." or (letter, after) == (":", "/")
    return _HTML.get(letter) or f"\\{letter}{'<!-- -->' if named or linked else ''}"


@dataclass(frozen=True, slots=True)
class _Fit:
    """How much is shown."""

    rows: int
    letters: int
    """Of each name and sentence."""

    def text(self, text: str) -> str:
        return escape(shortened(plain(text), self.letters))

    def name(self, text: str) -> str:
        """In code type, in which nobody is mentioned and no issue linked."""
        return f"<code>{self.text(text)}</code>"

    def lines(self, parts: Sequence[str]) -> str:
        return "<br>".join(self.text(part) for part in parts if part)


_FITS = (_Fit(words.ROWS, 600), *(_Fit(rows, 200) for rows in range(words.ROWS, -1, -1)), _Fit(0, 40))
"""The first that fits is taken: long sentences are shortened before a row is left out, the least severe first."""


def render(report: Report, *, limit: int = GITHUB_COMMENT_BYTES) -> str:
    """Verdict, at most ten rows worst first, the commands that measure red rows again, a line a device class.

    Never more than `limit` bytes of UTF-8 (at least 30,000); what was left out for it is counted.
    """
    made = ""
    for fit in _FITS:
        made = _Page(report, fit).render(limit)
        if len(made.encode()) <= limit:
            break
    return made


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], *, left: int) -> list[str]:
    marks = [":--" if index < left else "--:" for index in range(len(header))]
    return [f"| {' | '.join(cells)} |" for cells in (header, marks, *rows)]


def _fitting(lines: Sequence[str], room: int) -> str:
    """The table's first lines, and how many rows did not fit."""
    kept: list[str] = []
    for one in lines:
        room -= len(one.encode()) + 1
        if room < 100:
            left_out = len(lines) - max(len(kept), 2)
            return "\n".join((*(kept if len(kept) > 2 else ()), "", f"{left_out} more rows did not fit."))
        kept.append(one)
    return "\n".join(kept)


@dataclass(frozen=True, slots=True)
class _Page:
    """One report at one size."""

    report: Report
    fit: _Fit

    def render(self, limit: int) -> str:
        report = self.report
        noted = words.attention(report)
        shown = noted[: self.fit.rows]
        rest = [row for row in report.rows if row not in shown]
        parts = [f"### {report.verdict}: {self.fit.text(words.headline(report))}", self._sides()]
        if shown:
            parts += [self._changes(shown), self._commands(shown)]
        foot = self._foot()
        if report.base is None:
            room = limit - sum(len(part.encode()) + 2 for part in (*parts, foot))
            suites = self._suites(room // 4)
            parts += [self._speedups(rest, room - len(suites.encode()) - 2) if rest else "", suites]
        elif rest:
            parts.append(f"Not shown: {words.counts(report, without=shown)}.")
        return "\n\n".join(part for part in (*parts, foot) if part)

    def _sides(self) -> str:
        report, fit = self.report, self.fit
        head = f"head {fit.name(report.head)} {fit.text(report.head_subject)}"
        base = (
            f"base {fit.name(report.base)} {fit.text(report.base_note)}"
            if report.base
            else f"no base: {fit.text(report.base_note)}"
        )
        incomplete = report.verdict == "RED" and report.reasons
        also = f"\\\nalso incomplete: {fit.text('; '.join(report.reasons))}" if incomplete else ""
        return f"{head}\\\n{base}{also}"

    def _changes(self, rows: Sequence[Row | AccuracyRow]) -> str:
        header = ("verdict", "case", "device", "what was seen", "time µs", "baseline µs", "speedup")
        return "\n".join(_table(header, [self._cells(row) for row in rows], left=4))

    def _cells(self, row: Row | AccuracyRow) -> tuple[str, ...]:
        fit = self.fit
        case = f"{fit.name(f'{row.suite}: {row.case}')} {fit.name(row.variant)}"
        if isinstance(row, AccuracyRow):
            seen = [words.accuracy(row), words.baseline_errors(row), *(one.text for one in row.regressions)]
            return ("accuracy", case, fit.text(row.device_class), fit.lines(seen), *(escape(words.NOT_KNOWN),) * 3)
        known = [one.text for one in row.regressions]
        return (
            f"**{row.verdict.value}**" if row.red else row.verdict.value,
            case,
            fit.text(row.device_class),
            fit.lines([row.cause.value, words.evidence(row), row.why, row.message if row.change else "", *known]),
            escape(words.moved(words.microseconds(row.base_s), words.microseconds(row.head_s))),
            escape(words.moved(words.microseconds(row.baseline_base_s), words.microseconds(row.baseline_head_s))),
            escape(words.moved(words.times(row.speedup_base), words.times(row.speedup_head)) + words.factors(row)),
        )

    def _commands(self, rows: Sequence[Row | AccuracyRow]) -> str:
        """As indented code, which nothing inside can end; half a command would be another one."""
        commands = [spelled(command) for command in dict.fromkeys(row.next for row in rows if row.next)]
        short = [command for command in commands if len(command) <= _COMMAND_LETTERS]
        left = len(commands) - len(short)
        said = [f"{left} commands are too long for this page: `perftrack report` has them."] if left else []
        code = ["To measure again:", "\n".join(f"    {command}" for command in short)] if short else []
        return "\n\n".join(code + said)

    def _speedups(self, rows: Sequence[Row], room: int) -> str:
        header = (
            *("case", "variant", "device", "baseline µs", "µs", "speedup", "vector", "fusion", "GB/s", "copy", "model"),
            "note",
        )
        cells = [
            (
                self.fit.name(f"{row.suite}: {row.case}"),
                self.fit.name(row.variant),
                self.fit.text(row.device_class),
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
        return _fitting(_table(header, cells, left=3), room)

    def _suites(self, room: int) -> str:
        header = ("suite", "device", "cases", "vector", "fusion", "model", "no gain")
        cells = [
            (
                self.fit.name(one.suite),
                self.fit.text(device.device_class),
                f"{one.cases} of {one.measured}",
                words.times(one.vectorisation),
                words.times(one.fusion_gain),
                words.share(one.fusion_efficiency),
                str(one.no_gain),
            )
            for device in self.report.devices
            for one in device.suites
            if one.cases
        ]
        title = f"{words.SUITES[0].upper()}{escape(words.SUITES[1:])}."
        return "\n".join((title, "", _fitting(_table(header, cells, left=2), room))) if cells else ""

    def _foot(self) -> str:
        report, fit = self.report, self.fit
        lines = [f"run {fit.name(report.run[:8])}"]
        devices = [
            f"{fit.name(one.device_class)} {fit.text(said)}"
            for one in report.devices
            for said in (words.device(one), words.cards(one))
            if said
        ]
        lines += self._some(devices, "lines about devices")
        lines += [f"more accurate: {fit.text(said)}" for said in words.more_accurate(report)]
        lines += self._some([f"fixed: {fit.text(said)}" for said in report.fixed], "lines of fixed")
        for name, sentences in (("skipped", report.skipped), ("problem", report.problems), ("method", report.methods)):
            lines += self._some([f"{name}: {fit.text(sentence)}" for sentence in sentences], f"lines of {name}")
        footer = words.FOOTER if report.base else words.FOOTER_WITHOUT_BASE
        return "\\\n".join((*lines, f"<sub>{escape(footer)}</sub>"))

    def _some(self, lines: Sequence[str], what: str) -> list[str]:
        left = len(lines) - _SENTENCES
        return [*lines[:_SENTENCES], *([f"and {left} more {what}"] if left > 0 else [])]

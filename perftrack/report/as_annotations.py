"""The report as workflow commands of GitHub Actions, which show as annotations of the run and of the pull request.

GitHub shows ten of each level a step, 4 KiB of each, 64 KiB together, and drops the rest in silence; here the last one
of a level says how many were left out, the least severe ones. Source of the escapes: `packages/core/src/command.ts` of
`actions/toolkit`.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

from perftrack.errors import PerftrackError
from perftrack.foreign import plain, shortened
from perftrack.model import Verdict
from perftrack.report import words
from perftrack.report.value import AccuracyRow, Report, Row

EACH = 10
"""Annotations of one level."""

MESSAGE_BYTES = 4096
TOTAL_BYTES = 64 * 1024
_TITLE_LETTERS = 200

_Level = Literal["error", "warning", "notice"]
_Note = tuple[str, str]
"""Title and message."""

_WORTH_A_WARNING = (Verdict.SLOWER, Verdict.FAILED, Verdict.WRONG, Verdict.MISSING, Verdict.UNSTABLE, Verdict.AMBIGUOUS)


def render(report: Report) -> str:
    """Red rows as errors, other bad ones and what is incomplete as warnings, and always one notice: the verdict.

    So silence never means that all is well.
    """
    errors = [row for row in report.rows if row.red]
    warnings = [row for row in words.attention(report) if _warns(row)]
    reasons = [("perftrack: incomplete", reason) for reason in report.reasons]
    said = f"{report.verdict}: {words.headline(report)}"
    sides = f"{words.against(report)}, {report.base_note}" if report.base_note else words.against(report)
    coverage = [f"{one.device_class}: {words.device(one)}" for one in report.devices[:EACH]]
    lines = [
        _command("notice", "perftrack", "\n".join((said, sides, *coverage))),
        *_level("error", errors),
        *_level("warning", [*reasons, *warnings]),
    ]
    return "\n".join(_within(lines))


def failure(error: PerftrackError) -> str:
    """The annotation of a run that has no report."""
    return _command("error", "perftrack: no verdict", str(error))


def _warns(row: Row | AccuracyRow) -> bool:
    return isinstance(row, AccuracyRow) or (not row.red and row.verdict in _WORTH_A_WARNING)


def _note(row: Row | AccuracyRow) -> _Note:
    name = f"{row.case} {row.variant} on {row.device_class}"
    known = [one.text for one in row.regressions]
    if isinstance(row, AccuracyRow):
        return f"less accurate: {name}", _joined([words.accuracy(row), words.baseline_errors(row), *known, row.next])
    cause = f"{row.cause.value}: " if row.cause.value else ""
    parts = [words.evidence(row), cause + words.numbers(row), row.why, row.message if row.change else "", *known]
    return f"{row.verdict.value}: {name}", _joined([f"suite {row.suite}", *parts, row.next])


def _joined(parts: Sequence[str]) -> str:
    return "\n".join(plain(part) for part in parts if part)


def _level(level: _Level, notes: Sequence[Row | AccuracyRow | _Note]) -> Iterator[str]:
    shown = notes if len(notes) <= EACH else notes[: EACH - 1]
    for note in shown:
        yield _command(level, *(note if isinstance(note, tuple) else _note(note)))
    if left := len(notes) - len(shown):
        yield _command(level, "perftrack", f"{left} more of this level are not shown; the job summary has the worst")


def _command(level: _Level, title: str, message: str) -> str:
    head = f"::{level} title={_property(shortened(plain(title), _TITLE_LETTERS))}::"
    room = MESSAGE_BYTES - len(head.encode())
    return head + _cut(message, room)


def _cut(message: str, room: int) -> str:
    lines = [plain(line) for line in message.split("\n")]
    letters = room
    while len((data := "%0A".join(_data(shortened(line, letters)) for line in lines)).encode()) > room:
        letters = letters * 3 // 4
        lines = lines[:20]
    return data


def _within(lines: Sequence[str]) -> list[str]:
    """What fits the limit of a step; each line is at most a sixteenth of it, so the first ones always do."""
    kept: list[str] = []
    room = TOTAL_BYTES
    for line in lines:
        room -= len(line.encode()) + 1
        if room > MESSAGE_BYTES // 8:
            kept.append(line)
    if left := len(lines) - len(kept):
        kept.append(_command("notice", "perftrack", f"{left} annotations did not fit"))
    return kept


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")

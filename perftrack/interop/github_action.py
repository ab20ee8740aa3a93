"""github-action-benchmark: its `data.js` (one session an entry), and the list that its custom tools read.

An entry names commit and date, never a machine. Benches carry any unit: those of time are read, and the rates of
tools that report calls per second of a single loop; a value in req/s, bytes or percent is no time and left out.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from perftrack.interop import fields, machines, units
from perftrack.interop.document import Document, Hints
from perftrack.interop.scan import Member
from perftrack.interop.source import fingerprint
from perftrack.interop.value import BadRecordError, Notes, Origin, Reading, Session

_ENTRIES = ("entries", "*")
_DEVICE = "runner"
_METHOD = "benches"
_LOOPS = frozenset({"pytest", "benchmarkjs", "benchmarkluau"})
"""Tools whose calls per second are 1 ÷ the mean time of a call."""


def sessions(path: Path, notes: Notes, hints: Hints) -> Iterator[Session]:
    """One session an entry."""
    document = Document(path, notes, _ENTRIES, exact=True)
    repo = fields.text(document.rest(), "repoUrl").rstrip("/").rpartition("/")[2].removesuffix(".git")
    for member in document.members():
        try:
            yield _entry_session(document, member, repo, hints)
        except BadRecordError as error:
            notes.report(member.number, str(error), at=member.at)


def _entry_session(document: Document, member: Member, repo: str, hints: Hints) -> Session:
    entry = fields.table(member.decode(exact=True), "the entry")
    benches = fields.sequence(entry.get("benches"), "`benches`")
    tool = fields.text(entry, "tool")
    commit = fields.member(entry, "commit")
    suite = fields.spelled(str(member.path[1])) or hints.suite or "github-action-benchmark"
    device = machines.named(hints.device or machines.UNKNOWN)

    def readings() -> Iterator[Reading]:
        for at, bench in enumerate(benches, 1):
            try:
                found = _reading(bench, member.number, suite, tool, document.notes)
            except BadRecordError as error:
                document.notes.report(member.number, f"bench {at}: {error}", at=member.at)
            else:
                yield from found

    canonical = json.dumps([repo, member.path[1], entry], sort_keys=True, default=str)
    return Session(
        format="github-action-benchmark",
        identity=hashlib.sha256(canonical.encode("utf-8", "backslashreplace")).hexdigest(),
        origin=Origin(
            repo=repo,
            commit=fields.commit(commit.get("id")),
            committed_us=fields.instant(commit.get("timestamp")),
            subject=fields.first_line(commit, "message"),
            measured_us=fields.instant_of_ms(entry.get("date")),
        ),
        devices={_DEVICE: device},
        methods={_METHOD: machines.host_clock(f"github-action-benchmark {tool}".strip())},
        readings=readings,
    )


def list_sessions(path: Path, notes: Notes, hints: Hints) -> Iterator[Session]:
    """The one session of a list of `{name, unit, value}`, as `customSmallerIsBetter` reads it."""
    document = Document(path, notes, (), exact=True)
    suite = fields.spelled(hints.suite or "github-action-benchmark")

    def convert(record: Any, member: Member) -> Iterable[Reading]:
        return _reading(record, member.number, suite, "", notes)

    yield Session(
        format="github-action-benchmark",
        identity=fingerprint(path, "github-action-benchmark"),
        origin=Origin(measured_us=path.stat().st_mtime_ns // 1000),
        devices={_DEVICE: machines.named(hints.device or machines.UNKNOWN)},
        methods={_METHOD: machines.host_clock("github-action-benchmark")},
        readings=lambda: document.readings(convert),
    )


def _reading(bench: Any, number: int, suite: str, tool: str, notes: Notes) -> list[Reading]:
    row: Mapping[str, Any] = fields.table(bench, "the bench")
    case = fields.name(row, "name")
    name = fields.text(row, "unit")
    fields.number(row.get("value"), "`value`")
    unit = units.time_unit(name, rates=tool in _LOOPS or name.startswith("iter/"))
    if unit is None:
        notes.leave_out(number, f"{fields.shown(case)} is in {fields.shown(name)}, which is no time")
        return []
    time_s = fields.seconds(row["value"], "`value`", exponent=unit.exponent, rate=unit.rate)
    return [
        Reading(suite=suite, case=case, variant="time", device=_DEVICE, method=_METHOD, record=number, time_s=time_s)
    ]

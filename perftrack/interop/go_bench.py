"""The text of `go test -bench`: lines `BenchmarkName-procs  N  value ns/op …` under the `pkg:` they belong to.

One session a file. Further metrics of a line (`B/op`, `MB/s`, reported ones) are no times and are left out. The
same name again is a repetition (`-count`).
"""

import io
import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from pathlib import Path

from perftrack.interop import fields, machines, units
from perftrack.interop.document import Hints
from perftrack.interop.source import fingerprint, parts
from perftrack.interop.value import BadRecordError, Notes, Origin, Reading, Session
from perftrack.model import Environment

_DEVICE = "host"
_METHOD = "go"
_MAX_LINE = 2**16
_HEADER = re.compile(r"(goos|goarch|pkg|cpu):\s*(.*)")
_LINE = re.compile(r"(Benchmark\S*?)(?:-(\d+))?\s+(\d+)\s+(\S.*)")


def sessions(path: Path, notes: Notes, hints: Hints) -> Iterator[Session]:
    """The one session of the file."""
    header = {found[1]: found[2].strip() for line in _lines(path) if (found := _HEADER.fullmatch(line.strip()))}
    model = header.get("cpu", "")
    known = machines.named(hints.device) if hints.device and not model else machines.cpu("", model, None)
    facts = {name: header[name] for name in ("goos", "goarch") if name in header}
    yield Session(
        format="go",
        identity=fingerprint(path, "go"),
        origin=Origin(
            measured_us=path.stat().st_mtime_ns // 1000, environment=Environment(entries=fields.scalars(facts))
        ),
        devices={_DEVICE: known},
        methods={_METHOD: machines.host_clock("go testing")},
        readings=lambda: _readings(path, notes, hints),
    )


def _lines(path: Path) -> Iterator[str]:
    """Lines without their ends, at most `_MAX_LINE` characters each."""
    waiting = ""
    with path.open("rb") as file:
        for part in parts(file):
            whole = io.StringIO(waiting + part.decode("utf-8", "replace").replace("\r\n", "\n"))
            waiting = ""
            for line in whole:
                if line.endswith("\n"):
                    yield line.rstrip("\r\n")[:_MAX_LINE]
                else:
                    waiting = line[:_MAX_LINE]
    if waiting:
        yield waiting


def _readings(path: Path, notes: Notes, hints: Hints) -> Iterator[Reading]:
    suite = hints.suite or "go"
    for number, line in enumerate(_lines(path), 1):
        header = _HEADER.fullmatch(line.strip())
        if header and header[1] == "pkg":
            suite = fields.spelled(header[2].strip()) or suite
        found = _LINE.fullmatch(line.strip())
        if not found:
            continue
        try:
            yield _reading(found, number, suite)
        except BadRecordError as error:
            notes.report(number, str(error))


def _reading(found: re.Match[str], number: int, suite: str) -> Reading:
    words = found[4].split()
    for value, name in zip(words[::2], words[1::2], strict=False):
        unit = units.time_unit(name)
        if unit is None:
            continue
        try:
            exact = Decimal(value)
        except InvalidOperation:
            raise BadRecordError(f"`{name}` is {fields.shown(value)}, not a number") from None
        return Reading(
            suite=suite,
            case=fields.spelled(found[1]),
            variant="time",
            device=_DEVICE,
            method=_METHOD,
            record=number,
            params={"procs": int(found[2])} if found[2] and len(found[2]) < 6 else {},
            time_s=fields.seconds(exact, f"`{name}`", exponent=unit.exponent),
            calls_per_sample=fields.count(int(found[3][:12]), 0),
        )
    raise BadRecordError("it has no time (`ns/op`)")

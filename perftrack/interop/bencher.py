"""Bencher Metric Format: an object, benchmark → measure → `{value, lower_value, upper_value}`. One session a file.

The format has no version and no units: a measure's unit is a convention of Bencher, `latency` in nanoseconds and
`build-time` in seconds. Other measures are no times and are left out.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from perftrack.interop import fields, machines
from perftrack.interop.document import Document, Hints
from perftrack.interop.scan import Member
from perftrack.interop.source import fingerprint
from perftrack.interop.value import BadRecordError, Notes, Origin, Reading, Session

_DEVICE = "testbed"
_EXPONENTS = {"latency": -9, "build-time": 0}
"""Power of ten of a second, by the slug of each measure that is a time."""


def sessions(path: Path, notes: Notes, hints: Hints) -> Iterator[Session]:
    """The one session of the file."""
    document = Document(path, notes, (), exact=True)
    suite = fields.spelled(hints.suite or "bencher")

    def convert(record: Any, member: Member) -> Iterable[Reading]:
        case = fields.spelled(str(member.path[-1] if member.path else ""))
        if not case.strip():
            raise BadRecordError("it has no name")
        for measure, metric in fields.table(record, "the benchmark").items():
            slug = measure.strip().lower().replace(" ", "-")
            if slug not in _EXPONENTS:
                notes.leave_out(member.number, f"{fields.shown(measure)} of {fields.shown(case)} is no time")
                continue
            with document.part(member, case):
                value = fields.table(metric, f"`{measure}`").get("value")
                yield Reading(
                    suite=suite,
                    case=case,
                    variant=slug,
                    device=_DEVICE,
                    method=slug,
                    record=member.number,
                    time_s=fields.seconds(value, f"`{measure}.value`", exponent=_EXPONENTS[slug]),
                )

    yield Session(
        format="bencher",
        identity=fingerprint(path, "bencher"),
        origin=Origin(measured_us=path.stat().st_mtime_ns // 1000),
        devices={_DEVICE: machines.named(hints.device or machines.UNKNOWN)},
        methods={slug: machines.host_clock(f"bencher {slug}") for slug in _EXPONENTS},
        readings=lambda: document.readings(convert),
    )

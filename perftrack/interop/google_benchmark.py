"""Google Benchmark's JSON (`--benchmark_format=json`), of 1.0 to json_schema_version 1 of today: one session a file.

Versions before 1.5 have neither `run_type` nor `aggregate_name`: there the statistics of repetitions are told by
their names, `X_mean` and `X_stddev` together. Since 1.6 an aggregate may be a percentage, and a benchmark skipped.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from perftrack.interop import fields, machines, units
from perftrack.interop.document import Document, Hints
from perftrack.interop.scan import Member
from perftrack.interop.source import fingerprint
from perftrack.interop.value import BadRecordError, Notes, Origin, Reading, Role, Session
from perftrack.model import Environment, Status

_RECORDS = ("benchmarks",)
_DEVICE = "host"
_CLOCKS = ("real_time", "cpu_time")
_STATISTIC = re.compile(r"(.+)_(mean|median|stddev|cv|BigO|RMS)")
_COMMIT_KEYS = ("commit", "git_commit", "git_sha", "git_hash", "git_revision", "revision")


def sessions(path: Path, notes: Notes, hints: Hints) -> Iterator[Session]:
    """The one session of the file."""
    document = Document(path, notes, _RECORDS, exact=True)
    bases = _Bases()
    rest = document.rest(bases.visit)
    context = fields.member(rest, "context")
    node = fields.text(context, "host_name")
    cores = fields.count(context.get("num_cpus"), 0)
    known = machines.named(hints.device) if hints.device and not node else machines.cpu(node, "", cores)
    executable = re.split(r"[/\\]", fields.text(context, "executable"))[-1].removesuffix(".exe")
    reader = _Reader(document, fields.spelled(executable or hints.suite or "google-benchmark"), bases.found)
    yield Session(
        format="google-benchmark",
        identity=fingerprint(path, "google-benchmark"),
        origin=Origin(
            # what `--benchmark_context=commit=…` adds
            commit=next((found for key in _COMMIT_KEYS if (found := fields.commit(context.get(key)))), ""),
            measured_us=fields.instant(context.get("date")),
            environment=_environment(context),
        ),
        devices={_DEVICE: known},
        methods={clock: machines.host_clock(f"google-benchmark {clock}") for clock in _CLOCKS},
        readings=reader.readings,
    )


def _environment(context: Mapping[str, Any]) -> Environment:
    names = ("library_version", "library_build_type", "cpu_scaling_enabled", "aslr_enabled", "json_schema_version")
    return Environment(entries=fields.scalars({name: context[name] for name in names if name in context}))


class _Bases:
    """Names X of records for which there is an untyped record `X_stddev`: the old versions' statistics."""

    def __init__(self) -> None:
        self.found: set[str] = set()

    def visit(self, member: Member) -> None:
        if member.data is None or b"_stddev" not in member.data:
            return
        try:
            record = member.decode()
        except BadRecordError:
            return
        name = record.get("name") if isinstance(record, dict) and "run_type" not in record else None
        if isinstance(name, str) and name.endswith("_stddev"):
            self.found.add(name.removesuffix("_stddev"))


class _Reader:
    """Reads the records, and knows which names are statistics although their records do not say so."""

    def __init__(self, document: Document, suite: str, statistics: Collection[str]) -> None:
        self._document = document
        self._suite = suite
        self._statistics = statistics

    def readings(self) -> Iterator[Reading]:
        return self._document.readings(self._read)

    def _read(self, record: Any, member: Member) -> Iterable[Reading]:
        row = fields.table(record, "the record")
        case, role = self._identity(row)
        status, message = _status(row)
        common: dict[str, Any] = {
            "suite": self._suite,
            "case": case,
            "device": _DEVICE,
            "record": member.number,
            "params": fields.scalars({key: row[key] for key in ("threads", "label") if key in row}),
            "role": role,
        }
        if status is not Status.OK:
            yield Reading(variant="real_time", method="real_time", status=status, message=message, **common)
            return
        if role == "other":
            yield Reading(variant="real_time", method="real_time", status=Status.SKIPPED, **common)
            return
        unit = units.time_unit(fields.text(row, "time_unit") or "ns")
        if unit is None:
            raise BadRecordError(f"`time_unit` is {fields.shown(row['time_unit'])}, which is no unit of time")
        repetitions = fields.count(row.get("repetitions")) if role != "sample" else 1
        calls = fields.count(row.get("iterations"), 0)
        for clock in _CLOCKS:
            if clock == "cpu_time" and row.get(clock) in (None, 0):
                continue  # a device's own time, or a benchmark that reports none
            with self._document.part(member, case):
                if clock not in row:
                    raise BadRecordError(f"it has no `{clock}`")
                time_s = fields.seconds(row[clock], f"`{clock}`", exponent=unit.exponent)
                yield Reading(
                    variant=clock, method=clock, time_s=time_s, count=repetitions, calls_per_sample=calls, **common
                )

    def _identity(self, row: Mapping[str, Any]) -> tuple[str, Role]:
        name = fields.name(row, "name")
        if row.get("run_type") == "aggregate":
            statistic = fields.text(row, "aggregate_name")
            base = fields.text(row, "run_name")
            return fields.spelled(base or name.removesuffix(f"_{statistic}")), _role(statistic)
        found = _STATISTIC.fullmatch(name) if "run_type" not in row else None
        if found and (found[1] in self._statistics or "rms" in row or "big_o" in row):
            return found[1], _role(found[2])
        return fields.spelled(fields.text(row, "run_name") or name), "sample"


def _role(statistic: str) -> Role:
    return "mean" if statistic == "mean" else "median" if statistic == "median" else "other"


def _status(row: Mapping[str, Any]) -> tuple[Status, str]:
    if row.get("error_occurred") is True:
        return Status.FAILED, fields.text(row, "error_message")
    if row.get("skipped") is True:
        return Status.SKIPPED, fields.text(row, "skip_message")
    return Status.OK, ""

"""asv's result files (`results/MACHINE/COMMIT-ENVIRONMENT.json`), api versions 1 and 2: one session a file.

Units stand in `benchmarks.json`, one folder above or beside; without it only `time_…` and `timeraw_…` are known
to be times. In the files null is a failure and NaN a benchmark that was skipped.
"""

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from perftrack.errors import UsageError
from perftrack.interop import fields, machines, units
from perftrack.interop.document import Document, Hints
from perftrack.interop.scan import Member, decode
from perftrack.interop.source import fingerprint
from perftrack.interop.units import Unit
from perftrack.interop.value import BadRecordError, Notes, Origin, Reading, Session
from perftrack.model import Device, Environment, Status

_RECORDS = ("results",)
_DEVICE = "machine"
_METHOD = "asv"
_MAX_POINTS = 100_000
"""Combinations of parameters of one benchmark."""
_MAX_BENCHMARKS_BYTES = 64 * 2**20
_CORES = re.compile(r"\((\d+) cores?\)")


def sessions(path: Path, notes: Notes, hints: Hints) -> Iterator[Session]:
    """The one session of the file; UsageError for another version, or a file that holds no results."""
    document = Document(path, notes, _RECORDS)
    rest, first = document.rest_and_first()
    columns = rest.get("result_columns")
    version = rest.get("version", 1 if columns is None else 2)  # it stands last, where a torn file has none
    if version not in (1, 2):
        raise UsageError(f"{path} has version {fields.shown(version)} of asv's results; perftrack reads 1 and 2")
    params = fields.member(rest, "params")
    reader = _Reader(document, _benchmarks_beside(path), columns if isinstance(columns, list) else None)
    committed_us = fields.instant_of_ms(rest.get("date"))
    yield Session(
        format="asv",
        identity=fingerprint(path, "asv"),
        origin=Origin(
            commit=fields.commit(rest.get("commit_hash")),
            committed_us=committed_us,
            measured_us=_started_us(rest, columns, first) or committed_us,
            environment=_environment(rest, params),
        ),
        devices={_DEVICE: _device(params, hints)},
        methods={_METHOD: machines.host_clock("asv")},
        readings=reader.readings,
    )


def _device(params: Mapping[str, Any], hints: Hints) -> Device:
    model, node = fields.text(params, "cpu"), fields.text(params, "machine")
    if hints.device and not (model or node):
        return machines.named(hints.device)
    cores = _CORES.search(model)
    number = fields.text(params, "num_cpu") or (cores[1] if cores else "")
    return machines.cpu(node, model, int(number) if number.isdecimal() and len(number) < 6 else None)


def _environment(rest: Mapping[str, Any], params: Mapping[str, Any]) -> Environment:
    """Python, requirements, environment variables and system; what is left of `params` describes the machine."""
    found: dict[str, Any] = {"python": rest.get("python"), "system": params.get("os"), "env_name": rest.get("env_name")}
    for part in ("requirements", "env_vars"):
        found |= fields.member(rest, part)
    return Environment(entries=fields.scalars({name: value for name, value in found.items() if value != ""}))


def _started_us(rest: Mapping[str, Any], columns: Any, first: Any) -> int | None:
    """When its first benchmark started, in either version."""
    started = fields.member(rest, "started_at")
    if started:
        return min((found for value in started.values() if (found := fields.instant_of_ms(value))), default=None)
    if isinstance(columns, list) and "started_at" in columns and isinstance(first, list):
        at = columns.index("started_at")
        return fields.instant_of_ms(first[at]) if at < len(first) else None
    return None


def _benchmarks_beside(path: Path) -> Mapping[str, Any]:
    """The file that asv keeps for all results of a project; nothing where it is not there or no JSON."""
    for folder in (path.parent, path.parent.parent):
        file = folder / "benchmarks.json"
        try:
            if file.is_file() and file.stat().st_size <= _MAX_BENCHMARKS_BYTES:
                found = decode(file.read_bytes())
                return found if isinstance(found, dict) else {}
        except (OSError, BadRecordError):
            continue
    return {}


class _Reader:
    def __init__(self, document: Document, benchmarks: Mapping[str, Any], columns: Sequence[Any] | None) -> None:
        self._document = document
        self._benchmarks = benchmarks
        self._columns = columns

    def readings(self) -> Iterator[Reading]:
        return self._document.readings(self._read)

    def _read(self, record: Any, member: Member) -> Iterable[Reading]:
        name = str(member.path[-1] if member.path else "")
        row = self._row(record)
        described = fields.member(self._benchmarks, name)
        suite, _, function = name.rpartition(".")
        if not function:
            raise BadRecordError("it has no name")
        unit = _unit(function, described)
        if unit is None:
            self._document.notes.leave_out(member.number, f"{fields.shown(name)} measures no time")
            return
        names = described.get("param_names")
        for at, point in enumerate(_points(row, names if isinstance(names, list) else [])):
            axes = ",".join(f"{axis}={text}" for axis, text in sorted(point.items()))
            case = fields.spelled(f"{function}[{axes}]" if axes else function)
            with self._document.part(member, case):
                yield _reading(row, at, unit, fields.spelled(suite or "asv"), case, point, member)

    def _row(self, record: Any) -> dict[str, Any]:
        """The record's parts by name, as its version has them: `result`, `params`, `samples` and others."""
        if self._columns is not None:
            values = fields.sequence(record, "the record")
            return {str(key): value for key, value in zip(self._columns, values, strict=False)}
        return dict(record) if isinstance(record, dict) else {"result": record}


def _unit(function: str, described: Mapping[str, Any]) -> Unit | None:
    if fields.text(described, "unit"):
        return units.time_unit(fields.text(described, "unit"))
    return Unit(0) if re.match(r"(?i)time(raw)?_", function) else None


def _points(row: Mapping[str, Any], names: Sequence[Any]) -> Iterator[dict[str, str]]:
    """Parameters of each result, in its order: the product of the lists, the last one fastest."""
    lists = row.get("params") or []
    axes = [[str(value) for value in fields.sequence(one, "`params`")] for one in fields.sequence(lists, "`params`")]
    if math.prod(map(len, axes)) > _MAX_POINTS:
        raise BadRecordError(f"`params` has more than {_MAX_POINTS} combinations")
    labels = [str(names[at]) if at < len(names) else f"param{at + 1}" for at in range(len(axes))]
    for values in itertools.product(*axes):
        yield dict(zip(labels, values, strict=True))


def _reading(
    row: Mapping[str, Any], at: int, unit: Unit, suite: str, case: str, point: Mapping[str, str], member: Member
) -> Reading:
    result = row.get("result")
    value = (
        result[at] if isinstance(result, list) and at < len(result) else None if isinstance(result, list) else result
    )
    common: dict[str, Any] = {
        "suite": suite,
        "case": case,
        "variant": "time",
        "device": _DEVICE,
        "method": _METHOD,
        "record": member.number,
        "params": fields.scalars(point),
    }
    if value is None:
        return Reading(status=Status.FAILED, message="asv has no result of it", **common)
    if isinstance(value, float) and math.isnan(value):
        return Reading(status=Status.SKIPPED, message="skipped by asv", **common)
    samples = _part(row.get("samples"), at)
    raw = fields.times(samples)
    return Reading(
        time_s=fields.seconds(value, "`result`", exponent=unit.exponent),
        samples_s=tuple(one * 10.0**unit.exponent for one in raw) if unit.exponent else raw,
        count=fields.count(_part(row.get("stats_repeat"), at), len(raw) or 1),
        calls_per_sample=fields.count(_part(row.get("stats_number"), at), 0),
        **common,
    )


def _part(column: Any, at: int) -> Any:
    return column[at] if isinstance(column, list) and at < len(column) else None

"""Structs to rows and back, side by side, so that both directions stay in step.

A row is a mapping from column name to value. Columns that are references (`…_id`) are the business of
`dimensions` and `write`.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from functools import cache, lru_cache
from operator import attrgetter
from typing import Any, TypeVar

import msgspec

from perftrack.judge.value import Finding, Interval, Summary
from perftrack.model import Case, Device, Environment, Issue, JobResult, Measurement, Method, Resources, Revision, Run
from perftrack.store import pack

T = TypeVar("T", bound=msgspec.Struct)
Row = Mapping[str, Any]

SUMMARY_REFERENCES = {
    "suite", "case_key", "device_class", "variant", "side", "device_uuid", "environment_digest", "resources",
    "vectorisation",
}  # fmt: skip
"""Fields of a `Summary` that are keys or references of its row, or the speedup of another row."""
FINDING_REFERENCES = {"suite", "case_key", "device_class", "variant"}


@cache
def _fields(kind: type[msgspec.Struct], of: type) -> frozenset[str]:
    """Names of the fields of `kind` that are (optional) values of type `of`."""
    return frozenset(field.name for field in msgspec.structs.fields(kind) if field.type in {of, of | None})


_AS_THEY_ARE = frozenset({int, float, type(None)})


def _columns(value: msgspec.Struct, without: AbstractSet[str]) -> dict[str, Any]:
    """Scalars and intervals of a struct as columns; anything else must be in `without`."""
    row: dict[str, Any] = {}
    for name, is_interval in _plan(type(value), frozenset(without)):
        field = getattr(value, name)
        if is_interval:
            row |= _interval_columns(name, field)
        else:
            row[name] = field if type(field) in _AS_THEY_ARE else _scalar(field)
    return row


def columns(values: Sequence[msgspec.Struct], without: AbstractSet[str]) -> dict[str, Sequence[Any]]:
    """The same of many structs of one kind, a column each: a third of the time of one row after the other."""
    made: dict[str, Sequence[Any]] = {}
    if not values:
        return made
    plan = _plan(type(values[0]), frozenset(without))
    fields = zip(*map(attrgetter(*(name for name, _ in plan)), values), strict=True)
    for (name, is_interval), field in zip(plan, fields, strict=True):
        if is_interval:
            for end, part in _PARTS.items():
                made[f"{name}{end}"] = _column([None if one is None else getattr(one, part) for one in field])
        else:
            made[name] = _column(field)
    return made


_PARTS = {"": "point", "_low": "low", "_high": "high"}


def _column(values: Sequence[Any]) -> Sequence[Any]:
    """`_scalar` of each."""
    kinds = set(map(type, values))
    if kinds <= _AS_THEY_ARE:
        return values
    if all(issubclass(kind, str) for kind in kinds):  # few words, and our enums
        words = {word: _scalar(word) for word in set(values)}
        return [words[word] for word in values]
    return list(map(_scalar, values))


@cache
def _plan(kind: type[msgspec.Struct], without: frozenset[str]) -> tuple[tuple[str, bool], ...]:
    """Fields that become columns, and whether they become three."""
    intervals = _fields(kind, Interval)
    return tuple((name, name in intervals) for name in kind.__struct_fields__ if name not in without)


def _scalar(value: Any) -> Any:
    if type(value) in _AS_THEY_ARE:
        return value
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, str):
        return pack.plain(value)
    return float(value) if isinstance(value, float) else value  # NumPy's float64 is a float


def _interval_columns(name: str, interval: Interval | None) -> dict[str, float | None]:
    if interval is None:
        return {name: None, f"{name}_low": None, f"{name}_high": None}
    return {
        name: _scalar(interval.point),
        f"{name}_low": _scalar(interval.low),
        f"{name}_high": _scalar(interval.high),
    }


def _struct(kind: type[T], row: Row, **given: Any) -> T:
    """The inverse of `_columns`; `given` are the fields that no column of their own holds."""
    plain, flags, intervals = _stored(kind, tuple(given))
    fields = {name: row[name] for name in plain} | given
    for name in flags:
        fields[name] = bool(row[name])
    for name in intervals:
        point = row[name]
        fields[name] = None if point is None else Interval(point, row[f"{name}_low"], row[f"{name}_high"])
    return msgspec.convert(fields, kind)


@cache
def _stored(kind: type[msgspec.Struct], given: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Names of the fields that are columns as they are, of flags, and of intervals."""
    names = [name for name in kind.__struct_fields__ if name not in given]
    flags, intervals = _fields(kind, bool), _fields(kind, Interval)
    return (
        tuple(name for name in names if name not in flags | intervals),
        tuple(name for name in names if name in flags),
        tuple(name for name in names if name in intervals),
    )


def _decoded(text: str, kind: Any) -> Any:
    return msgspec.json.decode(text, type=kind)


def summary_columns(summaries: Sequence[Summary]) -> dict[str, Sequence[Any]]:
    """All but the references, of each in its place."""
    return columns(summaries, SUMMARY_REFERENCES)


def summary(row: Row) -> Summary:
    """From a row of `result` joined with its dimensions."""
    return _struct(
        Summary,
        row,
        device_uuid=row["device_uuid"] or "",
        environment_digest=row["environment_digest"] or "",
        resources=resources(row),
    )


def finding_row(finding: Finding) -> dict[str, Any]:
    """All but the references."""
    row = _columns(finding, FINDING_REFERENCES | {"ratios"})
    return row | {"ratios": pack.json_text([float(ratio) for ratio in finding.ratios])}


def finding(row: Row) -> Finding:
    """From a row of `finding` joined with its dimensions."""
    return _struct(Finding, row, ratios=_decoded(row["ratios"], tuple[float, ...]))


def resources(row: Row) -> Resources:
    """From the columns of `resources` in a joined row; equal ones are one value, since they repeat."""
    return _resources(*(row[name] for name in Resources.__struct_fields__))


@lru_cache(maxsize=4096)
def _resources(*values: Any) -> Resources:
    return msgspec.convert(dict(zip(Resources.__struct_fields__, values, strict=True)), Resources)


_DOCUMENTS = ("params", "variants", "traffic")


def case_columns(cases: Sequence[Case]) -> dict[str, Sequence[Any]]:
    """What a tree declares of cases; their suite and key are their identity, their issue is in their jobs' method."""
    made = columns(cases, frozenset({"suite", "key", "issue", *_DOCUMENTS}))
    return made | {name: [pack.json_text(getattr(case, name)) for case in cases] for name in _DOCUMENTS}


def case(row: Row, issue: Issue) -> Case:
    """From a row of `declaration` joined with its case and suite."""
    fields = {field.name: field.type for field in msgspec.structs.fields(Case)}
    documents = {name: _decoded(row[name], fields[name]) for name in _DOCUMENTS}
    return _struct(Case, row, issue=issue, **documents)


def device_row(device: Device) -> dict[str, Any]:
    """All but its class."""
    return _columns(device, {"device_class"})


def device(row: Row) -> Device:
    """From a row of `device` joined with its class."""
    return _struct(Device, row)


def environment(entries: str) -> Environment:
    """From the text of its entries."""
    return Environment(entries=_decoded(entries, dict[str, bool | int | float | str]))


def method(document: str) -> Method:
    """From its whole document."""
    return _decoded(document, Method)


def revision_row(revision: Revision) -> dict[str, Any]:
    """All but the branch, which is the run's: a commit lies on many branches."""
    row = _columns(revision, {"branch", "parent"})
    return row | {"parent_sha": revision.parent}


def revision(row: Row, branch: str | None) -> Revision:
    """From a row of `revision`."""
    return _struct(Revision, row, parent=row["parent_sha"], branch=branch)


def run_row(run: Run) -> dict[str, Any]:
    """All but its revisions."""
    documents = {name: pack.json_text(getattr(run, name)) for name in ("options", "problems")}
    row = _columns(run, {"repo", "head", "base", *documents})
    return row | documents | {"head_branch": run.head.branch, "base_branch": run.base.branch if run.base else None}


def run(row: Row, repo: str, head: Revision, base: Revision | None) -> Run:
    """From a row of `run` and its revisions."""
    fields = {field.name: field.type for field in msgspec.structs.fields(Run)}
    documents = {name: _decoded(row[name], fields[name]) for name in ("options", "problems")}
    return _struct(Run, row, repo=repo, head=head, base=base, **documents)


_TRACES = ("canary_s", "clock_mhz")
_LISTS = ("bad_blocks", "throttle_reasons", "source_digest")
_ELSEWHERE = frozenset({"suite", "case_key", "device_class", "environment", "measurements", *_TRACES, *_LISTS})


def job_row(result: JobResult) -> dict[str, Any]:
    """One attempt, without its measurements."""
    row = _columns(result, _ELSEWHERE)
    row |= {name: pack.pack_floats(getattr(result, name)) for name in _TRACES}
    return row | {name: pack.json_text(getattr(result, name)) for name in _LISTS}


def job_columns(results: Sequence[JobResult]) -> dict[str, Sequence[Any]]:
    """The same of many, of each in its place."""
    made = columns(results, _ELSEWHERE)
    made |= {name: [pack.pack_floats(getattr(one, name)) for one in results] for name in _TRACES}
    return made | {name: [pack.json_text(getattr(one, name)) for one in results] for name in _LISTS}


def job(row: Row, environment: Environment | None, measurements: tuple[Measurement, ...]) -> JobResult:
    """From a row of `job_attempt` joined with suite, case and device class."""
    fields = {field.name: field.type for field in msgspec.structs.fields(JobResult)}
    given = {name: pack.unpack_floats(row[name]) for name in _TRACES}
    given |= {name: _decoded(row[name], fields[name]) for name in _LISTS}
    return _struct(JobResult, row, environment=environment, measurements=measurements, **given)


def measurement_row(measured: Measurement, ordinal: int) -> dict[str, Any]:
    """One measurement, without its samples; `ordinal` keeps the order in the job."""
    return _columns(measured, {"samples_s", "blocks", "resources"}) | {"ordinal": ordinal}


def sample_row(measured: Measurement) -> dict[str, Any] | None:
    """The raw samples of one measurement; None where there are none."""
    if not measured.samples_s and not measured.blocks:
        return None
    return {
        "side": measured.side,
        "variant": measured.variant,
        "encoding": pack.FLOAT64_ZLIB,
        "samples_s": pack.pack_floats(measured.samples_s),
        "blocks": pack.pack_ints(measured.blocks),
    }


def measurement(row: Row, used: Resources) -> Measurement:
    """From a row of `measurement` joined with its samples, which may be absent."""
    packed = row["samples_s"] is not None
    return _struct(
        Measurement,
        row,
        samples_s=pack.unpack_floats(row["samples_s"]) if packed else (),
        blocks=pack.unpack_ints(row["blocks"]) if packed else (),
        resources=used,
    )

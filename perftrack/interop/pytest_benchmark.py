"""pytest-benchmark's JSON (`--benchmark-json`, `--benchmark-save`), of 2.5 to 5.3: one session a file.

Later versions add fields: raw times (`stats.data`) and `params` with 3.0, `ops` with 3.1, the CPU of the machine,
project, branch and time of the commit with 3.1 and 3.2. The order of the fields is not fixed.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from perftrack.interop import fields, machines
from perftrack.interop.document import Document, Hints
from perftrack.interop.scan import Member
from perftrack.interop.source import fingerprint
from perftrack.interop.value import BadRecordError, Notes, Origin, Reading, Session
from perftrack.model import Environment, Method

_RECORDS = ("benchmarks",)
_DEVICE = "machine"


def sessions(path: Path, notes: Notes, hints: Hints) -> Iterator[Session]:
    """The one session of the file."""
    document = Document(path, notes, _RECORDS)
    rest, first = document.rest_and_first()
    machine = fields.member(rest, "machine_info")
    cpu = fields.member(machine, "cpu")
    model = fields.text(cpu, "brand_raw") or fields.text(cpu, "brand")
    cores = fields.count(cpu.get("count"), 0)
    node = fields.text(machine, "node")
    device = machines.cpu(node, model, cores)
    methods = {one.name: one for one in (_method(first),)}
    yield Session(
        format="pytest-benchmark",
        identity=fingerprint(path, "pytest-benchmark"),
        origin=_origin(rest, machine),
        devices={_DEVICE: machines.named(hints.device) if hints.device and not (model or node) else device},
        methods=methods,
        readings=lambda: document.readings(lambda record, member: _readings(document, record, member, hints, methods)),
    )


def _origin(rest: Mapping[str, Any], machine: Mapping[str, Any]) -> Origin:
    commit = fields.member(rest, "commit_info")
    branch = fields.text(commit, "branch")
    return Origin(
        repo=fields.text(commit, "project"),
        commit=fields.commit(commit.get("id")),
        dirty=commit.get("dirty") is True,
        branch=branch if branch and not branch.startswith("(") else None,
        committed_us=fields.instant(commit.get("time")),
        measured_us=fields.instant(rest.get("datetime")),
        environment=_environment(rest, machine),
    )


def _environment(rest: Mapping[str, Any], machine: Mapping[str, Any]) -> Environment:
    names = {
        "python": "python_version",
        "implementation": "python_implementation",
        "compiler": "python_compiler",
        "system": "system",
        "kernel": "release",
        "architecture": "machine",
    }
    found = {name: fields.text(machine, key) for name, key in names.items()}
    found["pytest-benchmark"] = fields.text(rest, "version")
    return Environment(entries={name: fields.spelled(value) for name, value in found.items() if value})


def _method(record: Any) -> Method:
    """By the timer that the options name (`perf_counter`, `process_time` …): each is a clock of its own."""
    options = fields.member(record, "options") if isinstance(record, dict) else {}
    timer = fields.text(options, "timer")
    return machines.host_clock(f"pytest-benchmark {fields.spelled(timer)}".strip())


def _readings(
    document: Document, record: Any, member: Member, hints: Hints, methods: dict[str, Method]
) -> Iterable[Reading]:
    row = fields.table(record, "the record")
    stats = fields.table(row.get("stats"), "`stats`")
    file, separator, case = fields.name(row, "fullname" if "fullname" in row else "name").partition("::")
    if not case and separator:
        raise BadRecordError(f"`fullname` is {fields.shown(row.get('fullname'))}, which names no test")
    if not separator:
        file, case = hints.suite or "pytest-benchmark", file
    method = _method(row)
    methods.setdefault(method.name, method)
    found = "median" if "median" in stats else "mean"
    if found not in stats:
        raise BadRecordError("`stats` has neither `median` nor `mean`")
    with document.part(member, case):
        yield Reading(
            suite=file,
            case=case,
            variant="time",
            device=_DEVICE,
            method=method.name,
            record=member.number,
            params=fields.scalars(fields.member(row, "params")),
            time_s=fields.seconds(stats[found], f"`stats.{found}`"),
            samples_s=fields.times(stats.get("data")),
            count=fields.count(stats.get("rounds")),
            calls_per_sample=fields.count(stats.get("iterations"), 0),
        )

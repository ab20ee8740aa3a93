"""NVBench's JSON (`--json`, `--jsonbin`), file versions 1.x and those without a version before it.

Since 1.0 collections are lists of objects with a name; before that they were objects by name, and numbers were
numbers. One session a file, on as many devices as it lists. A file names no commit of the measured code.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from sys import byteorder
from typing import Any, NamedTuple

from perftrack.errors import UsageError
from perftrack.interop import fields, machines
from perftrack.interop.document import Document, Hints
from perftrack.interop.scan import Member
from perftrack.interop.source import fingerprint
from perftrack.interop.value import BadRecordError, Notes, Origin, Reading, Session
from perftrack.model import Device, Environment, Scalar, Status

_RECORDS = ("benchmarks", "*", "states")
_HOST = "host"
_MAX_SAMPLES_BYTES = 16 * 2**20


class _Clock(NamedTuple):
    """One kind of time: the tags of its statistics, the best first, and of its count and raw times."""

    variant: str
    tags: tuple[str, ...]
    size: str
    raw: str = ""
    host: bool = False


_CLOCKS = (
    _Clock(
        "gpu",
        ("nv/cold/time/gpu/median", "nv/cold/time/gpu/mean", "Average GPU Time (Cold)"),
        "nv/cold/sample_size",
        "nv/json/bin:nv/cold/sample_times",
    ),
    _Clock("batch", ("nv/batch/time/gpu/mean", "Average GPU Time (Batch)"), "nv/batch/sample_size"),
    _Clock(
        "cpu",
        ("nv/cold/time/cpu/median", "nv/cold/time/cpu/mean", "Average CPU Time (Cold)"),
        "nv/cold/sample_size",
        host=True,
    ),
    _Clock(
        "cpu_only",
        ("nv/cpu_only/time/cpu/median", "nv/cpu_only/time/cpu/mean"),
        "nv/cpu_only/sample_size",
        "nv/json/bin:nv/cpu_only/sample_times",
        host=True,
    ),
)
_METHODS = {
    f"{clock.variant} {statistic}": machines.host_clock(f"nvbench {clock.variant} {statistic}")
    if clock.host
    else machines.event_clock(f"nvbench {clock.variant} {statistic}", cold=clock.variant == "gpu")
    for clock in _CLOCKS
    for statistic in ("median", "mean")
}


def sessions(path: Path, notes: Notes, hints: Hints) -> Iterator[Session]:
    """The one session of the file; UsageError for a file version that perftrack does not know."""
    document = Document(path, notes, _RECORDS)
    rest = document.rest()
    meta = fields.member(rest, "meta")
    version = fields.member(meta, "version")
    major = fields.member(version, "json").get("major", 0)
    if major not in (0, 1):
        raise UsageError(f"{path} has version {major} of NVBench's JSON; perftrack reads version 1 and older")
    argv = meta.get("argv")
    program = Path(str(argv[0])).name if isinstance(argv, list) and argv else ""
    benchmarks = _listed(rest.get("benchmarks"))
    devices = _devices(rest)
    suite = fields.spelled(program or hints.suite or "nvbench")
    yield Session(
        format="nvbench",
        identity=fingerprint(path, "nvbench"),
        origin=Origin(
            measured_us=path.stat().st_mtime_ns // 1000,
            environment=Environment(
                entries=fields.scalars({"nvbench": fields.member(version, "nvbench").get("string")})
            ),
        ),
        devices=devices,
        methods=_METHODS,
        readings=lambda: document.readings(
            lambda record, member: _State(document, suite, benchmarks, devices, member).readings(record)
        ),
    )


def _listed(value: Any) -> list[Any]:
    """Members of a list, or of an object of an old version."""
    return value if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else []


def _devices(rest: Mapping[str, Any]) -> dict[str, Device]:
    found = {_HOST: machines.cpu("", "", None)}
    for row in _listed(rest.get("devices")):
        if not isinstance(row, dict) or not isinstance(row.get("id"), int):
            continue
        version = fields.count(row.get("sm_version"), 0)
        found[str(row["id"])] = machines.gpu(
            fields.spelled(fields.text(row, "name") or "GPU"),
            row["id"],
            memory_bytes=_whole(row.get("global_memory_size")),
            compute_capability=f"{version // 100}.{version % 100 // 10}" if version else "",
            multiprocessors=fields.count(row.get("number_of_sms"), 0),
            l2_bytes=_whole(row.get("l2_cache_size")),
            peak_bytes_per_s=float(_whole(row.get("global_memory_bus_bandwidth"))) or None,
        )
    return found


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**62 else 0


class _State:
    """One state: a benchmark at one point of its axes on one device."""

    def __init__(
        self, document: Document, suite: str, benchmarks: list[Any], devices: Mapping[str, Device], member: Member
    ) -> None:
        self._document = document
        self._suite = suite
        self._benchmarks = benchmarks
        self._devices = devices
        self._member = member

    def readings(self, record: Any) -> Iterable[Reading]:
        row = fields.table(record, "the state")
        values = _named_values(row.get("axis_values"))
        device = _HOST if row.get("device") is None else str(row["device"])
        if device not in self._devices:
            raise BadRecordError(f"`device` is {fields.shown(row['device'])}, which the file's `devices` do not list")
        common: dict[str, Any] = {
            "suite": self._suite,
            "case": self._case(values),
            "device": device,
            "record": self._member.number,
            "params": fields.scalars(values),
        }
        if row.get("is_skipped") in (True, 1):
            reason = fields.text(row, "skip_reason")
            yield Reading(variant="gpu", method="gpu mean", status=Status.SKIPPED, message=reason, **common)
            return
        summaries = _summaries(row.get("summaries"))
        tags = [next((tag for tag in clock.tags if tag in summaries), "") for clock in _CLOCKS]
        if not any(tags):
            raise BadRecordError("its `summaries` hold no time that is known (`nv/cold/time/gpu/mean` …)")
        for clock, tag in zip(_CLOCKS, tags, strict=True):
            if tag:
                with self._document.part(self._member, common["case"]):
                    yield self._reading(clock, tag, summaries, common)

    def _case(self, values: Mapping[str, Any]) -> str:
        at = self._member.path[1]
        index = at if isinstance(at, int) else -1
        benchmark = self._benchmarks[index] if 0 <= index < len(self._benchmarks) else None
        name = fields.text(benchmark, "name") if isinstance(benchmark, dict) else ""
        if not name:
            raise BadRecordError(f"benchmark {fields.shown(at)} has no `name`")
        axes = ",".join(f"{axis}={_plain(value)}" for axis, value in sorted(values.items()))
        return fields.spelled(f"{name}[{axes}]" if axes else name)

    def _reading(
        self, clock: _Clock, tag: str, summaries: Mapping[str, Mapping[str, Any]], common: Mapping[str, Any]
    ) -> Reading:
        statistic = "median" if tag.endswith("/median") else "mean"
        samples = self._samples(summaries.get(clock.raw, {}))
        size = _number(summaries.get(clock.size, {}).get("value"))
        return Reading(
            variant=clock.variant,
            method=f"{clock.variant} {statistic}",
            time_s=fields.seconds(_number(summaries[tag].get("value")), f"`{tag}`"),
            samples_s=samples,
            count=fields.count(size, len(samples) or 1),
            **common,
        )

    def _samples(self, summary: Mapping[str, Any]) -> tuple[float, ...]:
        """Raw times of a file beside this one: float32, little-endian. Nothing where it is not there, or elsewhere."""
        name = summary.get("filename")
        if not isinstance(name, str):
            return ()
        folder = self._document.path.parent.resolve()
        relative = Path(name.replace("\\", "/"))
        # older versions wrote it relative to where they ran
        for place in (folder / relative, folder / relative.parent.name / relative.name):
            data = _file_below(folder, place)
            if data is not None:
                found = array("f", data[: len(data) // 4 * 4])
                if byteorder == "big":
                    found.byteswap()
                return fields.times(list(found))
        return ()


def _file_below(folder: Path, place: Path) -> bytes | None:
    """Content of a file; None where it is not there, outside of `folder` or too large."""
    try:
        file = place.resolve()
        if file.is_relative_to(folder) and file.is_file() and file.stat().st_size <= _MAX_SAMPLES_BYTES:
            return file.read_bytes()
    except (OSError, ValueError):
        pass
    return None


def _plain(value: Scalar) -> str:
    return value if isinstance(value, str) else repr(value)


def _number(value: Any) -> Any:
    """Numbers are texts since 1.0, so that a JSON reader does not round them."""
    if isinstance(value, str):
        try:
            return int(value) if value.lstrip("-").isdigit() else float(value)
        except ValueError:
            return value
    return value


def _named_values(value: Any) -> dict[str, Any]:
    """Name → value, of a list of `{name, type, value}` or of an object by name."""
    found: dict[str, Any] = {}
    if isinstance(value, list):
        for row in value:
            if isinstance(row, dict) and isinstance(row.get("name"), str):
                found[row["name"]] = _typed(row)
    elif isinstance(value, dict):
        found |= {name: _typed(row) if isinstance(row, dict) else row for name, row in value.items()}
    return found


def _typed(row: Mapping[str, Any]) -> Any:
    return _number(row.get("value")) if row.get("type") in ("int64", "float64") else row.get("value")


def _summaries(value: Any) -> dict[str, dict[str, Any]]:
    """Tag → values of that summary, in any version."""
    rows: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        rows = list(value.items())
    elif isinstance(value, list):
        rows = [(row.get("tag") or row.get("name"), row) for row in value if isinstance(row, dict)]
    found: dict[str, dict[str, Any]] = {}
    for tag, row in rows:
        if isinstance(tag, str) and isinstance(row, dict):
            found[tag] = _named_values(row.get("data", row.get("values", row)))
    return found

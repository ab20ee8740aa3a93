"""What goes into the store: runs, attempts with their samples, and the answers drawn from them.

Every function here is harmless to repeat. An attempt is never overwritten; summaries and findings are drawn
from the attempts, so finishing a run again replaces them, whole, and with them what they said of regressions.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

import msgspec
import sqlalchemy as sa

from perftrack.errors import StoreError, UsageError
from perftrack.judge.value import Finding, Summary
from perftrack.model import Case, Device, JobResult, Method, Run, RunOptions, Traffic
from perftrack.store import pack, rows
from perftrack.store.dimensions import Dimensions, SeriesKey
from perftrack.store.door import Door
from perftrack.store.inserting import insert, insert_statement
from perftrack.store.result_rows import Answer, ResultRows, result_rows
from perftrack.store.schema import (
    declaration,
    device,
    environment,
    finding,
    job_attempt,
    measurement,
    result,
    result_extra,
    run,
    run_side,
    sample,
    sighting,
)

_IDENTITY = ("run_id", "case_id", "device_class_id", "round", "attempt")
_FIXED = ("head_id", "base_id", "started_us")
"""Columns of a run in which a second write must agree, beside its options; state and problems may have moved on."""


class StoredHeader(msgspec.Struct, frozen=True):
    """What writing needs to know of a run."""

    id: int
    head_id: int
    base_id: int | None
    options: RunOptions


class Writer:
    """Writes through a door; remembers row numbers."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self.dimensions = Dimensions(door)
        self._headers: dict[str, StoredHeader] = {}

    def begin_run(self, new: Run) -> bool:
        """Store a run; False where it is stored already. StoreError where another one has its uid."""
        pack.refuse_unstorable(new, f"run {new.uid}")
        row = rows.run_row(new) | {
            "head_id": self.dimensions.revision(new.repo, new.head),
            "base_id": self.dimensions.revision(new.repo, new.base) if new.base else None,
        }

        def work(connection: sa.Connection) -> bool:
            statement = insert_statement(connection, run, row, "ON CONFLICT DO NOTHING RETURNING id")
            if connection.exec_driver_sql(statement, tuple(row.values())).scalar() is not None:
                return True
            stored = connection.execute(sa.select(run).where(run.c.uid == new.uid)).mappings().one()
            differing = [name for name in _FIXED if stored[name] != row[name]]
            # their text has further fields since an older version wrote it; what they say counts
            if msgspec.json.decode(stored["options"], type=RunOptions) != new.options:
                differing.append("options")
            if differing:
                raise StoreError(
                    f"run {new.uid} is stored already with another {differing[0]}; a new run needs a new uid"
                )
            return False

        return self._door.write(work)

    def declare(self, cases: Collection[Case]) -> None:
        """Store what a tree says of cases before their jobs: together that is two transactions, with each job two."""
        for case in cases:
            pack.refuse_unstorable(case, f"{case.suite} {case.key}: case")
        self.dimensions.declarations(list(cases))

    def add_job(self, run_uid: str, case: Case, attempt: JobResult, card: Device) -> bool:
        """Store one attempt, whole, in one transaction; False where the same is stored already."""
        title = refuse_unfit(case, attempt, card)
        row = self._job_row(run_uid, case, attempt, card)
        used = self.dimensions.resources(one.resources for one in attempt.measurements)
        measured = [
            {**rows.measurement_row(one, ordinal), "resources_id": used[one.resources]}
            for ordinal, one in enumerate(attempt.measurements)
        ]
        samples = [packed for one in attempt.measurements if (packed := rows.sample_row(one))]

        def work(connection: sa.Connection) -> bool:
            statement = insert_statement(connection, job_attempt, row, "ON CONFLICT DO NOTHING RETURNING id")
            number = connection.exec_driver_sql(statement, tuple(row.values())).scalar()
            if number is None:
                _refuse_conflict(connection, row, f"{title}, attempt {attempt.attempt} of run {run_uid}")
                return False
            insert(connection, measurement, [{"job_attempt_id": number, **each} for each in measured])
            insert(connection, sample, [{"job_attempt_id": number, **each} for each in samples])
            return True

        return self._door.write(work)

    def _job_row(self, run_uid: str, case: Case, attempt: JobResult, card: Device) -> dict[str, Any]:
        header = self.header(run_uid)
        ((case_id, declaration_id),) = self.dimensions.declarations([case])
        device_class_id, device_id = self.dimensions.device(card)
        return rows.job_row(attempt) | {
            "run_id": header.id,
            "case_id": case_id,
            "device_class_id": device_class_id,
            "declaration_id": declaration_id,
            "device_id": device_id,
            "environment_id": self.dimensions.environment(attempt.environment),
            "method_id": self.dimensions.method(header.options.methods.get(case.backend, Method()).of(case)),
            "payload_digest": payload_digest(attempt),
        }

    def finish_run(
        self,
        run_uid: str,
        *,
        state: Literal["running", "complete", "interrupted"],
        finished_us: int,
        summaries: Sequence[Summary],
        findings: Sequence[Finding],
        problems: Sequence[str] | None = None,
    ) -> None:
        """Store the answers of a run and how it ended, replacing what an earlier end of it left."""
        header = self.header(run_uid)
        pack.refuse_unstorable(summaries, f"run {run_uid}: summaries")
        pack.refuse_unstorable(findings, f"run {run_uid}: findings")
        answered = [*summaries, *findings]
        cases = self.dimensions.cases((one.suite, one.case_key) for one in answered)
        classes = self.dimensions.device_classes(one.device_class for one in answered)
        found = [
            {
                "run_id": header.id,
                "case_id": cases[one.suite, one.case_key],
                "device_class_id": classes[one.device_class],
                **rows.finding_row(one),
                "variant": one.variant,
            }
            for one in findings
        ]
        found.sort(key=lambda row: (row["case_id"], row["device_class_id"], row["variant"]))
        results = self._results(header, summaries, cases, classes)
        change: dict[str, Any] = {"state": state, "finished_us": finished_us}
        if problems is not None:
            change["problems"] = pack.json_text(list(problems))

        def work(connection: sa.Connection) -> None:
            mine = result.c.run_side_id.in_(sa.select(run_side.c.id).where(run_side.c.run_id == header.id))
            keys = sa.select(result.c.series_id, result.c.run_side_id).where(mine)
            extra = sa.tuple_(result_extra.c.series_id, result_extra.c.run_side_id)
            connection.execute(sa.delete(result_extra).where(extra.in_(keys)))
            connection.execute(sa.delete(result).where(mine))
            connection.execute(sa.delete(finding).where(finding.c.run_id == header.id))
            connection.execute(sa.delete(sighting).where(sighting.c.run_id == header.id))
            results.insert(connection)
            insert(connection, finding, found)
            connection.execute(sa.update(run).where(run.c.id == header.id).values(change))

        self._door.write(work)

    def _results(
        self,
        header: StoredHeader,
        summaries: Sequence[Summary],
        cases: Mapping[tuple[str, str], int],
        classes: Mapping[str, int],
    ) -> ResultRows:
        measured = self._door.read(lambda connection: _measured(connection, header.id))
        answers: list[Answer] = []
        for one in summaries:
            case_id, class_id = cases[one.suite, one.case_key], classes[one.device_class]
            job = _known(measured.jobs, (case_id, class_id), f"job of {_title(one)}")
            device_id, peak = _known(measured.devices, one.device_uuid, f"device of {_title(one)}") or (None, None)
            answers.append(
                Answer(
                    summary=one,
                    series=SeriesKey(case_id, class_id, one.variant, job.baseline, job.method_id),
                    revision_id=_revision_of(one, header),
                    declaration_id=job.declaration_id,
                    device_id=device_id,
                    environment_id=_known(
                        measured.environments, one.environment_digest, f"environment of {_title(one)}"
                    ),
                    traffic=job.traffic,
                    peak_bytes_per_s=peak,
                )
            )
        return result_rows(self.dimensions, header.id, answers)

    def header(self, run_uid: str) -> StoredHeader:
        """What is stored of the run itself; UsageError where it is unknown."""
        if run_uid not in self._headers:
            columns = (run.c.id, run.c.head_id, run.c.base_id, run.c.options)
            question = sa.select(*columns).where(run.c.uid == run_uid)
            row = self._door.read(lambda connection: connection.execute(question).first())
            if row is None:
                raise UsageError(f"{self._door.address.label} has no run {run_uid}")
            options = msgspec.json.decode(row.options, type=RunOptions)
            self._headers[run_uid] = StoredHeader(row.id, row.head_id, row.base_id, options)
        return self._headers[run_uid]


def refuse_unfit(case: Case, attempt: JobResult, card: Device) -> str:
    """StoreError where they do not belong together, or hold what cannot be stored; else what to call the job."""
    title = f"{attempt.suite} {attempt.case_key} on {attempt.device_class}, round {attempt.round}"
    _refuse_mismatch(title, case, attempt, card)
    for name, value in (("case", case), ("result", attempt), ("device", card)):
        pack.refuse_unstorable(value, f"{title}: {name}")
    return title


def _refuse_mismatch(title: str, case: Case, attempt: JobResult, card: Device) -> None:
    pairs = (
        ("suite", attempt.suite, case.suite),
        ("case", attempt.case_key, case.key),
        ("device class", attempt.device_class, card.device_class),
        ("device", attempt.device_uuid or card.uuid, card.uuid),
    )
    for name, got, expected in pairs:
        if got != expected:
            raise StoreError(f"{title}: the result is of {name} {got!r}, but {expected!r} was given with it")


_NOT_KNOWN = (b'"build_s":null,', b'"clock_mhz":null,')
"""Fields that attempts did not have at first. No text can hold these bytes, since a quote in it is escaped."""


def payload_digest(attempt: JobResult) -> str:
    """SHA-256 (hex) of an attempt.

    Without what is not known of newer fields, so that an attempt stored before there were any stays the same.
    """
    text = msgspec.json.encode(attempt, order="sorted", enc_hook=float)  # NumPy's float64, as the number it is
    for field in _NOT_KNOWN:
        text = text.replace(field, b"")
    return hashlib.sha256(text).hexdigest()


def _refuse_conflict(connection: sa.Connection, row: Mapping[str, Any], title: str) -> None:
    same_key = [job_attempt.c[name] == row[name] for name in _IDENTITY]
    stored = connection.execute(sa.select(job_attempt.c.payload_digest).where(*same_key)).scalar_one()
    if stored != row["payload_digest"]:
        raise StoreError(f"{title} is stored already with other content; a new measurement needs a new attempt")


class _Job(msgspec.Struct, frozen=True):
    declaration_id: int
    baseline: str
    traffic: Traffic
    method_id: int


class _Measured(msgspec.Struct, frozen=True):
    """What a run's attempts refer to; of several declarations the newest."""

    jobs: dict[tuple[int, int], _Job] = {}
    """By case and device class."""
    devices: dict[str, tuple[int, float | None]] = {}
    """Number and bandwidth of the datasheet, by UUID."""
    environments: dict[str, int] = {}
    """By digest."""


def _measured(connection: sa.Connection, run_id: int) -> _Measured:
    question = (
        sa.select(
            job_attempt.c.case_id,
            job_attempt.c.device_class_id,
            job_attempt.c.declaration_id,
            declaration.c.baseline,
            declaration.c.traffic,
            job_attempt.c.method_id,
            device.c.uuid,
            device.c.peak_bytes_per_s,
            job_attempt.c.device_id,
            environment.c.digest,
            job_attempt.c.environment_id,
        )
        .join_from(job_attempt, declaration, job_attempt.c.declaration_id == declaration.c.id)
        .join(device, job_attempt.c.device_id == device.c.id)
        .join(environment, job_attempt.c.environment_id == environment.c.id, isouter=True)
        .where(job_attempt.c.run_id == run_id)
        .order_by(job_attempt.c.id)
    )
    found = _Measured()
    for row in connection.execute(question):
        traffic = msgspec.json.decode(row.traffic, type=Traffic)
        found.jobs[row.case_id, row.device_class_id] = _Job(row.declaration_id, row.baseline, traffic, row.method_id)
        found.devices[row.uuid] = (row.device_id, row.peak_bytes_per_s)
        if row.digest is not None:
            found.environments[row.digest] = row.environment_id
    return found


def _revision_of(summary: Summary, header: StoredHeader) -> int:
    number = header.head_id if summary.side == "head" else header.base_id
    if number is None:
        raise StoreError(f"a summary of {_title(summary)} is of the base, but the run has none")
    return number


def _title(summary: Summary) -> str:
    return f"{summary.suite} {summary.case_key} on {summary.device_class}"


def _known(table: Mapping[Any, Any], key: Any, what: str) -> Any:
    """None for an empty key."""
    if not key:
        return None
    if key not in table:
        raise StoreError(f"the {what} was not stored before its summary")
    return table[key]

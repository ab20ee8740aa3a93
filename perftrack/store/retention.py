"""Raw samples expire: what stays of them is their number, median and tenths, beside the measurement.

Results, findings, regressions and attempts never expire. Only samples of complete runs do: an interrupted one may be
finished yet, and is judged from them.
"""

from collections.abc import Iterator, Mapping

import msgspec
import sqlalchemy as sa

from perftrack import stats
from perftrack.judge.rounds import read_round
from perftrack.model import JobResult
from perftrack.store import attempts, engine
from perftrack.store.door import Door
from perftrack.store.schema import device_class, job_attempt, kernel_case, measurement, run, sample, suite

_AT_ONCE = 200
"""Attempts in one transaction, so that other writers need not wait long."""

_BYTES = sa.func.length(sample.c.samples_s) + sa.func.length(sample.c.blocks)


class Expiry(msgspec.Struct, frozen=True, kw_only=True):
    """What expires, or would."""

    runs: int
    samples: int
    """Measurements that have raw samples."""
    bytes: int
    """Of the packed samples."""
    unfinished: int
    """Runs as old as these that keep theirs, since they were never completed."""


def plan(connection: sa.Connection, before_us: int) -> Expiry:
    """What expires of the runs that started before an instant."""
    counts = (
        sa.select(sa.func.count(run.c.id.distinct()), sa.func.count(), sa.func.coalesce(sa.func.sum(_BYTES), 0))
        .join_from(sample, job_attempt, sample.c.job_attempt_id == job_attempt.c.id)
        .join(run, job_attempt.c.run_id == run.c.id)
        .where(run.c.started_us < before_us)
    )
    runs, samples, size = connection.execute(counts.where(run.c.state == "complete")).one()
    unfinished = connection.execute(counts.where(run.c.state != "complete")).one()[0]
    return Expiry(runs=runs, samples=samples, bytes=int(size), unfinished=unfinished)


def expire(door: Door, before_us: int) -> Expiry:
    """Replace the samples of complete runs that started before an instant; again after an interruption, it goes on."""
    expected = door.read(lambda connection: plan(connection, before_us))
    with_samples = (
        sa.select(run.c.id)
        .where(run.c.started_us < before_us, run.c.state == "complete")
        .where(sa.exists().where(job_attempt.c.run_id == run.c.id, job_attempt.c.id == sample.c.job_attempt_id))
        .order_by(run.c.id)
    )
    for number in door.read(lambda connection: list(connection.scalars(with_samples))):
        _expire_run(door, number)
    if door.address.path is not None:
        door.write(engine.give_pages_back)
    return expected


def _expire_run(door: Door, number: int) -> None:
    whole = door.read(lambda connection: list(_numbered(connection, number)))
    for start in range(0, len(whole), _AT_ONCE):
        some = whole[start : start + _AT_ONCE]

        def work(connection: sa.Connection, some: list[tuple[int, JobResult]] = some) -> None:
            kept = [row for attempt, result in some for row in _kept(attempt, result)]
            if kept:
                key = [measurement.c[name] == sa.bindparam(f"of_{name}") for name in ("side", "variant")]
                change = sa.update(measurement).where(measurement.c.job_attempt_id == sa.bindparam("of_attempt"), *key)
                connection.execute(change, kept)
            connection.execute(sa.delete(sample).where(sample.c.job_attempt_id.in_([attempt for attempt, _ in some])))

        door.write(work)


def _numbered(connection: sa.Connection, run_id: int) -> Iterator[tuple[int, JobResult]]:
    """The attempts of a run that have samples, each with its row."""
    question = sa.select(sample.c.job_attempt_id).join(job_attempt, sample.c.job_attempt_id == job_attempt.c.id)
    there = set(connection.scalars(question.where(job_attempt.c.run_id == run_id).distinct()))
    for number, result, _ in attempts.numbered(connection, run_id):
        if number in there:
            yield number, result


def _kept(attempt: int, result: JobResult) -> Iterator[dict[str, float | int | str | None]]:
    """Quantiles of the good blocks; of what cannot be judged only the number of samples."""
    seen, bad = read_round(result), set(result.bad_blocks)
    for one in result.measurements:
        if not one.samples_s:
            continue
        time_s = seen.time_s(one.side, one.variant)
        good = sorted(s for block, s in zip(one.blocks, one.samples_s, strict=True) if block not in bad and s > 0)
        yield {
            "of_attempt": attempt,
            "of_side": one.side,
            "of_variant": one.variant,
            "time_s": time_s,
            "q10_s": stats.quantile(good, 0.1) if time_s is not None else None,
            "q90_s": stats.quantile(good, 0.9) if time_s is not None else None,
            "samples": len(one.samples_s),
        }


Kept = Mapping[tuple[str | int, ...], tuple[float | None, int]]
"""Suite, case key, device class, round, attempt, side and variant → median (seconds) and number of samples."""


def kept(connection: sa.Connection, run_id: int) -> Kept:
    """What is left of a run's samples that have expired."""
    question = (
        sa.select(
            suite.c.name,
            kernel_case.c.key,
            device_class.c.name,
            *(job_attempt.c.round, job_attempt.c.attempt, measurement.c.side, measurement.c.variant),
            *(measurement.c.time_s, measurement.c.samples),
        )
        .join_from(measurement, job_attempt, measurement.c.job_attempt_id == job_attempt.c.id)
        .join(kernel_case, job_attempt.c.case_id == kernel_case.c.id)
        .join(suite, kernel_case.c.suite_id == suite.c.id)
        .join(device_class, job_attempt.c.device_class_id == device_class.c.id)
        .where(job_attempt.c.run_id == run_id, measurement.c.samples.is_not(None))
    )
    return {tuple(key): (time_s, count) for *key, time_s, count in connection.execute(question)}

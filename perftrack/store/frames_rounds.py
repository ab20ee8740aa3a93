"""Rows of the frame `rounds`: one attempt at one job, measurement by measurement."""

from collections.abc import Iterator
from typing import Any

from perftrack import stats
from perftrack.judge.rounds import read_round
from perftrack.model import JobResult, Measurement
from perftrack.store.retention import Kept


def rows(run_uid: str, attempt: JobResult, kept: Kept, *, counts: bool) -> Iterator[tuple[Any, ...]]:
    """In the store's units and the order of the columns; `kept` is what samples left behind that have expired."""
    seen = read_round(attempt)
    clock = stats.median(list(attempt.clock_mhz)) if attempt.clock_mhz else None
    job = (
        run_uid,
        attempt.suite,
        attempt.case_key,
        attempt.device_class,
        attempt.device_uuid,
        attempt.round,
        attempt.attempt,
        counts,
        attempt.status.value,
        attempt.message,
    )
    state = (
        seen.canary_s(),
        attempt.ceiling_bytes_per_s,
        clock,
        len(attempt.bad_blocks),
        len(attempt.canary_s),
        ",".join(attempt.throttle_reasons),
        attempt.started_us,
        attempt.wall_s,
        attempt.timed_s,
    )
    for one in attempt.measurements:
        left = kept.get((*job[1:4], attempt.round, attempt.attempt, one.side, one.variant))
        time_s, samples = left or (seen.time_s(one.side, one.variant), len(one.samples_s))
        yield (*job, *_measured(one, time_s, samples), *state, one.clock_mhz, one.build_s)
    if not attempt.measurements:
        yield (*job, None, None, attempt.status.value, attempt.message, None, 0, None, None, *state, None, None)


def _measured(one: Measurement, time_s: float | None, samples: int) -> tuple[Any, ...]:
    return (
        one.side,
        one.variant,
        one.status.value,
        one.message,
        time_s,
        samples,
        one.mode or None,
        one.host_s,
    )

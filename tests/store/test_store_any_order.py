"""Whatever the order in which writes arrive, and however often, the store says the same.

Answers follow from jobs: they are refused before those, change nothing then, and may be given again.
"""

import itertools
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from typing import Any

import msgspec
import pandas as pd
import pytest
import store_builders as build
from hypothesis import given, settings
from hypothesis import strategies as st

from perftrack.errors import StoreError
from perftrack.model import Run
from perftrack.store import Store
from perftrack.store.frames import Database

NUMBERS = itertools.count(1)
"""Of runs: the examples of a property share a database."""

Write = Callable[[Store], Any]


def _writes(run: Run) -> list[Write]:
    """Two cases in two rounds on two devices, one of which failed at first, and the answers."""
    cases = [build.case(), build.case("mul[n=1]")]
    jobs = [
        build.job(case_key=case.key, round=number, device_uuid=f"CPU-{number}", seed=10 * number + place)
        for place, case in enumerate(cases)
        for number in (1, 2)
    ]
    jobs[-1] = msgspec.structs.replace(jobs[-1], attempt=2)
    jobs.append(build.failed(case_key=cases[1].key, round=2))
    of = {case.key: case for case in cases}

    def add(job: Any) -> Write:
        return lambda store: store.add_job(run.uid, of[job.case_key], job, build.device(job.round))

    def finish(store: Store) -> None:
        summaries = [build.summary(side, case_key=case.key) for side in ("head", "base") for case in cases]
        findings = [build.finding(), build.finding(case_key=cases[1].key, verdict="same", cause="")]
        store.finish_run(
            run.uid, state="complete", finished_us=9, summaries=summaries, findings=findings, problems=("late",)
        )

    return [*map(add, jobs), finish]


def _said(store: Store, uid: str) -> list[Any]:
    """All that can be asked of a run, but for its name."""
    stored = store.load_run(uid)
    attempts = sorted(store.attempts(uid), key=lambda one: (one[0].case_key, one[0].round, one[0].attempt))
    counting = sorted(store.jobs(uid), key=lambda one: (one.case_key, one.round))
    run = msgspec.structs.replace(stored.run, uid="")
    return [
        *(run, sorted(stored.cases, key=lambda one: one.key), sorted(stored.devices, key=lambda one: one.uuid)),
        *(stored.summaries, stored.findings, attempts, counting),
        *(store.done_jobs(uid), store.last_attempts(uid), store.busy(uid)),
    ]


def _rows(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    kept = frame.drop(columns=[name for name in ("run", "run_id") if name in frame])
    return sorted(kept.astype(object).fillna("").itertuples(index=False, name=None), key=repr)


def _written(store: Store, order: Sequence[int]) -> list[Any]:
    """What is said of a run whose writes were made in an order."""
    run = build.run(next(NUMBERS), started_us=1_700_000_100_000_000)
    writes = _writes(run)
    for number in order:
        store.begin_run(run)  # as each process does that has something to store of it
        with suppress(StoreError) if number == COUNT - 1 else nullcontext():
            writes[number](store)
    writes[-1](store)
    database = Database(store)
    return [*_said(store, run.uid), _rows(database.results(run=run.uid)), _rows(database.rounds(run=run.uid))]


COUNT = len(_writes(build.run()))


@pytest.fixture(scope="module")
def in_order(shared_store: Store) -> list[Any]:
    return _written(shared_store, range(COUNT))


@settings(max_examples=15, deadline=None)
@given(order=st.permutations(range(COUNT)), again=st.lists(st.integers(0, COUNT - 1), max_size=6))
def test_any_order_and_repetition_of_writes_says_the_same(
    shared_store: Store, in_order: list[Any], order: list[int], again: list[int]
) -> None:
    for one, other in zip(_written(shared_store, [*order, *again]), in_order, strict=True):
        assert one == other

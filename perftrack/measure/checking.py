"""Checking candidates against their reference: before anything is timed, and once more after."""

import time
from collections.abc import Callable
from typing import Any

from perftrack.measure.candidate import Candidate
from perftrack.measure.inputs import fingerprint
from perftrack.measure.prepare import Preparation
from perftrack.measure.subject import Subject
from perftrack.measure.verify import Reference, compare, make_reference, poison
from perftrack.model import Side, Status

Run = Callable[[Candidate, int], None]
"""Runs a candidate so that at least set `index` is computed."""


def run_once(made: Candidate, index: int) -> None:
    """One call on one set."""
    made.subject.ready()
    made.launches[index]()


def run_as_timed(made: Candidate, index: int) -> None:
    """The way it was timed: a graph computes every set; a loop would have to be turned to the right one."""
    if made.mode in {"graph", "graph_rested"} and made.issuer is not None:
        made.issuer.issue(1)
    else:
        run_once(made, index)


def check(work: Preparation, index: int, run: Run = run_once) -> None:
    """Poison, run and compare every living candidate on set `index`; who is wrong is taken out."""
    shared: Reference | None = None
    for subject in work.subjects:
        if not work.alive(subject.side):
            continue
        reference = shared if work.same_code and shared is not None else _reference(work, subject, index)
        shared = reference
        if reference is None:
            continue
        dtypes = _baseline_dtypes(work, subject.side)
        before = fingerprint(work.engine.xp, work.inputs[subject.side][index])
        for made in work.alive(subject.side):
            if work.attempt(made, "run", lambda made=made: _run_poisoned(work, made, index, run)):
                found = (made, index, reference, dtypes, before)
                work.attempt(made, "verify", lambda found=found: _judge(work, *found))


def _reference(work: Preparation, subject: Subject, index: int) -> Reference | None:
    inputs = work.inputs[subject.side][index]
    try:
        with subject.active():
            return make_reference(work.engine.xp, subject.benchmark.reference, inputs, work.job.case.params)
    except Exception as error:  # noqa: BLE001 - the suite's own code may raise anything
        for made in work.alive(subject.side):
            made.fail("reference", error)
        work.engine.synchronize()
        return None


def _baseline_dtypes(work: Preparation, side: Side) -> tuple[Any, ...] | None:
    for made in work.alive(side):
        if made.is_baseline:
            return tuple(output.dtype for output in made.outputs[0])
    return None


def _run_poisoned(work: Preparation, made: Candidate, index: int, run: Run) -> None:
    poison(work.engine.xp, made.outputs[index])
    work.engine.synchronize()
    start = time.perf_counter()
    run(made, index)
    work.engine.synchronize()
    if not made.launched:
        made.build_s += time.perf_counter() - start
        made.launched = True


def _judge(
    work: Preparation,
    made: Candidate,
    index: int,
    reference: Reference,
    dtypes: tuple[Any, ...] | None,
    before: tuple[int, ...],
) -> None:
    benchmark = made.subject.benchmark
    errors = compare(
        work.engine.xp,
        made.outputs[index],
        reference,
        dtypes=dtypes,
        tolerance=benchmark.tolerance,
        factor=made.variant.tolerance,
    )
    made.error_l2 = max(made.error_l2 or 0.0, errors.l2)
    made.error_max = max(made.error_max or 0.0, errors.max)
    if problem := work.restore_changed(made.subject, index, before) or errors.problem:
        made.end(Status.WRONG, problem)

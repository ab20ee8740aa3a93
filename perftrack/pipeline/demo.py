"""`perftrack demo`: a database of a made-up past, to try reports and pages on; judged as what is measured is."""

from collections.abc import Sequence

from perftrack.errors import UsageError
from perftrack.judge import life, sightings
from perftrack.judge.confirm import settle, suspects
from perftrack.judge.life import Mark, State
from perftrack.judge.paired import compare
from perftrack.judge.sightings import Line
from perftrack.judge.summary import summarize
from perftrack.judge.value import Finding, Summary
from perftrack.measure.methods import default_method
from perftrack.model import Case, Device, JobResult, Run, RunOptions
from perftrack.pipeline import synthetic as made_up
from perftrack.store import FinishedJob, Store

_FIRST = range(1, 4)
_FRESH = range(4, 9)
METHOD = default_method("cuda")
_OPTIONS = RunOptions(rounds=len(_FIRST), confirm_rounds=len(_FRESH), methods={"cuda": METHOD})


def fill(store: Store) -> int:
    """Store the synthetic history; how many runs were not there yet.

    UsageError where the store holds anything else: what is made up never stands beside what was measured.
    """
    newest = store.runs(last=made_up.COMMITS + 1)
    foreign = next((entry.run for entry in newest if entry.run.repo != made_up.REPO), None)
    if foreign is not None:
        raise UsageError(
            f"{store.label} has results of {foreign.repo} (run {foreign.uid[:8]}), which the demo never mixes with: "
            "name a new file, such as --db demo.db"
        )
    there = {entry.run.uid for entry in newest if entry.run.state == "complete"}
    missing = [number for number in range(1, made_up.COMMITS + 1) if made_up.run_uid(number) not in there]
    for number in missing:
        _run(store, number)
    return len(missing)


def _run(store: Store, number: int) -> None:
    pairs = made_up.pairs()
    head = made_up.revision(number)
    base = made_up.revision(number - 1) if number > 1 else None
    run = Run(
        uid=made_up.run_uid(number),
        repo=made_up.REPO,
        head=head,
        base=base,
        base_note="synthetic: the commit before" if base else "a first commit has no parent",
        options=_OPTIONS,
        started_us=head.committed_us,
        expected_jobs=len(pairs) * len(_FIRST),
    )
    store.begin_run(run)
    rounds = {(case.key, device.uuid): _rounds(case, device, number, _FIRST) for case, device in pairs}
    findings = [one for case, device in pairs for one in _judged(case, device, number, rounds[case.key, device.uuid])]
    fresh: list[Finding] = []
    doubtful = {(one.case_key, one.device_class) for one in suspects(findings)}
    for case, device in pairs:
        if (case.key, device.device_class) in doubtful:
            again = _rounds(case, device, number, _FRESH)
            rounds[case.key, device.uuid] += again
            fresh += _judged(case, device, number, again)
    findings = settle(findings, fresh)
    summaries = _stored(store, run, [(case, device, rounds[case.key, device.uuid]) for case, device in pairs])
    finished_us = run.started_us + 600_000_000
    store.finish_run(run.uid, state="complete", finished_us=finished_us, summaries=summaries, findings=findings)
    _remember(store, run, number, findings)


def _rounds(case: Case, device: Device, number: int, turns: range) -> list[JobResult]:
    return [made_up.job(case, device, number, turn) for turn in turns]


def _judged(case: Case, device: Device, number: int, results: Sequence[JobResult]) -> list[Finding]:
    return compare(case, case if number > 1 else None, results, device_class=device.device_class)


def _stored(store: Store, run: Run, jobs: Sequence[tuple[Case, Device, list[JobResult]]]) -> list[Summary]:
    """All attempts in one transaction; the summaries of both sides, which the end of the run stores."""
    finished: list[FinishedJob] = []
    summaries: list[Summary] = []
    for case, device, results in jobs:
        heads = summarize(case, "head", results, device)
        attempts = tuple((result, device) for result in results)
        finished.append(FinishedJob(case=case, attempts=attempts, answers=((heads[0], METHOD.of(case)),)))
        summaries += heads + (summarize(case, "base", results, device) if run.base else [])
    store.add_finished(run.uid, finished)
    return summaries


def _remember(store: Store, run: Run, number: int, findings: Sequence[Finding]) -> None:
    """What the run says of regressions, and what somebody says of one of them."""
    known = store.regressions()
    behind = frozenset(made_up.revision(one).sha for one in range(1, number + 1))
    line = Line(head=run.head, base=run.base, inside=frozenset({run.head.sha}), behind=behind)
    store.remember(run.uid, sightings.look(findings, known, line, store.segments(run.uid)))
    benchmark, at, reason = made_up.ACKNOWLEDGED
    if number != at:
        return
    for one in known:
        marks = [
            Mark(
                case=case,
                state=State.ACKNOWLEDGED,
                reason=reason,
                author="synthetic",
                at_us=run.started_us,
                level=life.upper(one, case),
            )
            for case in one.cases()
            if case.case_key.startswith(benchmark) and one.has(case)
        ]
        if marks and not one.marks:
            store.mark(one.id, marks)

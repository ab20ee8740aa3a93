"""Beside an older commit than base: what crept up, and what changed in a commit that nobody measured."""

import hashlib
import math
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from perftrack.judge.confirm import FAMILY_ALPHA, Key, key
from perftrack.judge.value import Finding, spell
from perftrack.model import Cause, Revision, Run, Verdict
from perftrack.pipeline.execution import Execution
from perftrack.pipeline.life import remember
from perftrack.pipeline.outside import carry_out
from perftrack.pipeline.past import Told
from perftrack.pipeline.trees import Trees, beside
from perftrack.report.words import LEFT_BY, counted
from perftrack.revision import Repository

_MOST_COMMITS = 3
"""Older commits that a run measures its head beside: each is a look of its own."""

_OPEN = (Verdict.SAME, Verdict.AMBIGUOUS)
"""What base beside head leaves unexplained."""


@dataclass(frozen=True, slots=True)
class _Look:
    """The cases that one older commit is to be measured for."""

    commit: Revision
    findings: list[Finding]


def look_back(
    execution: Execution,
    repository: Repository,
    scratch: Path,
    address: str | None,
) -> None:
    """Measure the head of a finished run beside the commits whose levels it has left, and put the answers in.

    That is asked for what the history says creeps, and for what it says is higher or lower where base, side by side,
    is no different and is another commit than the newest of the history. Every look is a run of its own, in fresh
    rounds only, remembered with that commit as its base; all looks of a run together confirm something of an unchanged
    head with a chance of 1 % at most. What they confirm replaces the finding of the run, and a line of its message says
    against what; of the rest the message says what the history had against it. Harmless to repeat: what is stored is
    not measured again.
    """
    looks, left = _looks(execution)
    answers: dict[Key, tuple[Finding, Revision]] = {}
    for one in looks:
        answers |= {
            key(found): (found, one.commit)
            for found in _answer(execution, one, len(looks), repository, scratch, address)
        }
    execution.findings = [_explained(one, execution.told, answers, left) for one in execution.findings]
    execution.finish()


def _looks(execution: Execution) -> tuple[list[_Look], set[Key]]:
    """The largest changes first, and what is left over."""
    asked: dict[str, list[tuple[float, Finding, Revision]]] = {}
    for one in execution.findings:
        told = execution.told.get(key(one))
        if told is not None and told.against is not None and _is_open(one, told, execution.run):
            size = abs(math.log1p(told.triage.change))
            asked.setdefault(told.against.sha, []).append((size, one, told.against))
    ordered = sorted(asked.values(), key=lambda several: -max(size for size, _, _ in several))
    looks = [_Look(several[0][2], [one for _, one, _ in several]) for several in ordered]
    return looks[:_MOST_COMMITS], {key(one) for look in looks[_MOST_COMMITS:] for one in look.findings}


def _is_open(finding: Finding, told: Told, run: Run) -> bool:
    if finding.verdict not in _OPEN or finding.flaky or told.against is None:
        return False
    if finding.cause in (Cause.IDENTICAL_CODE, Cause.DEVICE):
        return False
    return told.triage.reading == "creeping" or (
        told.stands_out and run.base is not None and told.against.sha != run.base.sha
    )


def _answer(
    execution: Execution,
    look: _Look,
    looks: int,
    repository: Repository,
    scratch: Path,
    address: str | None,
) -> list[Finding]:
    """What fresh rounds beside an older commit say, stored as a run of its own."""
    main, talk = execution.run, execution.talk
    note = f"{repository.distance(look.commit, main.head)}, {LEFT_BY} {main.uid[:8]}"
    trees = beside(execution.trees, repository, look.commit, note, main.options.suite_paths, scratch)
    trees = _only(trees, {(one.suite, one.case_key) for one in look.findings})
    run = Run(
        uid=hashlib.sha256(f"{main.uid} {look.commit.sha}".encode()).hexdigest()[:32],
        repo=main.repo,
        head=main.head,
        base=look.commit,
        base_note=note,
        options=msgspec.structs.replace(main.options, rounds=0),
        started_us=main.started_us,
    )
    commit = f"{look.commit.label} {look.commit.subject}"
    talk.say(f"history {counted(len(look.findings), 'case')} beside {commit}, run {run.uid[:8]}")
    suspected = [msgspec.structs.replace(one, verdict=Verdict.AMBIGUOUS, ratios=()) for one in look.findings]
    alpha = FAMILY_ALPHA / looks
    one = Execution(run, trees, execution.store, talk, suspected=suspected, alpha=alpha)
    carry_out(one, address)
    remember(execution.store, run.uid, repository, repository.accepted(main.head, look.commit))
    return one.findings


def _only(trees: Trees, cases: set[tuple[str, str]]) -> Trees:
    return replace(
        trees,
        collected={
            side: msgspec.structs.replace(found, cases=[c for c in found.cases if (c.suite, c.key) in cases])
            for side, found in trees.collected.items()
        },
    )


def _explained(
    finding: Finding, told: dict[Key, Told], answers: dict[Key, tuple[Finding, Revision]], left: set[Key]
) -> Finding:
    """A finding of the run with what its history says; in its place that of the look which confirmed a change."""
    one = told.get(key(finding))
    if one is None or one.triage.reading in ("usual", "unknown") or finding.verdict not in _OPEN:
        return finding
    if finding.cause is Cause.IDENTICAL_CODE:
        return finding
    said = _said(one)
    found, commit = answers.get(key(finding), (None, None))
    if found is None or commit is None:
        more = "not measured beside an older commit: there were too many" if key(finding) in left else ""
        return _with(finding, finding.message, said, more)
    now = spell(found.change.point) if found.change else found.message or found.verdict.value
    beside_it = f"beside {commit.label} {now}"
    if found.verdict in (Verdict.SLOWER, Verdict.FASTER) and found.confirmed:
        step = f"{spell(finding.change.point)} than base" if finding.change else ""
        return _with(found, f"against {commit.label}, not base", said, step)
    return _with(finding, finding.message, said, f"not confirmed: {beside_it}")


def _with(finding: Finding, *parts: str) -> Finding:
    return msgspec.structs.replace(finding, message="; ".join(filter(None, parts)))


def _said(told: Told) -> str:
    change = spell(1 + told.triage.change)
    if told.triage.reading == "creeping":
        return f"slow creep: the newest commits are {change} than the best-known level"
    return f"{change} than the level of its history ({told.commits} commits)"

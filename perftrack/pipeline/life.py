"""Regressions: what a judged run adds to them, what people say of them, and how they stand."""

import datetime as dt
import getpass
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from perftrack.errors import PerftrackError, UsageError
from perftrack.judge import life, sightings
from perftrack.judge.life import CaseId, Mark, Regression, State
from perftrack.judge.sightings import Line
from perftrack.judge.value import Finding
from perftrack.model import Run, Verdict
from perftrack.report.standing import in_words
from perftrack.report.value import RegressionCase, RegressionRow
from perftrack.revision import Repository
from perftrack.store import Store, aliases, glob
from perftrack.trailers import Accepted


def remember(store: Store, uid: str, repository: Repository, accepted: Sequence[Accepted]) -> None:
    """Store what a judged run says of regressions, and mark those that the commits compared accept.

    `accepted`: `Repository.accepted` of head and base. A trailer accepts once what its commit, or a later one, made of
    a case: where that grows afterwards, the mark holds no longer. To do it again, also for a run that was judged again,
    changes nothing that has not changed. What is known of a renamed case is known of it by either name.
    """
    stored = store.load_run(uid)
    known = [_without(one, uid) for one in store.regressions(repo=stored.run.repo)]
    line, renamed = _line(stored.run, known, repository), store.read(aliases.names)
    findings, own = _of_today(stored.findings, renamed)
    segments = {(_today(case, renamed), name): one for (case, name), one in store.segments(uid).items()}
    seen = sightings.look(findings, known, line, segments)
    moved = sightings.moved(known, seen, line)
    store.remember(uid, [msgspec.structs.replace(one, case=own[one.case]) for one in seen], moved=moved)
    for said in accepted:
        _accept(store, uid, said, renamed, _Used(store, stored.run.repo, uid, repository, line))


@dataclass
class _Used:
    """What trailers have accepted already."""

    store: Store
    repo: str
    uid: str
    repository: Repository
    line: Line

    def by(self, said: Accepted, device_class: str, kind: life.Kind, case: CaseId) -> bool:
        """Whether the trailer has accepted the case in another run, of a commit behind this one and not before its own.

        Of a rebased commit, or a merge that was only tried, that is nothing: there it accepts anew.
        """
        return any(
            each.run_uid != self.uid
            and not each.gone
            and each.at_us <= mark.at_us
            and each.head.sha in self.line.behind
            and self.repository.descends(each.head.sha, said.sha)
            for one in self.known
            if (one.device_class, one.kind) == (device_class, kind)
            for mark in one.marks
            if (mark.case, mark.reason, mark.author) == (case, said.reason, said.author)
            for each in one.of(case)
        )

    @cached_property
    def known(self) -> list[Regression]:
        """All of the repository, asked for where a trailer is about something."""
        return self.store.regressions(repo=self.repo)


def _accept(store: Store, uid: str, said: Accepted, renamed: Mapping[tuple[str, str], str], used: _Used) -> None:
    """Mark what is open in a run and the trailer is about."""
    for one in store.regressions(run_uid=uid):
        now_us = _now_us()
        there = [each for each in one.sightings if each.run_uid == uid and not each.gone]
        open_ = [each.case for each in there if life.stands(one, each, now_us).state is State.OPEN]
        about: dict[str, Any] = {"reason": said.reason, "author": said.author, "at_us": now_us}
        chosen = _matching(said.pattern, open_, renamed)
        cases = [case for case in chosen if not used.by(said, one.device_class, one.kind, case)]
        marks = [Mark(case=case, state=State.ACKNOWLEDGED, level=life.upper(one, case), **about) for case in cases]
        store.mark(one.id, marks)


def _of_today(
    findings: Iterable[Finding], renamed: Mapping[tuple[str, str], str]
) -> tuple[list[Finding], dict[CaseId, CaseId]]:
    """Findings by the names of today, and the names that the run has; that a renamed case is not there is none."""
    findings = list(findings)
    there = {life.case_of(one) for one in findings}
    found: list[Finding] = []
    own: dict[CaseId, CaseId] = {}
    for one in findings:
        case = life.case_of(one)
        today = _today(case, renamed)
        if today != case and one.verdict is Verdict.REMOVED:
            continue
        today = case if today in there else today  # called by another's name while both are there
        found.append(msgspec.structs.replace(one, case_key=today.case_key))
        own[today] = case
    return found, own


def _today(case: CaseId, renamed: Mapping[tuple[str, str], str]) -> CaseId:
    return case._replace(case_key=renamed.get((case.suite, case.case_key), case.case_key))


def _line(run: Run, known: Sequence[Regression], repository: Repository) -> Line:
    behind = repository.commits(run.head)
    later = {one.found.sha for one in known if one.base and run.base and one.base.sha == run.base.sha} - behind
    return Line(
        head=run.head,
        base=run.base,
        inside=repository.commits(run.head, without=run.base),
        behind=behind,
        ahead=frozenset(sha for sha in later if repository.descends(sha, run.head.sha)),
    )


def _without(one: Regression, uid: str) -> Regression:
    return msgspec.structs.replace(one, sightings=tuple(each for each in one.sightings if each.run_uid != uid))


def ack(
    store: Store,
    target: str,
    *,
    reason: str,
    state: State = State.ACKNOWLEDGED,
    until: str = "",
    start: Path,
    author: str = "",
) -> list[RegressionRow]:
    """Mark a regression (`target`: its number), or the open cases whose key fits a pattern, and return what was marked.

    `until`: a date; from its beginning (UTC) on the mark counts no longer. A pattern means the regressions of the
    repository at `start`, of all where there is none. `author`: else who works there. UsageError where nothing fits.
    """
    if not reason.strip():
        raise UsageError("--reason is empty: say why, for those who read it later")
    until_us, now_us = _instant(until) if until else None, _now_us()
    chosen = _by_number(store, int(target)) if target.isdecimal() else _by_pattern(store, target, _repo(start), now_us)
    said: dict[str, Any] = {
        "state": state,
        "reason": reason.strip(),
        "author": author or _author(start),
        "at_us": now_us,
        "until_us": until_us,
    }
    for one, cases in chosen:
        store.mark(one.id, [Mark(case=case, level=life.upper(one, case), **said) for case in cases])
    numbers = {one.id for one, _ in chosen}
    return [row for row in rows(store, everything=True) if row.id in numbers]


def rows(store: Store, *, everything: bool) -> list[RegressionRow]:
    """The open regressions, or all of them, the oldest first."""
    return rows_of(store.regressions(), everything=everything)


def rows_of(known: Iterable[Regression], *, everything: bool) -> list[RegressionRow]:
    """The same of regressions that were read already."""
    now_us = _now_us()
    chosen = [one for one in known if everything or life.state(one, now_us) is State.OPEN]
    return [_row(one, now_us) for one in chosen]


def _row(one: Regression, now_us: int) -> RegressionRow:
    return RegressionRow(
        id=one.id,
        repo=one.repo,
        state=life.state(one, now_us),
        kind=one.kind,
        device_class=one.device_class,
        found=one.found.label,
        found_sha=one.found.sha,
        found_subject=one.found.subject,
        found_us=one.found_us,
        base_sha=one.base.sha if one.base else None,
        cases=tuple(_case(one, case, now_us) for case in one.cases()),
    )


def _case(one: Regression, case: CaseId, now_us: int) -> RegressionCase:
    there = [each for each in one.of(case) if not each.gone]
    level, standing = _level(one, case), life.standing(one, case, now_us)
    mark = standing.mark
    return RegressionCase(
        suite=case.suite,
        case=case.case_key,
        variant=case.variant,
        state=standing.state,
        level=level,
        size=life.size(one.kind, level) if level else "",
        why=there[-1].finding.why if there else "",
        said=in_words(standing),
        reason=mark.reason if mark else "",
        author=mark.author if mark else "",
        marked_us=mark.at_us if mark else None,
        until_us=mark.until_us if mark else None,
    )


def _level(one: Regression, case: CaseId) -> float | None:
    return next((each.level for each in reversed(one.of(case)) if not each.gone), None)


def _by_number(store: Store, number: int) -> list[tuple[Regression, list[CaseId]]]:
    known = store.regressions()
    for one in known:
        if one.id == number:
            cases = [case for case in one.cases() if not one.of(case)[-1].gone]
            if not cases:
                raise UsageError(f"regression {number} is fixed: there is nothing to mark")
            return [(one, cases)]
    there = f"there are 1 to {known[-1].id}" if known else "there is none"
    raise UsageError(f"no regression {number} in {store.label}: {there}; `perftrack regressions --all` lists them")


def _by_pattern(store: Store, pattern: str, repo: str | None, now_us: int) -> list[tuple[Regression, list[CaseId]]]:
    chosen: list[tuple[Regression, list[CaseId]]] = []
    renamed = store.read(aliases.names)
    for one in store.regressions(repo=repo):
        open_ = [case for case in one.cases() if life.standing(one, case, now_us).state is State.OPEN]
        if cases := _matching(pattern, open_, renamed):
            chosen.append((one, cases))
    if not chosen:
        where = f" of {repo}" if repo else ""
        raise UsageError(
            f"no open regression{where} in {store.label} has a case {pattern!r}: give a number or the key of a case, "
            "with * and ? for parts of it; `perftrack regressions` lists both"
        )
    return chosen


def _matching(pattern: str, cases: Sequence[CaseId], renamed: Mapping[tuple[str, str], str]) -> list[CaseId]:
    """The cases whose key fits, that of today or a former one."""
    names = {**{(case.suite, case.case_key): case.case_key for case in cases}, **renamed}
    keys = set(glob.matching(pattern, {key for _, key in names}))
    fitting = {(suite, today) for (suite, key), today in names.items() if key in keys}
    return [case for case in cases if (case.suite, case.case_key) in fitting]


def _instant(until: str) -> int:
    try:
        date = dt.date.fromisoformat(until)
    except ValueError:
        raise UsageError(f"--until {until!r} is no date: write it like {dt.date(2030, 12, 31)}") from None
    instant = dt.datetime(date.year, date.month, date.day, tzinfo=dt.UTC)
    if instant <= dt.datetime.now(dt.UTC):
        raise UsageError(f"--until {until} has passed: give a day after today, {dt.datetime.now(dt.UTC).date()} (UTC)")
    return int(instant.timestamp()) * 1_000_000


def _repo(start: Path) -> str | None:
    try:
        return Repository.discover(start).name
    except PerftrackError:
        return None


def _author(start: Path) -> str:
    try:
        return Repository.discover(start).user or getpass.getuser()
    except PerftrackError:
        return getpass.getuser()


def _now_us() -> int:
    return time.time_ns() // 1000

"""What a judged run says of regressions: which ones its findings show, which are new, which are gone."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from perftrack.judge.accuracy import floor_of_key, grew
from perftrack.judge.life import CaseId, Kind, Regression, Sighting, bounds, case_of, kinds, level_of, place, tolerance
from perftrack.judge.value import Finding
from perftrack.model import Revision, Verdict

_AS_GOOD = (Verdict.SAME, Verdict.FASTER)
_UNANSWERED = (Verdict.MISSING, Verdict.UNSTABLE, Verdict.FAILED, Verdict.WRONG)

_ROUNDS_WITHOUT = 3
"""Nothing bad in n rounds bounds its rate by 3 ÷ n at 95 % (the rule of three). What was bad at least once beside r
right rounds has a rate of 1 ÷ (r + 1) or more, so that 3 (r + 1) rounds without it tell that it is gone."""


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """A sighting to be stored."""

    regression_id: int | None
    """None: the one of the run's head, its device class and kind, which may have to be made."""
    device_class: str
    kind: Kind
    case: CaseId
    gone: bool = False
    level: float | None = None


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run's head lies among the commits."""

    head: Revision
    base: Revision | None
    inside: frozenset[str]
    """Commits that head has and base has not."""
    behind: frozenset[str]
    """All commits that head has."""
    ahead: frozenset[str] = frozenset()
    """Commits of known regressions that have head behind them."""

    def is_at(self, regression: Regression) -> bool:
        """Found at this head, or at a commit that was amended into it: same files, and no longer in the history."""
        found = regression.found
        return not self.head.dirty and (
            found.sha == self.head.sha or (found.tree == self.head.tree and found.sha not in self.behind)
        )

    @property
    def begins(self) -> bool:
        """Whether head can be where something began: committed, and with its base behind it."""
        return not self.head.dirty and (self.base is None or self.base.sha in self.behind)

    def narrows(self, regression: Regression) -> bool:
        """Found at a later commit against the same base, so that head, in between, may have it already."""
        return regression.found.sha in self.ahead and _same(regression.base, self.base)


def attribute(finding: Finding, kind: Kind, regressions: Sequence[Regression], line: Line) -> list[Seen]:
    """Which regressions a finding shows: the known ones of the commits compared as far as they explain it, else head's.

    Levels multiply. What the known ones leave over is the head's where the head is known to have one of its own, or
    the newest one's, which has worsened then. Where head cannot be where it began, nothing new is. What is broken in
    some rounds only is a known one of that sort which base has, too, if there is one: base was lucky.
    """
    case, level = case_of(finding), level_of(kind, finding)
    mine = [one for one in regressions if (one.device_class, one.kind) == (finding.device_class, kind)]
    here = max((one for one in mine if line.is_at(one)), key=lambda one: one.found.sha == line.head.sha, default=None)
    known = [
        one
        for one in mine
        if one is not here
        and case in one.cases()
        and (one.found.sha in line.inside or line.narrows(one) or _comes_and_goes(one, finding, line))
    ]
    known.sort(key=lambda one: (place(one.found), one.id))
    rest = level
    for one in known:
        rest = rest / one.level(case) if rest else None
    limit = tolerance(kind, finding)
    low, high = bounds(kind, finding, rest or 1.0)
    explained = rest is None or (low <= limit and 1 / limit <= high)
    own = here is not None and (case in here.cases() or not explained)
    levels: list[tuple[int | None, float | None]] = [(one.id, one.level(case) if level else None) for one in known]
    if here is not None and (own or not known):
        levels.append((here.id, rest))
    elif known and rest and not explained:
        levels[-1] = (known[-1].id, known[-1].level(case) * rest)
    elif not known and line.begins:
        levels.append((None, rest))
    return [
        Seen(regression_id=number, device_class=finding.device_class, kind=kind, case=case, level=one)
        for number, one in levels
    ]


def is_gone(
    regression: Regression, finding: Finding, line: Line, segment: tuple[int, int] | None, *, added: float
) -> bool:
    """Whether a later run shows a case of a regression back at the level before it, or better.

    What crashed or was wrong has to run and be right; where it comes and goes, in so many rounds that it would have
    been seen. A lost accuracy has to come back, or below the floor; a slowdown: `_as_fast`. A case that is no longer
    declared has nothing wrong with it. `added`: what the regression and those after it, which the run's base has, add
    to the time, as a ratio.
    """
    if finding.verdict is Verdict.REMOVED:
        return True
    case = case_of(finding)
    first = next((one for one in regression.of(case) if not one.gone), None)
    if first is None or finding.flaky or finding.verdict in _UNANSWERED:
        return False
    if regression.kind is Kind.SLOWER:
        return finding.verdict in _AS_GOOD and _as_fast(regression, first, finding, line, segment, added=added)
    if regression.kind is Kind.LESS_ACCURATE:
        before, error = first.finding.error_base, finding.error_head
        return before is not None and error is not None and not grew(error, before, floor_of_key(case.case_key))
    right = regression.right_rounds(case)
    return finding.head_s is not None and (not right or finding.rounds >= _ROUNDS_WITHOUT * (right + 1))


def _as_fast(
    regression: Regression,
    first: Sighting,
    finding: Finding,
    line: Line,
    segment: tuple[int, int] | None,
    *,
    added: float,
) -> bool:
    """Whether nothing is left of a slowdown: three witnesses, of which the first two compare side by side.

    The run compared with the very base that the slowdown was found against, and finds no difference. Or its base has
    the slowdown, and its own ratio takes back what was added. Or its time is as it was before, in one environment and
    by one method; so must its base's be, where the run itself saw nothing become faster. Back is within the minimum
    effect of before, and nearer to it than to the slow level.
    """
    if _same(regression.base, line.base):
        return True
    faster = finding.verdict is Verdict.FASTER
    limit = min(1 + finding.min_effect, (first.level or 1.0) ** 0.5)
    has_it = regression.found.sha not in line.inside
    if faster and has_it and finding.change is not None and finding.change.point * added <= limit:
        return True
    before = first.finding.base_s
    if before is None or segment is None or first.segment != segment:
        return False
    times = [finding.head_s] if faster else [finding.head_s, finding.base_s]
    return all(one is not None and one <= limit * before for one in times)


def moved(regressions: Sequence[Regression], seen: Sequence[Seen], line: Line) -> list[int]:
    """Ids of the regressions that are head's from now on: amended into it, or seen there, earlier, in every case."""
    there = {(one.regression_id, one.case) for one in seen if not one.gone}
    taken = {(one.device_class, one.kind) for one in regressions if one.found.sha == line.head.sha}
    taken |= {(one.device_class, one.kind) for one in seen if one.regression_id is None}
    found: list[int] = []
    for one in regressions:
        whole = all((one.id, case) in there for case in one.cases()) and not line.head.dirty
        amended = line.is_at(one) and any((one.id, case) in there for case in one.cases())
        if (one.device_class, one.kind) not in taken and (amended or (whole and line.narrows(one))):
            taken.add((one.device_class, one.kind))
            found.append(one.id)
    return found


def look(
    findings: Iterable[Finding],
    regressions: Sequence[Regression],
    line: Line,
    segments: Mapping[tuple[CaseId, str], tuple[int, int]],
) -> list[Seen]:
    """Everything that a judged run says of regressions, known and new.

    `regressions`: of the same repository, without what this run said before. `segments`: environment and method of
    the head's side of each (case, device class).
    """
    found = list(findings)
    seen = [one for finding in found for kind in kinds(finding) for one in attribute(finding, kind, regressions, line)]
    there = {(one.regression_id, one.case) for one in seen}
    if line.head.dirty:
        return seen
    earlier = [one for one in regressions if one.found.sha in line.behind and one.found.sha != line.head.sha]
    for finding in found:
        case, segment = case_of(finding), segments.get((case_of(finding), finding.device_class))
        mine = [one for one in earlier if one.device_class == finding.device_class and one.has(case)]
        seen += [
            Seen(regression_id=one.id, device_class=one.device_class, kind=one.kind, case=case, gone=True)
            for one in mine
            if (one.id, case) not in there and is_gone(one, finding, line, segment, added=_added(one, case, mine, line))
        ]
    return seen


def _added(regression: Regression, case: CaseId, known: Iterable[Regression], line: Line) -> float:
    """The ratio by which a regression and those of later commits make a case of the run's base larger."""
    added = 1.0
    for one in known:
        later = one.kind is regression.kind and place(one.found) >= place(regression.found)
        if later and one.found.sha not in line.inside:
            added *= one.level(case)
    return added


def _comes_and_goes(regression: Regression, finding: Finding, line: Line) -> bool:
    """Whether base has a regression that is seen in some rounds only, as this finding is."""
    case = case_of(finding)
    behind = regression.found.sha in line.behind and regression.found.sha != line.head.sha
    return behind and finding.rounds > 0 and regression.right_rounds(case) > 0 and regression.has(case)


def _same(one: Revision | None, other: Revision | None) -> bool:
    return one is not None and other is not None and one.sha == other.sha

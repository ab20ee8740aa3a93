"""The life of a regression: open, then acknowledged, infra, invalid or fixed; open again where it worsens.

How a regression stands is never stored. It follows from what judged runs say of its cases (sightings, drawn from the
runs as findings are) and from what people said (marks, which are only ever added). So judging a run again, or
measuring a commit again, changes nothing that has not changed.
"""

import datetime as dt
from enum import StrEnum
from typing import NamedTuple

import msgspec

from perftrack.judge.accuracy import FACTOR, floor_of_key, times
from perftrack.judge.value import Finding, spell
from perftrack.model import Accuracy, Revision


class Kind(StrEnum):
    """What is wrong."""

    SLOWER = "slower"
    FAILED = "failed"
    WRONG = "wrong"
    LESS_ACCURATE = "less-accurate"


class State(StrEnum):
    """How it stands, worst first."""

    OPEN = "open"
    ACKNOWLEDGED = "acknowledged"
    """It is real and accepted."""
    INFRA = "infra"
    """The machine's doing."""
    INVALID = "invalid"
    """There is nothing wrong."""
    FIXED = "fixed"


class CaseId(NamedTuple):
    """One candidate variant of one case."""

    suite: str
    case_key: str
    variant: str


class Sighting(msgspec.Struct, frozen=True, kw_only=True):
    """What one judged run says of one case of a regression: it is there, or gone."""

    run_uid: str
    head: Revision
    at_us: int
    """When the run began, which does not change when it is judged again."""
    gone: bool
    level: float | None
    """How large it is, as a ratio: `level_of`. None for what has no size."""
    finding: Finding
    """That run's."""
    segment: tuple[int, int] | None = None
    """Environment and method of the base's side; None where it has no time."""
    today: str = ""
    """The key that its case has now; empty where that is the run's."""

    @property
    def case(self) -> CaseId:
        """Which case it is about, by its name of today."""
        case = case_of(self.finding)
        return case._replace(case_key=self.today) if self.today else case

    @property
    def order(self) -> tuple[bool, int, int, int]:
        """By `place`, those of one commit by run."""
        return (*place(self.head), self.at_us)


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """What a person said of one case of a regression."""

    case: CaseId
    state: State
    """acknowledged, invalid or infra."""
    reason: str
    author: str
    at_us: int
    until_us: int | None = None
    """From this instant on it counts no longer."""
    level: float | None = None
    """How large it may have been then, by `upper`; what is clearly larger it does not speak of."""


class Regression(msgspec.Struct, frozen=True, kw_only=True):
    """One problem: one commit, one device class, one kind, however many cases it hits."""

    id: int
    repo: str
    found: Revision
    """The head of the run that found it."""
    base: Revision | None
    device_class: str
    kind: Kind
    found_us: int
    sightings: tuple[Sighting, ...] = ()
    marks: tuple[Mark, ...] = ()

    def cases(self) -> list[CaseId]:
        """Every case it was seen in, sorted."""
        return sorted({one.case for one in self.sightings})

    def of(self, case: CaseId) -> list[Sighting]:
        """What is known of one case, in topological order; of uncommitted changes only where there is nothing else."""
        mine = sorted((one for one in self.sightings if one.case == case), key=lambda one: one.order)
        return [one for one in mine if not one.head.dirty] or mine

    def has(self, case: CaseId) -> bool:
        """Whether it was seen in a case and is not known to be gone from it."""
        seen = self.of(case)
        return bool(seen) and not seen[-1].gone

    def right_rounds(self, case: CaseId) -> int:
        """In how many rounds a case that fails or is wrong was right where it was seen: above 0 it comes and goes."""
        there = [one.finding.rounds for one in self.of(case) if not one.gone]
        return max(there, default=0) if self.kind in (Kind.FAILED, Kind.WRONG) else 0

    def level(self, case: CaseId) -> float:
        """How large it was when it was last there; 1 where it has no size."""
        return next((one.level for one in reversed(self.of(case)) if one.level and not one.gone), 1.0)


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """How a case of a regression stands, and because of which mark."""

    state: State
    mark: Mark | None = None
    """The newest that was made for it, whether it still counts or not."""
    again: str = ""
    """Why a mark counts no longer."""


def case_of(finding: Finding) -> CaseId:
    """Which case a finding is about."""
    return CaseId(finding.suite, finding.case_key, finding.variant)


def kinds(finding: Finding) -> list[Kind]:
    """What is to be remembered of a finding: a red one, and a lost accuracy."""
    found = [Kind(finding.verdict.value)] if finding.red else []
    return found + ([Kind.LESS_ACCURATE] if finding.accuracy is Accuracy.LESS else [])


def level_of(kind: Kind, finding: Finding) -> float | None:
    """How large it is: the time, or the error, at head ÷ that at base; None where there is no such ratio.

    An error below the floor at which one is news counts as that, so that the loss of an exact result has a size too.
    """
    if kind is Kind.SLOWER:
        return finding.change.point if finding.change else None
    if kind is Kind.LESS_ACCURATE and finding.error_head is not None and finding.error_base is not None:
        return times(finding.error_head, finding.error_base, floor_of_key(finding.case_key))
    return None


def bounds(kind: Kind, finding: Finding, level: float) -> tuple[float, float]:
    """The confidence interval of a level, as wide as that of the finding's time; an error has none."""
    if kind is not Kind.SLOWER or finding.change is None:
        return level, level
    return level * finding.change.low / finding.change.point, level * finding.change.high / finding.change.point


def upper(regression: Regression, case: CaseId) -> float | None:
    """How large a case may have been when it was last there; None where it has no size."""
    last = next((one for one in reversed(regression.of(case)) if not one.gone), None)
    return bounds(regression.kind, last.finding, last.level)[1] if last and last.level else None


def tolerance(kind: Kind, finding: Finding) -> float:
    """The factor by which a level must differ to be another one."""
    return FACTOR if kind is Kind.LESS_ACCURATE else 1 + finding.min_effect


def stands(regression: Regression, sighting: Sighting, now_us: int) -> Standing:
    """How one sighting stands at the instant `now_us`.

    The newest mark of its case counts unless it was made before a fix that this sighting lies behind, has run out, or
    was made of a clearly smaller level: the intervals are apart, by the minimum effect at least.
    """
    if sighting.gone:
        return Standing(state=State.FIXED)
    fixes = [one.at_us for one in regression.of(sighting.case) if one.gone and one.order < sighting.order]
    marks = [one for one in regression.marks if one.case == sighting.case]
    mark = max(marks, key=lambda one: one.at_us, default=None)
    if mark is None or mark.at_us < max(fixes, default=0):
        return Standing(state=State.OPEN, again="it was fixed and came back" if fixes else "")
    if mark.until_us is not None and mark.until_us <= now_us:
        again = f"{mark.state.value} until {day(mark.until_us)}, which has passed"
        return Standing(state=State.OPEN, mark=mark, again=again)
    if mark.level and sighting.level and _grown(regression.kind, sighting, mark.level):
        sizes = [size(regression.kind, level) for level in (mark.level, sighting.level)]
        return Standing(state=State.OPEN, mark=mark, again=f"{mark.state.value} up to {sizes[0]}, now {sizes[1]}")
    return Standing(state=mark.state, mark=mark)


def _grown(kind: Kind, sighting: Sighting, marked: float) -> bool:
    low, _ = bounds(kind, sighting.finding, sighting.level or 1.0)
    return low > marked and (sighting.level or 1.0) > marked * tolerance(kind, sighting.finding)


def standing(regression: Regression, case: CaseId, now_us: int) -> Standing:
    """How a case stands: as its newest sighting, in topological order, does."""
    return stands(regression, regression.of(case)[-1], now_us)


def state(regression: Regression, now_us: int) -> State:
    """The worst over its cases. What no run shows any longer, since it was judged again, is invalid."""
    states = {standing(regression, case, now_us).state for case in regression.cases()}
    return next((one for one in State if one in states), State.INVALID)


def size(kind: Kind, level: float) -> str:
    """`10.0 % slower`, `4.2 times the error`."""
    return f"{level:.1f} times the error" if kind is Kind.LESS_ACCURATE else spell(level)


def day(instant_us: int) -> str:
    """UTC."""
    return dt.datetime.fromtimestamp(instant_us / 1e6, dt.UTC).date().isoformat()


def place(revision: Revision) -> tuple[bool, int, int]:
    """Topological, by first-parent position; unknown ones last, then by date."""
    position = revision.position
    return (position is None, position or 0, revision.committed_us)

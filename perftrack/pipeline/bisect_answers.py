"""What the stored runs of a bisection say of the case it follows, and which of them are an answer at all."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from perftrack.judge import bisect as search
from perftrack.judge.accuracy import floor_of
from perftrack.judge.rounds import outcome, read_rounds
from perftrack.judge.summary import ratio_over_rounds
from perftrack.judge.value import Finding, Interval
from perftrack.model import Accuracy, Case, Device, JobResult, Side, Status, Verdict
from perftrack.store import Store
from perftrack.store.value import StoredRun


class Seen(NamedTuple):
    """What one run says of one variant, head beside the good end."""

    variant: str
    device_class: str
    ratios: tuple[float, ...]
    """Time of head ÷ time of the good end, one a round; of errors one for all rounds, which are alike in them."""
    change: Interval | None
    why: str
    """What it says beside numbers."""
    is_step: bool = False
    disturbed: bool = False
    """The machine, not the code, is why there are no numbers."""


@dataclass(frozen=True, slots=True)
class Question:
    """One variant of one case, or whatever it has; its time, or its error."""

    suite: str
    key: str
    variant: str = ""
    error: bool = False

    def is_enough(self, one: Seen) -> bool:
        """Whether it can be compared."""
        return len(one.ratios) >= (1 if self.error else search.FEWEST_ROUNDS)

    def seen(self, store: Store, run_uid: str) -> list[Seen]:
        """What a run says of the case, and of no other that it measured too."""
        stored = store.load_run(run_uid)
        case = self._case(stored)
        if case is None:
            return []
        if self.variant == case.baseline:
            return _of_baseline(case, store.jobs(run_uid), stored.devices)
        found = [one for one in stored.findings if (one.suite, one.case_key) == (self.suite, self.key)]
        return [_of_error(one, floor_of(case)) if self.error else _of_time(one) for one in found]

    def is_answered(self, store: Store, run_uid: str) -> bool:
        """Whether a complete run need not be measured anew.

        It must be where the machine lost a round or disturbed them all, and where the baseline's samples, which no
        finding sums up, have expired. What the code is to blame for is an answer.
        """
        stored = store.load_run(run_uid)
        done = {(name, number) for *of, name, number in store.done_jobs(run_uid) if of == [self.suite, self.key]}
        rounds = range(1, 1 + stored.run.options.rounds)
        if not any(all((name, number) in done for number in rounds) for name, _ in done):
            return False
        case = self._case(stored)
        if case is not None and self.variant == case.baseline and store.kept(run_uid):
            return False
        asked = [one for one in self.seen(store, run_uid) if self.variant in {"", one.variant}]
        return not asked or any(self.is_enough(one) or not one.disturbed for one in asked)

    def _case(self, stored: StoredRun) -> Case | None:
        return next((one for one in stored.cases if (one.suite, one.key) == (self.suite, self.key)), None)


def _of_time(found: Finding) -> Seen:
    why = found.message or found.verdict.value
    disturbed = found.verdict is Verdict.UNSTABLE
    return Seen(found.variant, found.device_class, found.ratios, found.change, why, disturbed=disturbed)


def _of_error(found: Finding, floor: float) -> Seen:
    """Errors below the floor, 0 among them, are alike: what is below is no news."""
    disturbed = found.verdict is Verdict.UNSTABLE
    if found.error_head is None or found.error_base is None:
        why = found.message or found.verdict.value
        return Seen(found.variant, found.device_class, (), None, why, disturbed=disturbed)
    level = max(found.error_head, floor) / max(found.error_base, floor)
    is_step = found.accuracy is not Accuracy.NONE
    return Seen(found.variant, found.device_class, (level,), Interval(level, level, level), found.message, is_step)


def _of_baseline(case: Case, results: Sequence[JobResult], devices: Sequence[Device]) -> list[Seen]:
    """The baseline is never judged, so that no finding has its rounds."""
    sides: tuple[tuple[Side, str], ...] = (("head", case.baseline), ("base", case.baseline))
    made: list[Seen] = []
    for name in dict.fromkeys(one.device_class for one in devices):
        rounds = read_rounds(results, case, name)
        ratios = tuple(ratio for one in rounds if (ratio := one.ratio(*sides)) is not None)
        change = ratio_over_rounds(rounds, *sides)
        ends = [one for side in sides if (one := outcome(rounds, *side)) and one.status is not Status.OK]
        why = next((one.message for one in ends if one.message), "no round measured both sides")
        disturbed = bool(ends) and all(one.status is Status.UNSTABLE for one in ends)
        made.append(Seen(case.baseline, name, ratios, change, why, disturbed=disturbed))
    return made

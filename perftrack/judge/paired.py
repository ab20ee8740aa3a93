"""Head against base, measured interleaved in the same processes: one `Finding` a candidate variant.

No comparison of clock cycles is made beside the one of times: both sides of every ratio come from the same block
of the same process, so the same clock drove them, and a block in which the clock, the power cap or the canary
moved is not used at all (`rounds`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from perftrack import stats
from perftrack.declare import NEVER_GATED
from perftrack.judge import accuracy
from perftrack.judge.rounds import BROKEN, Key, Outcome, Round, measured, outcome, read_rounds
from perftrack.judge.summary import ratio_over_rounds
from perftrack.judge.value import Finding, Interval, spell
from perftrack.judge.why import facts, why
from perftrack.model import Backend, Case, Cause, JobResult, Side, Status, Verdict

CANARY_SPREAD: dict[Backend, float] = {"cuda": 0.05, "cpu": 1.0}
"""Rounds whose canary copies differ by more than this on one card were not made on the same machine state, which may
explain a change that is no larger. Main memory is shared with every other process: there, a copy that takes twice its
usual time is nothing unusual."""

_MOVED = (Verdict.SLOWER, Verdict.FASTER)

_CAUSES = {
    ("variant", Verdict.SLOWER): Cause.FUSED_SLOWER,
    ("variant", Verdict.FASTER): Cause.FUSED_FASTER,
    ("baseline", Verdict.SLOWER): Cause.UNFUSED_SLOWER,
    ("baseline", Verdict.FASTER): Cause.UNFUSED_FASTER,
}


def compare(head: Case | None, base: Case | None, results: Sequence[JobResult], *, device_class: str) -> list[Finding]:
    """One finding for each candidate variant of a case on one device class, from rounds that measured both sides.

    `head` and `base` are the case as each revision declares it, None where it does not. The baseline variant and
    the yardsticks of `NEVER_GATED` are never candidates, but a baseline that breaks is found too: without it there
    is no speedup. A variant skipped on both sides gives no finding. How a pair is decided: `decide`.
    """
    case = head or base
    if case is None:
        raise ValueError("compare() needs the case of the head or of the base")
    return _Comparison(case, head, base, read_rounds(results, case, device_class), device_class).findings()


def decide(ratios: Sequence[float], min_effect: float) -> Verdict:
    """Slower, faster, same or ambiguous, from one head ÷ base time ratio a round (two rounds at least).

    `slower` and `faster` need a 95 % interval that excludes 1, an effect of at least `min_effect`, and every round
    on the same side of 1. `same` needs an interval inside ± `min_effect`. The limits are a ratio of 1 + min_effect
    and its inverse, so that swapping head and base mirrors the answer. By itself this alarms on up to 2.5 % of
    unchanged cases whose noise exceeds the minimum: a suspicion, to be confirmed on fresh rounds (`confirm`).
    """
    bounds = stats.ratio_interval(ratios)
    limit = 1 + min_effect
    if bounds.low >= 1 / limit and bounds.high <= limit and 1 / limit < bounds.point < limit:
        return Verdict.SAME
    if bounds.low > 1 and bounds.point >= limit and min(ratios) > 1:
        return Verdict.SLOWER
    if bounds.high < 1 and bounds.point <= 1 / limit and max(ratios) < 1:
        return Verdict.FASTER
    return Verdict.AMBIGUOUS


def one_device_only(ratios: Mapping[str, Sequence[float]], min_effect: float) -> str:
    """Which device alone shows a change, in words; empty where they agree, or where there is too little of each.

    `ratios`: device UUID → head ÷ base time ratio of each round on it. The change is seen on a device where all its
    rounds, two at least, lie beyond `min_effect` on one side of 1, and not on one where all of two at least lie
    within it.
    """
    limit = 1 + min_effect
    said = {uuid: mine for uuid, mine in ratios.items() if len(mine) > 1}
    moved = [uuid for uuid, mine in said.items() if min(mine) >= limit or max(mine) <= 1 / limit]
    still = [uuid for uuid, mine in said.items() if min(mine) > 1 / limit and max(mine) < limit]
    if not moved or not still:
        return ""
    there, here = (f"{spell(stats.median(list(ratios[uuid])))} on {uuid}" for uuid in (moved[0], still[0]))
    return f"on one device only: {there}, {here}"


@dataclass(frozen=True, slots=True)
class _Comparison:
    case: Case
    head: Case | None
    base: Case | None
    rounds: list[Round]
    device_class: str

    def findings(self) -> list[Finding]:
        names = dict.fromkeys((*(self.head.variants if self.head else ()), *(self.base.variants if self.base else ())))
        found = [self.finding(name) for name in names if name not in NEVER_GATED and self._gated(name)]
        return [one for one in found if one is not None]

    def _gated(self, variant: str) -> bool:
        """Candidates, and a baseline whose own measurement shows it broken."""
        if variant != self.case.baseline:
            return True
        now = outcome(self.rounds, "head", variant)
        return now is not None and now.own and now.status in BROKEN

    def finding(self, variant: str) -> Finding | None:
        """The checks in order of weight: presence, breakage at head, answers of both sides, the times."""
        in_base = self.base is not None and variant in self.base.variants
        if self.head is None or variant not in self.head.variants:
            return self._say(variant, Verdict.REMOVED)
        now = outcome(self.rounds, "head", variant)
        then = outcome(self.rounds, "base", variant) if in_base else None
        if now is None or now.status is Status.INFRA:
            return self._say(variant, Verdict.MISSING, now.message if now else "not measured")
        if now.status in BROKEN:
            return self._broken(variant, now, then)
        if now.status is Status.SKIPPED:
            newly = then is not None and then.status is not Status.SKIPPED
            return self._say(variant, Verdict.MISSING, f"newly skipped: {now.message}") if newly else None
        if now.status is Status.UNSTABLE:
            return self._say(variant, Verdict.UNSTABLE, now.message, Cause.DEVICE)
        return self._against_base(variant, then) if in_base else self._say(variant, Verdict.NEW)

    def _broken(self, variant: str, now: Outcome, then: Outcome | None) -> Finding:
        """Newly broken unless the base's own measurement shows it broken too (a dead job speaks for neither side)."""
        verdict = Verdict.WRONG if now.status is Status.WRONG else Verdict.FAILED
        message = f"invalid: {now.message}" if now.status is Status.INVALID else now.message
        if then is not None and then.own and then.status in BROKEN:
            return self._say(variant, verdict, f"also {_ending(then.status)} at base: {message}")
        return msgspec.structs.replace(self._say(variant, verdict, message), newly=True)

    def _against_base(self, variant: str, then: Outcome | None) -> Finding:
        if then is None or then.status is Status.INFRA:
            return self._say(variant, Verdict.MISSING, "the base was not measured")
        if then.status in BROKEN:
            return self._say(variant, Verdict.NEW, f"runs now, {_ending(then.status)} at base: {then.message}")
        if then.status is Status.SKIPPED:
            return self._say(variant, Verdict.NEW, f"skipped at base: {then.message}")
        if then.status is Status.UNSTABLE:
            return self._say(variant, Verdict.UNSTABLE, f"at base: {then.message}", Cause.DEVICE)
        return self._paired(variant)

    def _paired(self, variant: str) -> Finding:
        ratios = _ratios(self.rounds, variant)
        change = ratio_over_rounds(self.rounds, ("head", variant), ("base", variant))
        if change is None:
            return self._say(variant, Verdict.MISSING, "no round measured head and base together")
        verdict, cause, message = self._verdict(variant, ratios, change)
        finding = msgspec.structs.replace(
            self._say(variant, verdict, message, cause),
            change=change,
            baseline_change=ratio_over_rounds(self.rounds, *_pair(self.case.baseline)),
            detectable=stats.detectable_effect(ratios) if len(ratios) > 1 else None,
            rounds=len(ratios),
            ratios=tuple(ratios),
            why=self._why(variant, change.point),
        )
        return self._with_cause(finding, self._baseline_verdict())

    def _verdict(self, variant: str, ratios: Sequence[float], change: Interval) -> tuple[Verdict, Cause, str]:
        if len(ratios) < 2:
            limit = 1 + self.case.min_effect
            inside = 1 / limit <= change.low and change.high <= limit
            known = (Verdict.SAME, "") if inside else (Verdict.AMBIGUOUS, "one round is too few to tell")
            return known[0], Cause.NONE, known[1]
        verdict = decide(ratios, self.case.min_effect)
        moved = _canary_spread(self.rounds)
        if verdict in _MOVED and moved > CANARY_SPREAD[self.case.backend] and not _beyond(change, moved):
            return Verdict.AMBIGUOUS, Cause.DEVICE, f"the canary moved by {100 * moved:.0f} % between rounds"
        if verdict is not Verdict.SAME and (alone := one_device_only(self._by_device(variant), self.case.min_effect)):
            return Verdict.AMBIGUOUS, Cause.DEVICE, alone
        if verdict is Verdict.AMBIGUOUS and min(ratios) < 1 < max(ratios):
            return verdict, Cause.NONE, "the rounds disagree"
        return verdict, Cause.NONE, ""

    def _why(self, variant: str, change: float) -> str:
        base = facts(self.rounds, "base", variant, self.base)
        said = why(base, facts(self.rounds, "head", variant, self.head), change, self.case.min_effect)
        limit = 1 + self.case.min_effect
        if 1 / limit < change < limit or not self._same_code(variant):
            return said
        return "; ".join(filter(None, ("equal compiled code and geometry: look at arguments and data", said)))

    def _by_device(self, variant: str) -> dict[str, list[float]]:
        found: dict[str, list[float]] = {}
        for part in self.rounds:
            if (ratio := part.ratio(*_pair(variant))) is not None:
                found.setdefault(part.result.device_uuid, []).append(ratio)
        return found

    def _baseline_verdict(self) -> Verdict:
        """Whether the baseline variant itself moved; with fewer than two rounds it is taken not to have."""
        ratios = _ratios(self.rounds, self.case.baseline)
        if len(ratios) < 2 or self._same_sources(self.case.baseline):
            return Verdict.SAME
        return decide(ratios, self.case.min_effect)

    def _with_cause(self, finding: Finding, baseline: Verdict) -> Finding:
        verdict, identical = finding.verdict, self._identical(finding)
        if identical:
            verdict = Verdict.SAME
        cause = finding.cause if verdict is Verdict.AMBIGUOUS else _CAUSES.get(("variant", verdict), Cause.NONE)
        if verdict is Verdict.SAME:
            cause = _CAUSES.get(("baseline", baseline), Cause.IDENTICAL_CODE if identical else Cause.NONE)
        elif cause not in (Cause.NONE, Cause.DEVICE) and ("baseline", baseline) in _CAUSES:
            cause = Cause.BOTH
        message = "" if identical else finding.message
        if cause in (Cause.UNFUSED_FASTER, Cause.UNFUSED_SLOWER):
            message = _baseline_moved(finding, self.case.baseline)
        return msgspec.structs.replace(finding, verdict=verdict, cause=cause, message=message)

    def _identical(self, finding: Finding) -> bool:
        """Equal sources, of equal compiled code; or equal compiled code and geometry that show no change.

        What is launched may still be given other arguments or data, so equal code alone does not speak against what
        was measured.
        """
        change = finding.change
        unclear = finding.verdict is Verdict.AMBIGUOUS and change is not None and change.low <= 1 <= change.high
        still = finding.verdict is Verdict.SAME or unclear
        return self._same_sources(finding.variant) or (still and self._same_code(finding.variant))

    def _same_code(self, variant: str) -> bool:
        used = self._used(variant)
        return bool(used) and all(_same_code(part, variant) for part in used)

    def _same_sources(self, variant: str) -> bool:
        """Equal in every round, and nothing else was compiled of them."""
        equal = bool(self.rounds) and all(_same_sources(part.result) for part in self.rounds)
        return equal and not any(_differs_compiled(part, variant) for part in self._used(variant))

    def _used(self, variant: str) -> list[Round]:
        return [part for part in self.rounds if part.ratio(*_pair(variant)) is not None]

    def _say(self, variant: str, verdict: Verdict, message: str = "", cause: Cause = Cause.NONE) -> Finding:
        """A finding with whatever times and errors there are."""
        baseline = self.case.baseline
        # what is broken has its message, and an error that may be of the wrong answer
        errors = [] if verdict in (Verdict.FAILED, Verdict.WRONG) else accuracy.errors(self.rounds, variant)
        return Finding(
            suite=self.case.suite,
            case_key=self.case.key,
            device_class=self.device_class,
            variant=variant,
            verdict=verdict,
            cause=cause,
            message=message,
            head_s=self._time_s("head", variant),
            base_s=self._time_s("base", variant),
            baseline_head_s=self._time_s("head", baseline),
            baseline_base_s=self._time_s("base", baseline),
            speedup_head=self._speedup("head", variant),
            speedup_base=self._speedup("base", variant),
            min_effect=self.case.min_effect,
            rounds=len(measured(self.rounds, "head", variant)),
            error_head=max((head for head, _ in errors), default=None),
            error_base=max((base for _, base in errors), default=None),
            accuracy=accuracy.decide(errors, accuracy.floor_of(self.case)),
        )

    def _time_s(self, side: Side, variant: str) -> float | None:
        times = [seconds for part in self.rounds if (seconds := part.time_s(side, variant)) is not None]
        return stats.median(times) if times else None

    def _speedup(self, side: Side, variant: str) -> float | None:
        speedup = ratio_over_rounds(self.rounds, (side, self.case.baseline), (side, variant))
        return speedup.point if speedup and variant != self.case.baseline else None


def _pair(variant: str) -> tuple[Key, Key]:
    return ("head", variant), ("base", variant)


def _ratios(rounds: Sequence[Round], variant: str) -> list[float]:
    return [ratio for part in rounds if (ratio := part.ratio(*_pair(variant))) is not None]


def _ending(status: Status) -> str:
    return {Status.FAILED: "fails"}.get(status, f"is {status.value}")


def _baseline_moved(finding: Finding, baseline: str) -> str:
    change, before, after = finding.baseline_change, finding.speedup_base, finding.speedup_head
    if change is None or before is None or after is None:
        return f"{baseline} moved"
    return f"speedup {before:.2f}x -> {after:.2f}x because {baseline} got {spell(change.point)}"


def _beyond(change: Interval, moved: float) -> bool:
    """Whether the whole interval is further from 1 than the canary moved, which then cannot be the reason for it."""
    return max(change.low, 1 / change.high) > 1 + moved


def _canary_spread(rounds: Sequence[Round]) -> float:
    """Largest relative difference between the canary medians of two rounds of one card."""
    by_card: dict[str, list[float]] = {}
    for part in rounds:
        seconds = part.canary_s()
        if seconds:
            by_card.setdefault(part.result.device_uuid, []).append(seconds)
    return max((max(card) / min(card) - 1 for card in by_card.values()), default=0.0)


def _same_sources(result: JobResult) -> bool:
    head, base = result.source_digest.get("head"), result.source_digest.get("base")
    return bool(head) and head == base


def _same_code(part: Round, variant: str) -> bool:
    head, base = (part.measurements[key].resources.code_digest for key in _pair(variant))
    return head is not None and head == base


def _differs_compiled(part: Round, variant: str) -> bool:
    """Whether anything that is known of the compiled code of one side is not so of the other."""
    head, base = (part.measurements[key].resources for key in _pair(variant))
    return head != base

"""From suspicions to answers: what is measured again, and what fresh rounds make of it.

The first look (three rounds, 95 %) is allowed to be wrong; its only effect is a second look. With no change at all
and noise as large as the minimum effect it suspects up to 2.5 % of the cases of being slower, and calls the rest
ambiguous. The second look uses fresh processes only: the rounds that raised a suspicion are biased towards it.

A slowdown is confirmed where the fresh rounds

- give a p-value that stays ≤ 1 % after the correction of Benjamini and Hochberg over all suspects of the run. So
  whatever the number of cases, at most 1 % of unchanged runs have any false alarm, slower or faster, and at most 0.5 %
  a false red (Gaussian rounds; heavy tails make Student's t more careful still); where one cause slows many cases, at
  most 1 % of what is confirmed is expected to be chance, and the hundredth case needs no more evidence than the first;
- show at least the case's minimum effect, which noise far below it cannot do however small the p-value;
- and every round, of both looks, lies on the same side of 1. This is the guard against kernels with two modes
  (alignment, placement) that each side of each process draws anew: if the two modes are equally likely, five
  rounds all favour one side with chance 1/1000 and no spread at all to warn of it; eight do with 1/8000.

What failed or was wrong is measured again once: where it still is, it is confirmed, even if a round of either look was
right. What is fine then is measured as often as a suspected slowdown, and one bad round confirms it; data differ from
round to round, so a kernel that is wrong for some of them shows. Where none is bad it is `flaky`, which leaves the run
incomplete: a side that is bad once in eight rounds is not told from one that is bad as often and was lucky.

It is sequential: what is the same after `EARLY_ROUNDS` fresh ones stops there, and stays in the family that the rest is
corrected for. A slowdown is never clear before the last round: that is what the guard against two modes needs.

What it costs a slowdown that is alone among m suspects: with five fresh rounds of spread s and 1 % / m, the half-width
is 2.1 s for one suspect, 3.9 s for ten and 5.8 s for fifty; less where others are slow too. At the 0.12 % measured on
an H200 a change of twice the minimum effect of 2 % is never missed; at s = 0.5 % among ten suspects a change of 5 % is
found in more than 99 of 100. A change of exactly the minimum effect is found in half of the cases, by definition of a
minimum. The tests simulate all of this.
"""

from collections.abc import Collection, Iterable, Sequence

import msgspec

from perftrack import stats
from perftrack.judge.value import FLAKY, Finding, Interval, spell
from perftrack.model import Accuracy, Cause, Verdict

FAMILY_ALPHA = 0.01
"""Chance of any false confirmation in a run without changes."""

EARLY_ROUNDS = 3
"""Fresh rounds after which a case that shows no change is left alone."""

NO_TIME = "not looked at again"
"""How the message of a suspect begins for which the second look had no time."""

_MOVED = (Verdict.SLOWER, Verdict.FASTER)
_BROKEN = (Verdict.FAILED, Verdict.WRONG)
_UNMEASURED = (Verdict.MISSING, Verdict.UNSTABLE, Verdict.REMOVED, Verdict.NEW)

Key = tuple[str, str, str, str]


def suspects(findings: Iterable[Finding], told: Collection[Key] = ()) -> list[Finding]:
    """What deserves fresh rounds, most urgent first: slower, newly broken, ambiguous, faster; then what is the same.

    Of the last only those `told` by their histories, and not what is equal code.
    """
    order = (Verdict.SLOWER, Verdict.FAILED, Verdict.WRONG, Verdict.AMBIGUOUS, Verdict.FASTER, Verdict.SAME)
    chosen = [
        one
        for one in findings
        if one.verdict in order
        and (one.newly or one.verdict not in _BROKEN)
        and (one.verdict is not Verdict.SAME or (key(one) in told and one.cause is not Cause.IDENTICAL_CODE))
    ]
    return sorted(chosen, key=lambda one: order.index(one.verdict))


def settle(
    first: Sequence[Finding], second: Sequence[Finding], told: Collection[Key] = (), *, alpha: float = FAMILY_ALPHA
) -> list[Finding]:
    """The first look's findings, each suspect replaced by what the fresh rounds of `second` say of it.

    Findings of `second` about anything that was not suspected are ignored. A suspect without a second finding, or
    whose fresh rounds were lost, stays what it was, unconfirmed. `alpha`: this family's share of false confirmations.
    """
    suspected = {key(one) for one in suspects(first, told)}
    fresh = {key(one): one for one in second if key(one) in suspected}
    tested = [one for one in fresh.values() if len(one.ratios) > 1]
    p_values = stats.benjamini_hochberg([stats.ratio_p_value(one.ratios) for one in tested])
    significant = {key(one) for one, p in zip(tested, p_values, strict=True) if p <= alpha}
    return [
        _with_accuracy(_settle(one, look, significant=key(one) in significant), one, look)
        if (look := fresh.get(key(one)))
        else one
        for one in first
    ]


def unclear(early: Iterable[Finding], suspected: Collection[Key]) -> set[tuple[str, str, str]]:
    """Suite, case key and device class of the cases that go on after the early fresh rounds, as `settle` saw them."""
    clear = (Verdict.SAME, *_BROKEN)
    return {key(one)[:3] for one in early if key(one) in suspected and one.verdict not in clear}


def key(finding: Finding) -> Key:
    """Suite, case key, device class and variant that a finding is about."""
    return (finding.suite, finding.case_key, finding.device_class, finding.variant)


def _settle(first: Finding, second: Finding, *, significant: bool) -> Finding:
    if second.verdict in _UNMEASURED:
        note = f"not confirmed: the fresh rounds gave no answer ({second.message or second.verdict.value})"
        return msgspec.structs.replace(first, message="; ".join(filter(None, (first.message, note))))
    if second.verdict in _BROKEN:
        return _broken(first, second)
    if first.verdict in _BROKEN:
        note = f"{FLAKY}: {first.verdict.value} in the first look ({first.message}), fine in "
        note += f"{second.rounds} fresh round{'s' if second.rounds > 1 else ''}"
        return msgspec.structs.replace(second, verdict=Verdict.AMBIGUOUS, message=note, cause=Cause.NONE)
    if second.verdict not in _MOVED:
        return _cleared(first, second)
    if significant and _agree(first.ratios, second.ratios):
        change = Interval(*stats.ratio_interval(second.ratios, 1 - FAMILY_ALPHA))
        return msgspec.structs.replace(second, confirmed=True, change=change)
    why = "not beyond chance among this run's suspects" if not significant else "the first rounds disagree"
    return _cleared(first, msgspec.structs.replace(second, verdict=Verdict.AMBIGUOUS), why)


def _broken(first: Finding, second: Finding) -> Finding:
    """Broken in fresh rounds; that it was right in others of either look is said, and counted in its rounds."""
    right = first.rounds + second.rounds
    note = f"{FLAKY}, fine in {right} other round{'s' if right > 1 else ''}" if right else ""
    return msgspec.structs.replace(
        second,
        confirmed=first.verdict in _BROKEN,
        rounds=right,
        message="; ".join(filter(None, (second.message, note))),
    )


def _with_accuracy(settled: Finding, *looks: Finding) -> Finding:
    """What every look says of the errors that has checked them."""
    if settled.verdict in _BROKEN:
        return msgspec.structs.replace(settled, error_head=None, error_base=None, accuracy=Accuracy.NONE)
    heads = [one.error_head for one in looks if one.error_head is not None]
    bases = [one.error_base for one in looks if one.error_base is not None]
    said = {one.accuracy for one in looks if one.error_head is not None}
    return msgspec.structs.replace(
        settled,
        error_head=max(heads, default=None),
        error_base=max(bases, default=None),
        accuracy=said.pop() if len(said) == 1 else Accuracy.NONE,
    )


def _agree(first: Sequence[float], second: Sequence[float]) -> bool:
    ratios = (*first, *second)
    return min(ratios) > 1 or max(ratios) < 1


def _cleared(first: Finding, second: Finding, why: str = "") -> Finding:
    said = f"{first.rounds} rounds said {_spell(first)}, {second.rounds} fresh rounds say {_spell(second)}"
    cause = second.cause if second.verdict is Verdict.SAME or second.cause is Cause.DEVICE else Cause.NONE
    message = "; ".join(filter(None, (said, why or second.message)))
    return msgspec.structs.replace(second, message=message, cause=cause)


def _spell(finding: Finding) -> str:
    return finding.verdict.value if finding.change is None else spell(finding.change.point)

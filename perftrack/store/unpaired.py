"""Two stored summaries of one series, measured at different times: what can be said without pairing them.

Cautious on purpose. The bounds of a change are those of the outer tenths of both distributions of samples,
and nothing is called slower or faster across a border of method or environment: that takes head and base
measured side by side, which is what `perftrack submit` does.
"""

from perftrack.judge.value import Interval, Summary
from perftrack.model import Cause, Status, Verdict
from perftrack.store.value import StoredSummary

_UNTIMED = {
    Status.WRONG: Verdict.WRONG,
    Status.FAILED: Verdict.FAILED,
    Status.INVALID: Verdict.FAILED,
    Status.UNSTABLE: Verdict.UNSTABLE,
    Status.SKIPPED: Verdict.MISSING,
    Status.INFRA: Verdict.MISSING,
}
_CAUSES = {Verdict.SLOWER: Cause.FUSED_SLOWER, Verdict.FASTER: Cause.FUSED_FASTER}


def change(base: Summary, head: Summary) -> Interval | None:
    """Head time ÷ base time (> 1: slower) with its outer bounds; None where a time is missing."""
    times = (base.time_s, base.q10_s, base.q90_s, head.time_s, head.q10_s, head.q90_s)
    if None in times:
        return None
    base_s, base_q10, base_q90, head_s, head_q10, head_q90 = (time or 0.0 for time in times)
    return Interval(head_s / base_s, head_q10 / base_q90, head_q90 / base_q10)


def verdict(base: StoredSummary | None, head: StoredSummary | None) -> tuple[Verdict, Cause]:
    """What two points of one series say about head; None is a revision that has no such point."""
    status = head.summary.status if head else Status.SKIPPED
    if head is None or status is not Status.OK:
        return _UNTIMED[status], Cause.NONE
    if base is None or base.summary.status is not Status.OK:
        return Verdict.NEW, Cause.NONE
    moved = change(base.summary, head.summary)
    if moved is None:
        return Verdict.AMBIGUOUS, Cause.NONE
    found = _decide(moved, 1 + head.min_effect)
    if found is Verdict.SAME:
        return found, _baseline_cause(base.summary, head.summary, 1 + head.min_effect)
    border = _border(base, head)
    return (found, _CAUSES.get(found, Cause.NONE)) if border is Cause.NONE else (Verdict.AMBIGUOUS, border)


def _decide(moved: Interval, limit: float) -> Verdict:
    if 1 / limit <= moved.low and moved.high <= limit:
        return Verdict.SAME
    if moved.low > 1 and moved.point >= limit:
        return Verdict.SLOWER
    return Verdict.FASTER if moved.high < 1 and moved.point <= 1 / limit else Verdict.AMBIGUOUS


def _border(base: StoredSummary, head: StoredSummary) -> Cause:
    if base.method_digest != head.method_digest:
        return Cause.METHOD
    if base.summary.environment_digest != head.summary.environment_digest:
        return Cause.ENVIRONMENT
    return Cause.NONE


def _baseline_cause(base: Summary, head: Summary, limit: float) -> Cause:
    """Why the speedup moved although the variant did not."""
    if base.baseline_s is None or head.baseline_s is None:
        return Cause.NONE
    ratio = head.baseline_s / base.baseline_s
    if ratio > limit:
        return Cause.UNFUSED_SLOWER
    return Cause.UNFUSED_FASTER if ratio < 1 / limit else Cause.NONE

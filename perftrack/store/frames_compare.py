"""Rows of the frame `compare`: two revisions, candidate by candidate."""

from collections.abc import Sequence
from typing import Any

from perftrack.declare import NEVER_GATED
from perftrack.judge.value import Finding, Interval
from perftrack.store import unpaired
from perftrack.store.value import StoredSummary

_Key = tuple[str, str, str, str]


def rows(
    base: Sequence[StoredSummary], head: Sequence[StoredSummary], findings: Sequence[Finding]
) -> list[tuple[Any, ...]]:
    """In the store's units and the order of the columns; a finding goes before what two summaries say."""
    before, after = _newest(base), _newest(head)
    judged = {(one.suite, one.case_key, one.device_class, one.variant): one for one in findings}
    return [
        (*key, *(_paired(judged[key]) if key in judged else _unpaired(before.get(key), after.get(key))))
        for key in sorted({*before, *after})
    ]


def _newest(points: Sequence[StoredSummary]) -> dict[_Key, StoredSummary]:
    """The newest summary of each candidate; of a commit compared with itself, the head's."""
    found: dict[_Key, StoredSummary] = {}
    for point in sorted(points, key=lambda point: (point.measured_us, point.summary.side == "head")):
        one = point.summary
        if one.variant not in {*NEVER_GATED, point.baseline}:
            found[one.suite, one.case_key, one.device_class, one.variant] = point
    return found


def _paired(found: Finding) -> tuple[Any, ...]:
    return (
        found.base_s,
        found.head_s,
        found.baseline_base_s,
        found.baseline_head_s,
        found.speedup_base,
        found.speedup_head,
        *_changes(found.speedup_base, found.speedup_head, found.change),
        found.verdict.value,
        found.cause.value,
        True,
        found.message,
        *_errors(found.error_base, found.error_head),
        found.accuracy.value,
    )


def _unpaired(base: StoredSummary | None, head: StoredSummary | None) -> tuple[Any, ...]:
    before, after = (point.summary if point else None for point in (base, head))
    speedups = [one.speedup.point if one and one.speedup else None for one in (before, after)]
    verdict, cause = unpaired.verdict(base, head)
    return (
        before.time_s if before else None,
        after.time_s if after else None,
        before.baseline_s if before else None,
        after.baseline_s if after else None,
        *speedups,
        *_changes(speedups[0], speedups[1], unpaired.change(before, after) if before and after else None),
        verdict.value,
        cause.value,
        False,
        after.message if after else "",
        *_errors(before.error_l2 if before else None, after.error_l2 if after else None),
        "",
    )


def _errors(before: float | None, after: float | None) -> tuple[float | None, ...]:
    """Both errors and the relative change, which an error of 0 has not."""
    return before, after, after / before - 1 if before and after is not None else None


def _changes(before: float | None, after: float | None, time: Interval | None) -> tuple[float | None, ...]:
    """Relative changes: of the speedup; of the variant's time with its bounds."""
    speedup = after / before - 1 if before and after else None
    return (speedup, time.point - 1, time.low - 1, time.high - 1) if time else (speedup, None, None, None)

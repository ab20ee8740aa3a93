"""Rows of the frame `regressions`: one regression, case by case."""

from collections.abc import Iterator
from typing import Any

from perftrack.judge import life
from perftrack.judge.life import Regression, State
from perftrack.store.frames_columns import UNPLACED


def rows(one: Regression, now_us: int) -> Iterator[tuple[Any, ...]]:
    """In the store's units and the order of the columns."""
    position = one.found.position
    for case in one.cases():
        seen = one.of(case)
        there = [each for each in seen if not each.gone]
        last = there[-1] if there else seen[-1]
        standing = life.standing(one, case, now_us)
        mark = standing.mark
        fixed = seen[-1] if standing.state is State.FIXED else None
        yield (
            one.id,
            one.repo,
            standing.state.value,
            one.kind.value,
            one.device_class,
            case.suite,
            case.case_key,
            case.variant,
            one.found.sha,
            UNPLACED if position is None else position,
            one.base.sha if one.base else None,
            one.found_us,
            last.level,
            *(last.finding.base_s, last.finding.head_s),
            *(last.finding.error_base, last.finding.error_head),
            last.finding.cause.value,
            last.finding.why,
            last.finding.message,
            *((mark.reason, mark.author, mark.at_us, mark.until_us) if mark else ("", "", None, None)),
            standing.again,
            *(last.head.sha, last.at_us, last.run_uid),
            *((fixed.head.sha, fixed.at_us) if fixed else (None, None)),
        )

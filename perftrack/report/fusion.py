"""What fusion brings, suite by suite: geometric means over the cases of one device class."""

from collections.abc import Iterable, Mapping, Sequence

from perftrack import stats
from perftrack.declare import NEVER_GATED
from perftrack.judge.value import Interval, Summary
from perftrack.model import Case, Status
from perftrack.report.value import SuiteLine

NO_GAIN = 1.05
"""A fusion gain below this is none worth having: two well-made kernels of one traffic differ by as much."""

_Summaries = Mapping[tuple[str, str, str], Summary]
"""By (suite, case key, variant): of the head, on one device class."""


def suite_lines(cases: Iterable[Case], head: _Summaries) -> tuple[SuiteLine, ...]:
    """One line for each suite with a measured case, in order of the suites' names."""
    by_suite: dict[str, dict[str, Summary]] = {}
    for case in cases:
        if (leading := _leading(case, head)) is not None:
            by_suite.setdefault(case.suite, {})[case.key] = leading
    return tuple(_line(suite, list(found.values())) for suite, found in sorted(by_suite.items()))


def _leading(case: Case, head: _Summaries) -> Summary | None:
    """The candidate declared first that has a time."""
    names = (name for name in case.variants if name not in (case.baseline, *NEVER_GATED))
    found = (head.get((case.suite, case.key, name)) for name in names)
    return next((one for one in found if one is not None and one.status is Status.OK), None)


def _line(suite: str, measured: Sequence[Summary]) -> SuiteLine:
    used = [one for one in measured if one.fusion_gain and not one.cached]
    gains = _points(one.fusion_gain for one in used)
    return SuiteLine(
        suite=suite,
        cases=len(used),
        measured=len(measured),
        vectorisation=_mean(_points(one.vectorisation for one in used)),
        fusion_gain=_mean(gains),
        fusion_efficiency=_mean([one.fusion_efficiency for one in used if one.fusion_efficiency]),
        no_gain=sum(gain < NO_GAIN for gain in gains),
    )


def _points(intervals: Iterable[Interval | None]) -> list[float]:
    return [interval.point for interval in intervals if interval is not None]


def _mean(values: Sequence[float]) -> float | None:
    return stats.geometric_mean(values) if values else None

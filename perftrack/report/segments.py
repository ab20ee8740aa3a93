"""A history in segments: the level of each, how it differs from the one before, and what began it."""

from collections.abc import Sequence
from itertools import pairwise

from perftrack import stats
from perftrack.report.value import History, HistoryPoint, Segment


def borders(points: Sequence[HistoryPoint]) -> list[int]:
    """Where another environment or method starts: the first measured point of it."""
    measured = [(at, point) for at, point in enumerate(points) if point.time_s is not None and not point.aside]
    return [index for (_, before), (index, point) in pairwise(measured) if before.segment != point.segment]


def segments(history: History) -> tuple[Segment, ...]:
    """Oldest first. A step is told only inside one environment and method: elsewhere it is not the code's."""
    points = history.points
    edges = sorted({0, *borders(points), *(index for index, _ in history.changes), len(points)})
    made: list[Segment] = []
    before: HistoryPoint | None = None
    for start, end in pairwise(edges):
        part = [point for point in points[start:end] if not point.aside]
        measured = [point for point in part if point.time_s is not None]
        if not measured:
            continue
        kind = began(before, measured[0])
        time_s = stats.median([point.time_s for point in measured if point.time_s is not None])
        level = made[-1].time_s if made and kind == "change" else None
        speedups = [point.speedup for point in measured if point.speedup is not None]
        made.append(
            Segment(
                first=measured[0].revision,
                last=measured[-1].revision,
                subject=measured[0].subject,
                revisions=len({point.revision for point in part}),
                measured=len({point.revision for point in measured}),
                time_s=time_s,
                speedup=stats.median(speedups) if speedups else None,
                step=time_s / level if level else None,
                began=kind,
            )
        )
        before = measured[-1]
    return tuple(made)


def began(before: HistoryPoint | None, point: HistoryPoint) -> str:
    """What tells a point from the measured one before: `other environment`, `other method`, both, or a `change`."""
    if before is None:
        return ""
    sides = (one.segment.partition("/")[::2] for one in (before, point))
    kinds = [
        name
        for name, (one, other) in zip(("environment", "method"), zip(*sides, strict=True), strict=True)
        if one != other
    ]
    return f"other {' and '.join(kinds)}" if kinds else "change"

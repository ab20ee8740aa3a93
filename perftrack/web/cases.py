"""Every series with its sparkline, and the history of one case."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec
from markupsafe import Markup

from perftrack import chart
from perftrack.declare import NEVER_GATED
from perftrack.errors import UsageError
from perftrack.foreign import plain
from perftrack.judge.life import Regression
from perftrack.pipeline.life import rows_of as regression_rows
from perftrack.pipeline.reports import histories_of, newest_histories
from perftrack.report import tables, words
from perftrack.report.commands import measure_again
from perftrack.report.segments import borders, segments
from perftrack.report.value import History, HistoryPoint, Segment
from perftrack.store import Store, overview
from perftrack.store.glob import matching
from perftrack.store.overview import SeriesName
from perftrack.web.page import Page, Query
from perftrack.web.paging import part

ON_A_PAGE = 50
CLASSES_ON_A_PAGE = 2
"""Device classes of one case: each has its whole history looked through for changes of level."""

_SPARK_RUNS = 60
_POINTS = 500
_CASE_QUESTION = ("suite", "case", "device", "variant", "last")
_COMMIT = re.compile(r"[0-9a-f]{7,40}")


class CaseLine(msgspec.Struct, frozen=True, kw_only=True):
    """One series at a glance."""

    suite: str
    case: str
    device_class: str
    variant: str
    time_s: float | None
    """The newest."""
    speedup: float | None
    step: float | None
    """Time ÷ time of the level before the newest change of level; None where there is no change among what is drawn."""
    step_at: str
    measured: int
    """Of the newest runs' revisions, those with a time."""


def cases(store: Store, query: Query) -> Page:
    """A page of series, by suite and case, with the newest runs drawn."""
    wanted = {name: query.text(name) for name in ("suite", "device", "case")}
    names = [one for one in store.series_names() if one.variant != one.baseline and one.variant not in NEVER_GATED]
    chosen = _matching(names, wanted)
    pages = max(1, -(-len(chosen) // ON_A_PAGE))
    number = min(query.number("page", 1, high=100_000), pages)
    shown = chosen[(number - 1) * ON_A_PAGE : number * ON_A_PAGE]
    found = newest_histories(store, shown, runs=_SPARK_RUNS)
    lines = [_line(one) for one in found]
    return Page(
        template="cases.html.j2",
        title="Cases",
        data=lines,
        header=CaseLine.__struct_fields__,
        rows=[msgspec.structs.astuple(line) for line in lines],
        extra={
            "drawn": list(zip(lines, [_spark(one) for one in found], strict=True)),
            "suites": sorted({one.suite for one in names}),
            "devices": sorted({one.device_class for one in names}),
            "asked": wanted,
            "total": len(chosen),
            "page": number,
            "pages": pages,
            "runs": _SPARK_RUNS,
        },
    )


def _matching(names: Sequence[SeriesName], wanted: dict[str, str]) -> list[SeriesName]:
    """Suite and device class by name, the case by name, part of it, or a pattern with * and ?."""
    pattern = wanted["case"]
    keys = {one.case for one in names}
    fitting = set(matching(pattern, keys)) | {key for key in keys if pattern in key}
    return [
        one
        for one in names
        if one.case in fitting and wanted["suite"] in ("", one.suite) and wanted["device"] in ("", one.device_class)
    ]


def _line(series: History) -> CaseLine:
    measured = [point for point in series.points if point.time_s is not None]
    stepped = [part for part in segments(series) if part.step is not None]
    last = measured[-1] if measured else None
    return CaseLine(
        suite=series.suite,
        case=series.case,
        device_class=series.device_class,
        variant=series.variant,
        time_s=last.time_s if last else None,
        speedup=last.speedup if last else None,
        step=stepped[-1].step if stepped else None,
        step_at=stepped[-1].first if stepped else "",
        measured=len(measured),
    )


def _spark(series: History) -> Markup:
    return _drawn(series, width=160, height=28)


def _drawn(series: History, **size: int) -> Markup:
    what, values = tables.drawn(series)
    return _svg(series, what, values, **size)


def _svg(series: History, what: str, values: Sequence[float | None], **size: int) -> Markup:
    known = sum(value is not None for value in values)
    title = plain(
        f"{what} of {series.case} {series.variant} on {series.device_class}: {known} of {len(values)} measurements, "
        f"{len(series.changes)} changes of level"
    )
    image = chart.svg(
        values,
        title=title,
        borders=borders(series.points),
        changes=[index for index, _ in series.changes],
        **size,
    )
    return Markup(image)  # noqa: S704 - numbers, and a title that is escaped there


def case(store: Store, query: Query) -> Page:
    """The histories of one case: a chart, segments and revisions for each device class and variant."""
    name = query.needed("case", "give a whole case and perhaps its suite, as the list of cases links to it")
    suite, device, variant = (query.text(one) for one in ("suite", "device", "variant"))
    last = query.number("last", 200, high=100_000)
    places = [
        place for place in store.read(lambda connection: overview.places(connection, name)) if suite in ("", place[0])
    ]
    if not places:
        where = f" in the suite {suite!r}" if suite else ""
        raise UsageError(f"the store has no results of {name!r}{where}; the list of cases has what it has")
    classes = [one for one in sorted({one for _, one in places}) if device in ("", one)]
    if not classes:
        known = ", ".join(sorted({one for _, one in places}))
        raise UsageError(f"the store has no results of {name!r} on {device!r}; it has some on {known}")
    chosen = part(query, classes, CLASSES_ON_A_PAGE)
    shown = [one for device_class in chosen.items for one in _on(store, name, suite, device_class, variant, last)]
    if not shown:
        raise UsageError(
            f"the store has no results of the variant {variant!r} of {name!r} on {', '.join(chosen.items)}"
        )
    concerned = [one for one in store.regressions() if _concerns(one, name, suite, device)]
    return Page(
        template="case.html.j2",
        title=name or "(a case without a name)",
        data=shown,
        header=("suite", "case", "device_class", "variant", *HistoryPoint.__struct_fields__, "change"),
        rows=[row for one in shown for row in _rows(one)],
        extra={
            "charts": [_chart(one) for one in shown],
            "regressions": regression_rows(concerned, everything=True),
            "suites": sorted({one for one, _ in places}),
            "devices": sorted({one for _, one in places}),
            "part": chosen,
            "further": {name: value for name, value in query.values.items() if name in _CASE_QUESTION},
            "asked": {"suite": suite, "device": device, "variant": variant},
            "case": name,
            "segment_columns": tables.SEGMENTS,
            "point_columns": tables.POINTS,
        },
    )


def _on(store: Store, name: str, suite: str, device_class: str, variant: str, last: int) -> list[History]:
    """The histories on one device class; none where that has not the variant."""
    try:
        found = histories_of(store, name, device=device_class, variant=variant, last=last)
    except UsageError:
        return []
    return [one for one in found if suite in ("", one.suite) and one.device_class == device_class]


def _concerns(one: Regression, case: str, suite: str, device: str) -> bool:
    return device in ("", one.device_class) and any(
        each.case.case_key == case and suite in ("", each.case.suite) for each in one.sightings
    )


def _rows(series: History) -> list[tuple[Any, ...]]:
    changes = dict(series.changes)
    return [
        (
            *(series.suite, series.case, series.device_class, series.variant),
            *(getattr(value, "value", value) for value in msgspec.structs.astuple(point)),
            changes.get(index, ""),
        )
        for index, point in enumerate(series.points)
    ]


def _chart(series: History) -> dict[str, Any]:
    """What the template shows of one series: both pictures, its range in words, segments, measurements."""
    what, values = tables.drawn(series)
    parts = segments(series)
    times = [point.time_s for point in series.points]
    pictures = [(what, _range(what, values), _svg(series, what, values, width=960, height=140))]
    if what != "time":
        pictures.append(("time", _range("time", times), _svg(series, "time", times, width=960, height=90)))
    return {
        "series": series,
        "pictures": pictures,
        "measured": len({point.revision for point in series.points if point.time_s is not None}),
        "revisions": len({point.revision for point in series.points}),
        "segments": [(part.first, tables.segment(part)) for part in parts],
        "points": list(zip(reversed(series.points), tables.points(series.points), strict=True))[:_POINTS],
        "last": _last_step(parts),
        "again": _again(series, parts),
    }


def _last_step(parts: Sequence[Segment]) -> str:
    """The newest change of level in one sentence; empty where there is none."""
    stepped = [part for part in parts if part.step is not None]
    if not stepped or stepped[-1].step is None:
        return ""
    last = stepped[-1]
    return f"{words.effect(stepped[-1].step)} since {last.first}: {last.subject}"


def _again(series: History, parts: Sequence[Segment]) -> str:
    """The command that measures the newest step side by side; empty where there is none between two commits."""
    at = next((index for index in range(len(parts) - 1, 0, -1) if parts[index].step is not None), 0)
    if not at:
        return ""
    base, head = parts[at - 1].last, parts[at].first
    if not (_COMMIT.fullmatch(base) and _COMMIT.fullmatch(head)):
        return ""
    return measure_again(series.suite, series.case, series.device_class, head=head, base=base)


def _range(what: str, values: Sequence[float | None]) -> str:
    """`1.94x to 2.31x`."""
    known = [value for value in values if value is not None]
    if not known:
        return "nothing measured"
    if what == "time":
        return f"{words.microseconds(min(known))} to {words.microseconds(max(known))} µs"
    return f"{words.times(min(known))} to {words.times(max(known))}"

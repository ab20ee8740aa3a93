"""What fusion brings on one device class: by benchmark, and against size, so that one sees where it starts to pay."""

from collections.abc import Iterable, Sequence

import msgspec
from markupsafe import Markup

from perftrack import stats
from perftrack.declare import case_key
from perftrack.errors import UsageError
from perftrack.model import Scalar
from perftrack.report import words
from perftrack.report.fusion import NO_GAIN
from perftrack.store import Store
from perftrack.store.latest import Latest
from perftrack.web import plot
from perftrack.web.newest import LOOKED_THROUGH, asked, classes, newest, role, variant_order
from perftrack.web.page import Page, Query
from perftrack.web.paging import part

ON_A_PAGE = 100


class FusionLine(msgspec.Struct, frozen=True, kw_only=True):
    """One candidate of one benchmark: geometric means over its cases that do not fit the cache."""

    suite: str
    benchmark: str
    variant: str
    cases: int
    used: int
    """Those that do not fit the cache, and so are in the means; where all of them fit, all are."""
    speedup: float | None
    vectorisation: float | None
    fusion_gain: float | None
    expected_gain: float | None
    fusion_efficiency: float | None


class SizePoint(msgspec.Struct, frozen=True, kw_only=True):
    """One candidate at one size."""

    suite: str
    case: str
    benchmark: str
    variant: str
    kind: str
    """The axes that are no numbers, such as `dtype=float16`."""
    min_bytes: int
    time_s: float
    speedup: float | None
    fusion_gain: float | None
    """None where the benchmark has no variant `steps`."""
    expected_gain: float | None
    fusion_efficiency: float | None
    cached: bool
    revision: str
    run: str


class Onset(msgspec.Struct, frozen=True, kw_only=True):
    """From which size on one candidate pays: there and at every larger size it gains 5 % or more."""

    variant: str
    kind: str
    by: str
    """`fusion gain`, or `speedup` where the benchmark has no variant `steps`."""
    sizes: int
    """Cases that were measured."""
    from_bytes: int | None
    """bytes_min of the first one; None where it does not gain at the largest."""
    least_bytes: int


class Fusion(msgspec.Struct, frozen=True, kw_only=True):
    """Of a device class, or of one suite or benchmark on it."""

    device_class: str
    lines: tuple[FusionLine, ...]
    points: tuple[SizePoint, ...]
    onsets: tuple[Onset, ...]
    """Only of one benchmark."""


def fusion(store: Store, query: Query) -> Page:
    """Every benchmark's fusion efficiency; of one benchmark, speedup and fusion gain against size."""
    found = newest(store, query)
    benchmark = query.text("benchmark")
    values = [one for one in found.values if role(one) == "candidate" and benchmark in ("", one.benchmark)]
    if benchmark and not values:
        raise UsageError(f"no benchmark {benchmark!r} was measured on {found.device_class!r} of late")
    points = tuple(_point(one) for one in values)
    lines = tuple(_lines(values))
    data = Fusion(
        device_class=found.device_class,
        lines=lines,
        points=points,
        onsets=tuple(_onsets(points)) if benchmark else (),
    )
    return Page(
        template="fusion.html.j2",
        title=f"Fusion of {benchmark or 'every benchmark'} on {found.device_class}" if values else "Fusion",
        data=data,
        header=("device_class", *SizePoint.__struct_fields__),
        rows=[(data.device_class, *msgspec.structs.astuple(point)) for point in points],
        extra={
            "part": part(query, [(line, _bar(line)) for line in lines], ON_A_PAGE),
            "pictures": list(_pictures(points, variant_order(values))) if benchmark else [],
            "onset": _onset_in_words,
            "size": size,
            "benchmark": benchmark,
            "suites": found.suites,
            "devices": classes(store.series_names()),
            "asked": asked(found, query),
            "runs": LOOKED_THROUGH,
        },
    )


def _point(one: Latest) -> SizePoint:
    result = one.summary
    return SizePoint(
        suite=result.suite,
        case=result.case_key,
        benchmark=one.benchmark,
        variant=result.variant,
        kind=_kind(one.params),
        min_bytes=one.traffic.min_bytes,
        time_s=result.time_s or 0.0,
        speedup=result.speedup.point if result.speedup else None,
        fusion_gain=result.fusion_gain.point if result.fusion_gain else None,
        expected_gain=result.expected_gain,
        fusion_efficiency=result.fusion_efficiency,
        cached=result.cached,
        revision=one.revision,
        run=one.run_uid,
    )


def _kind(params: dict[str, Scalar]) -> str:
    """What stays the same along a curve; numbers are sizes."""
    return case_key("", {name: value for name, value in params.items() if isinstance(value, (str, bool))}).strip("[]")


def _lines(values: Sequence[Latest]) -> Iterable[FusionLine]:
    groups: dict[tuple[str, str, str], list[Latest]] = {}
    for one in values:
        groups.setdefault((one.summary.suite, one.benchmark, one.summary.variant), []).append(one)
    for (suite, benchmark, variant), group in sorted(groups.items()):
        used = [one.summary for one in group if not one.summary.cached] or [one.summary for one in group]
        yield FusionLine(
            suite=suite,
            benchmark=benchmark,
            variant=variant,
            cases=len(group),
            used=len(used),
            speedup=_mean(one.speedup.point for one in used if one.speedup),
            vectorisation=_mean(one.vectorisation.point for one in used if one.vectorisation),
            fusion_gain=_mean(one.fusion_gain.point for one in used if one.fusion_gain),
            expected_gain=_mean(one.expected_gain for one in used if one.expected_gain),
            fusion_efficiency=_mean(one.fusion_efficiency for one in used if one.fusion_efficiency),
        )


def _mean(values: Iterable[float]) -> float | None:
    known = list(values)
    return stats.geometric_mean(known) if known else None


def _gain(point: SizePoint) -> float | None:
    return point.fusion_gain if point.fusion_gain is not None else point.speedup


def _onsets(points: Sequence[SizePoint]) -> Iterable[Onset]:
    groups: dict[tuple[str, str], list[SizePoint]] = {}
    for point in points:
        groups.setdefault((point.kind, point.variant), []).append(point)
    for (kind, variant), group in sorted(groups.items()):
        start = None
        for point in sorted(group, key=lambda one: -one.min_bytes):
            gain = _gain(point)
            if gain is None or gain < NO_GAIN:
                break
            start = point.min_bytes
        yield Onset(
            variant=variant,
            kind=kind,
            by="fusion gain" if any(point.fusion_gain is not None for point in group) else "speedup",
            sizes=len(group),
            from_bytes=start,
            least_bytes=min(point.min_bytes for point in group),
        )


def _onset_in_words(one: Onset) -> str:
    if one.from_bytes is None:
        return "not at the largest size"
    if one.from_bytes == one.least_bytes:
        return "at every size" if one.sizes > 1 else "at the one size measured"
    return f"from {size(one.from_bytes)} on"


def _pictures(points: Sequence[SizePoint], order: Sequence[str]) -> Iterable[tuple[str, Markup]]:
    """For each kind the speedup against size, and the fusion gain where there is one: caption and picture."""
    for kind in sorted({point.kind for point in points}):
        own = [point for point in points if point.kind == kind]
        where = f" of {kind}" if kind else ""
        for what, name in (("speedup", "speedup"), ("fusion gain", "fusion_gain")):
            curves = [plot.Curve(variant, _dots(own, variant, name)) for variant in order]
            curves = [curve for curve in curves if curve.dots]
            if curves:
                count = sum(len(curve.dots) for curve in curves)
                title = f"{what} against size{where}: {len(curves)} variants, {count} points"
                yield f"{what} against size{where}", _against_size(curves, what, title)


def _dots(points: Sequence[SizePoint], variant: str, name: str) -> list[plot.Dot]:
    return [
        plot.Dot(
            point.min_bytes,
            getattr(point, name),
            f"{point.case} {variant}: {words.times(getattr(point, name))}{', fits the cache' if point.cached else ''}",
            hollow=point.cached,
        )
        for point in points
        if point.variant == variant and getattr(point, name)
    ]


def _against_size(curves: Sequence[plot.Curve], what: str, title: str) -> Markup:
    dots = [dot for curve in curves for dot in curve.dots]
    x = plot.Axis.around("bytes_min of the case", size, [dot.x for dot in dots], at_least=4)
    y = plot.Axis.around(what, lambda value: f"{value:g}x", [1.0, *(dot.y for dot in dots)], at_least=2)
    level = (plot.Dot(x.low, 1.0, ""), plot.Dot(x.high, 1.0, ""))
    return plot.xy(curves, x, y, title=title, guides=[level])


def _bar(line: FusionLine) -> Markup | None:
    return plot.bar(line.fusion_efficiency, f"{line.benchmark} {line.variant}") if line.fusion_efficiency else None


def size(count: float) -> str:
    """`65.5 KB`, `1.5 GB`: powers of ten, as bandwidths have them."""
    for unit, one in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if count >= one * 0.9995:
            return f"{count / one:.3g} {unit}"
    return f"{count:.3g} B"

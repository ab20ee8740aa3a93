"""Where the variants of one device class stand: against its copy ceiling, and by arithmetic intensity."""

from collections.abc import Sequence

import msgspec
from markupsafe import Markup

from perftrack import stats
from perftrack.report import words
from perftrack.store import Store
from perftrack.store.latest import Latest
from perftrack.web import plot
from perftrack.web.newest import LOOKED_THROUGH, Role, asked, classes, newest, role, variant_order
from perftrack.web.page import Page, Query
from perftrack.web.paging import part

ON_A_PAGE = 100


class RooflinePoint(msgspec.Struct, frozen=True, kw_only=True):
    """One variant of one case. Bytes are bytes_min, each distinct byte once, whatever the variant moves."""

    suite: str
    case: str
    benchmark: str
    variant: str
    role: Role
    time_s: float
    min_bytes: int
    flops: int
    """0: the benchmark does not count them."""
    intensity_flops_per_byte: float | None
    bandwidth_bytes_per_s: float | None
    flops_per_s: float | None
    ceiling_bytes_per_s: float | None
    """The copy ceiling that the utilization is a share of."""
    utilization: float | None
    peak_utilization: float | None
    cached: bool
    revision: str
    run: str


class Roofline(msgspec.Struct, frozen=True, kw_only=True):
    """All of a device class, or of one suite on it."""

    device_class: str
    ceiling_bytes_per_s: float | None
    """Median of the copy ceilings of what does not fit the cache (of everything, where all of it fits)."""
    points: tuple[RooflinePoint, ...]


def roofline(store: Store, query: Query) -> Page:
    """Two pictures and a table of one device class: utilization by variant, and arithmetic against intensity."""
    found = newest(store, query)
    points = tuple(_point(one) for one in found.values)
    data = Roofline(device_class=found.device_class, ceiling_bytes_per_s=_ceiling(points), points=points)
    order = variant_order(found.values)
    return Page(
        template="roofline.html.j2",
        title=f"Roofline of {found.device_class}" if found.device_class else "Roofline",
        data=data,
        header=("device_class", *RooflinePoint.__struct_fields__),
        rows=[(data.device_class, *msgspec.structs.astuple(point)) for point in points],
        extra={
            "part": part(query, sorted(points, key=_place), ON_A_PAGE),
            "by_variant": _by_variant(points, order, data.device_class),
            "by_intensity": _by_intensity(data, order),
            "uncounted": sum(point.flops == 0 for point in points),
            "unplaced": sum(point.utilization is None for point in points),
            "suites": found.suites,
            "devices": classes(store.series_names()),
            "asked": asked(found, query),
            "runs": LOOKED_THROUGH,
        },
    )


def _place(point: RooflinePoint) -> tuple[bool, bool, float, str, str]:
    """The furthest below the ceiling first, there is something to gain; then what fits the cache."""
    return (point.utilization is None, point.cached, point.utilization or 0.0, point.case, point.variant)


def _point(one: Latest) -> RooflinePoint:
    result, work = one.summary, one.traffic
    achieved, share = result.bandwidth_bytes_per_s, result.utilization
    return RooflinePoint(
        suite=result.suite,
        case=result.case_key,
        benchmark=one.benchmark,
        variant=result.variant,
        role=role(one),
        time_s=result.time_s or 0.0,
        min_bytes=work.min_bytes,
        flops=work.flops,
        intensity_flops_per_byte=work.flops / work.min_bytes if work.flops else None,
        bandwidth_bytes_per_s=achieved,
        flops_per_s=result.flops_per_s,
        ceiling_bytes_per_s=achieved / share if achieved and share else None,
        utilization=share,
        peak_utilization=result.peak_utilization,
        cached=result.cached,
        revision=one.revision,
        run=one.run_uid,
    )


def _ceiling(points: Sequence[RooflinePoint]) -> float | None:
    known = [(point.ceiling_bytes_per_s, point.cached) for point in points if point.ceiling_bytes_per_s]
    used = [ceiling for ceiling, cached in known if not cached] or [ceiling for ceiling, _ in known]
    return stats.median(used) if used else None


def _said(point: RooflinePoint) -> str:
    share = f"{words.share(point.utilization)} of the copy ceiling, {words.microseconds(point.time_s)} µs"
    return f"{point.case} {point.variant}: {share}{', fits the cache' if point.cached else ''}"


def _by_variant(points: Sequence[RooflinePoint], order: Sequence[str], device_class: str) -> Markup | None:
    """One line of points a variant along the share of the copy ceiling."""
    rows = [
        plot.Curve(
            name,
            [
                plot.Dot(point.utilization, 0, _said(point), hollow=point.cached)
                for point in points
                if point.variant == name and point.utilization is not None
            ],
        )
        for name in order
    ]
    rows = [row for row in rows if row.dots]
    if not rows:
        return None
    high = max(1.05, *(dot.x * 1.02 for row in rows for dot in row.dots))
    axis = plot.Axis("achieved bandwidth ÷ copy ceiling", words.share, 0, high, log=False)
    count = sum(len(row.dots) for row in rows)
    title = f"Share of the copy ceiling of {count} measured variants on {device_class}, a line for each variant's name"
    return plot.strips(rows, axis, title=title, guide=1.0)


def _by_intensity(data: Roofline, order: Sequence[str]) -> Markup | None:
    """The roofline: arithmetic a second against arithmetic a byte, below the copy ceiling."""
    placed = [point for point in data.points if point.intensity_flops_per_byte and point.flops_per_s]
    if not placed:
        return None
    curves = [
        plot.Curve(
            name,
            [
                plot.Dot(point.intensity_flops_per_byte, point.flops_per_s, _said(point), hollow=point.cached)
                for point in placed
                if point.variant == name and point.intensity_flops_per_byte and point.flops_per_s
            ],
            joined=False,
        )
        for name in order
    ]
    curves = [curve for curve in curves if curve.dots]
    xs = [dot.x for curve in curves for dot in curve.dots]
    ys = [dot.y for curve in curves for dot in curve.dots]
    x = plot.Axis.around("arithmetic intensity, operations a byte", lambda value: f"{value:g}", xs, at_least=10)
    ceiling = data.ceiling_bytes_per_s
    reach = [*ys, min(ceiling * x.high, 30 * max(ys))] if ceiling else ys
    y = plot.Axis.around("operations a second", _operations, reach, at_least=10)
    guides = [_roof(ceiling, x, y)] if ceiling else []
    title = (
        f"Roofline of {data.device_class}: operations a second of {len(placed)} measured variants by operations a byte"
    )
    return plot.xy(curves, x, y, title=title, guides=guides)


def _roof(ceiling: float, x: plot.Axis, y: plot.Axis) -> tuple[plot.Dot, plot.Dot]:
    """The part of `y = ceiling · x` that is inside."""
    left, right = max(x.low, y.low / ceiling), min(x.high, y.high / ceiling)
    return plot.Dot(left, left * ceiling, ""), plot.Dot(right, right * ceiling, "copy ceiling")


def _operations(value: float) -> str:
    """`1.5 T`."""
    for unit, size in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6)):
        if value >= size * 0.999:
            return f"{value / size:g} {unit}"
    return f"{value:g}"

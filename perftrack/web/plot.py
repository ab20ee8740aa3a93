"""Pictures of two measured quantities as SVG: points and lines over logarithmic or plain axes, told apart by shape too.

Colours and text sizes are the style sheet's; nothing is sampled.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from markupsafe import Markup

from perftrack.foreign import plain

WIDTH, HEIGHT = 760, 380
COLOURS = 8
"""Of the style sheet, `.c0` to `.c7`; further curves begin again with another shape."""

_LEFT, _RIGHT, _TOP, _BOTTOM = 78, 150, 16, 48
_LINE = 15
"""Least distance of two labels."""


@dataclass(frozen=True, slots=True)
class Dot:
    """One measured point; `hollow`: it is of another kind, which the caption names."""

    x: float
    y: float
    said: str
    hollow: bool = False


@dataclass(frozen=True, slots=True)
class Curve:
    """Points of one name; joined in order of x, or not."""

    name: str
    dots: Sequence[Dot]
    joined: bool = True


@dataclass(frozen=True, slots=True)
class Axis:
    """What is drawn along one side. `spell` says a tick."""

    label: str
    spell: Callable[[float], str]
    low: float
    high: float
    log: bool = True

    @classmethod
    def around(
        cls, label: str, spell: Callable[[float], str], values: Sequence[float], *, at_least: float = 1.5
    ) -> "Axis":
        """Logarithmic, over all values (> 0) with some room; the largest is at least `at_least` times the least."""
        low, high = min(values), max(values)
        room = max(1.08, math.sqrt(max(1.0, at_least * low / high)))
        return cls(label, spell, low / room, high * room)

    def share(self, value: float) -> float:
        """0 at the low end, 1 at the high end."""
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        """Round values within, few enough to be read."""
        return _log_ticks(self.low, self.high) if self.log else _plain_ticks(self.low, self.high)


def _log_ticks(low: float, high: float) -> list[float]:
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)):
        found = [step * 10.0**power for power in decades for step in steps if low <= step * 10.0**power <= high]
        if len(found) >= 4:
            return found[:: 1 + (len(found) - 1) // 9]
    return _plain_ticks(low, high)


def _plain_ticks(low: float, high: float) -> list[float]:
    raw = (high - low) / 6
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw)
    first = math.ceil(low / step - 1e-9)
    return [index * step for index in range(first, math.floor(high / step + 1e-9) + 1)]


def xy(curves: Sequence[Curve], x: Axis, y: Axis, *, title: str, guides: Sequence[tuple[Dot, Dot]] = ()) -> Markup:
    """The curves over their axes; `guides` are lines from one point to another, such as a ceiling, named by the last.

    `title` is read aloud; a dot's words are shown on hovering.
    """
    frame = _Frame(x, y)
    parts = [*frame.axes(), *(frame.guide(*one) for one in guides)]
    parts += [frame.curve(curve, index) for index, curve in enumerate(curves)]
    parts += frame.names(curves)
    return _svg(parts, title, HEIGHT)


def strips(rows: Sequence[Curve], x: Axis, *, title: str, guide: float | None = None) -> Markup:
    """One line for each name with its points along `x`; their y is not looked at."""
    height = _TOP + 22 * len(rows) + _BOTTOM
    frame = _Frame(x, Axis("", str, 0, 1, log=False), left=190, right=24, height=height)
    parts = frame.axes()
    if guide is not None:
        parts.append(f'<path class="guide" d="M{frame.at_x(guide):.1f} {_TOP}V{height - _BOTTOM}"/>')
    for index, row in enumerate(rows):
        middle = _TOP + 22 * index + 11
        parts.append(f'<text x="180" y="{middle + 4}" text-anchor="end">{_text(row.name, 24)}</text>')
        dots = "".join(_mark(frame.at_x(dot.x), middle, index, dot) for dot in row.dots)
        parts.append(f'<g class="c{index % COLOURS}">{dots}</g>')
    return _svg(parts, title, height)


def bar(share: float, name: str) -> Markup:
    """How much of the whole, which is the upright line, as a bar; it reaches to twice the whole."""
    width, filled = 160, min(2.0, max(0.0, share))
    drawn = (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width}" height="16" viewBox="0 0 {width} 16">'
        f"<title>{_text(name)}: {share:.0%}</title>"
        f'<path fill="currentColor" opacity="0.6" d="M0 3H{width / 2 * filled:.1f}V13H0Z"/>'
        f'<path stroke="currentColor" d="M{width / 2:.0f} 0V16"/></svg>'
    )
    return Markup(drawn)  # noqa: S704 - numbers, and a text that is escaped here


class _Frame:
    """Places of values in a picture."""

    def __init__(self, x: Axis, y: Axis, *, left: int = _LEFT, right: int = _RIGHT, height: int = HEIGHT) -> None:
        self.x, self.y, self.height = x, y, height
        self.left, self.right = left, WIDTH - right

    def at_x(self, value: float) -> float:
        return self.left + (self.right - self.left) * self.x.share(value)

    def at_y(self, value: float) -> float:
        return self.height - _BOTTOM - (self.height - _BOTTOM - _TOP) * self.y.share(value)

    def axes(self) -> list[str]:
        """Ticks with lines across, and what each axis has."""
        bottom = self.height - _BOTTOM
        parts = [f'<path class="axis" d="M{self.left} {_TOP}V{bottom}H{self.right}"/>']
        for value in self.x.ticks():
            at = self.at_x(value)
            parts += [
                f'<path class="grid" d="M{at:.1f} {_TOP}V{bottom}"/>',
                f'<text x="{at:.1f}" y="{bottom + 17}" text-anchor="middle">{_text(self.x.spell(value))}</text>',
            ]
        for value in self.y.ticks() if self.y.label else ():
            at = self.at_y(value)
            parts += [
                f'<path class="grid" d="M{self.left} {at:.1f}H{self.right}"/>',
                f'<text x="{self.left - 7}" y="{at + 4:.1f}" text-anchor="end">{_text(self.y.spell(value))}</text>',
            ]
        middle = (self.left + self.right) / 2
        parts.append(f'<text x="{middle:.0f}" y="{self.height - 8}" text-anchor="middle">{_text(self.x.label)}</text>')
        if self.y.label:
            turned = f'transform="rotate(-90 14 {bottom / 2:.0f})"'
            parts.append(
                f'<text x="14" y="{bottom / 2:.0f}" {turned} text-anchor="middle">{_text(self.y.label)}</text>'
            )
        return parts

    def guide(self, start: Dot, end: Dot) -> str:
        place = f"M{self.at_x(start.x):.1f} {self.at_y(start.y):.1f}L{self.at_x(end.x):.1f} {self.at_y(end.y):.1f}"
        words = f'<text x="{self.right + 8}" y="{self.at_y(end.y) + 4:.1f}">{_text(end.said, 20)}</text>'
        return f'<path class="guide" d="{place}"/>{words if end.said else ""}'

    def curve(self, curve: Curve, index: int) -> str:
        """Its line and its points."""
        dots = sorted(curve.dots, key=lambda dot: dot.x)
        line = " ".join(f"{self.at_x(dot.x):.1f},{self.at_y(dot.y):.1f}" for dot in dots)
        joined = f'<polyline points="{line}"/>' if curve.joined and len(dots) > 1 else ""
        marks = "".join(_mark(self.at_x(dot.x), self.at_y(dot.y), index, dot) for dot in dots)
        return f'<g class="c{index % COLOURS}">{joined}{marks}</g>'

    def names(self, curves: Sequence[Curve]) -> list[str]:
        """Beside the last points, none upon another, each with its mark."""
        ends = [
            (self.at_y(max(curve.dots, key=lambda dot: dot.x).y), index)
            for index, curve in enumerate(curves)
            if curve.dots
        ]
        parts: list[str] = []
        at = -math.inf
        lowest = self.height - _BOTTOM - _LINE * (len(ends) - 1)
        for place, (wanted, index) in enumerate(sorted(ends)):
            at = max(at + _LINE, min(wanted, lowest + _LINE * place))
            mark = _mark(self.right + 12, at, index, Dot(0, 0, ""))
            name = f'<text x="{self.right + 22}" y="{at + 4:.1f}">{_text(curves[index].name, 18)}</text>'
            parts.append(f'<g class="c{index % COLOURS}">{mark}</g>{name}')
        return parts


_SHAPES = (
    "M-4 0A4 4 0 1 1 4 0A4 4 0 1 1 -4 0Z",
    "M-4 -4H4V4H-4Z",
    "M0 -5L5 4H-5Z",
    "M0 -5L5 0L0 5L-5 0Z",
    "M0 5L5 -4H-5Z",
)


def _mark(x: float, y: float, index: int, dot: Dot) -> str:
    """Neighbours differ in shape and colour, and a colour that comes again has another shape."""
    shape = _SHAPES[(index + index // COLOURS) % len(_SHAPES)]
    said = f"<title>{_text(dot.said)}</title>" if dot.said else ""
    kind = "hollow" if dot.hollow else "full"
    return f'<path class="{kind}" transform="translate({x:.1f} {y:.1f})" d="{shape}">{said}</path>'


def _svg(parts: Sequence[str], title: str, height: int) -> Markup:
    body = "".join(parts)
    drawn = (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" class="plot" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}"><title>{_text(title)}</title>{body}</svg>'
    )
    return Markup(drawn)  # noqa: S704 - numbers, and texts that are escaped here


def _text(text: str, most: int = 10_000) -> str:
    shown = plain(text)
    return escape(shown if len(shown) <= most else f"{shown[: most - 1]}…")

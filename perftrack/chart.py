"""One series as a line of letters, or as a small SVG. Gaps stay gaps, and nothing is sampled."""

from collections.abc import Iterable, Sequence
from html import escape

LEAST_SPAN = 0.05
"""Of the middle: what moves by less is drawn nearly flat, so that noise does not look like news."""


def sparkline(values: Sequence[float | None], *, unicode: bool = True) -> str:
    """One of eight levels for each value, from the least to the largest; a gap where there is none.

    The range is at least 5 % of its middle.
    """
    levels, gap = ("▁▂▃▄▅▆▇█", "·") if unicode else ("_.-:=+*#", " ")
    low, span = _range(values)
    return "".join(
        gap if value is None else levels[min(7, int(8 * (value - low) / span)) if span else 3] for value in values
    )


def marks(count: int, borders: Iterable[int], changes: Iterable[int], *, unicode: bool = True) -> str:
    """The line below a sparkline of `count` letters: where another segment starts, and where the level changed."""
    border, change = ("┆", "▲") if unicode else ("|", "^")
    letters = [" "] * count
    for letter, places in ((border, borders), (change, changes)):
        for place in places:
            if 0 <= place < count:
                letters[place] = letter
    return "".join(letters).rstrip()


def svg(
    values: Sequence[float | None],
    *,
    title: str,
    borders: Iterable[int] = (),
    changes: Iterable[int] = (),
    width: int = 640,
    height: int = 80,
) -> str:
    """The series as an SVG image of `width` × `height` pixels, in the colour of the text around it.

    Dotted lines are borders of segments, across which nothing is joined, dashed ones changes of level; `title` is read
    aloud and shown on hovering.
    """
    borders = list(borders)
    pieces = _pieces(values, borders)
    low, span = _range(values)
    step = width / max(1, len(values))

    def x(index: float) -> str:
        return f"{(index + 0.5) * step:.1f}"

    def y(value: float) -> str:
        return f"{height - 4 - (height - 8) * ((value - low) / span if span else 0.5):.1f}"

    upright = [
        f'<path d="M{x(place - 0.5)} 0V{height}" stroke-dasharray="{dashes}" opacity="0.5"/>'
        for dashes, places in (("1 3", borders), ("6 3", changes))
        for place in places
    ]
    lines = [
        f'<polyline points="{" ".join(f"{x(index)},{y(value)}" for index, value in piece)}"/>'
        for piece in pieces
        if len(piece) > 1
    ]
    dots = [
        f'<circle cx="{x(piece[0][0])}" cy="{y(piece[0][1])}" r="1.5" fill="currentColor"/>'
        for piece in pieces
        if len(piece) == 1
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" fill="none" stroke="currentColor" stroke-width="1.5">'
        f"<title>{escape(title)}</title>{''.join((*upright, *lines, *dots))}</svg>"
    )


def interval(low: float, point: float, high: float, *, title: str, span: float, width: int = 320) -> str:
    """A ratio with its bounds as an SVG bar around 1, which is the upright line: right of it is larger.

    `span`: how far the picture reaches to either side of 1; what lies beyond ends at its edge.
    """

    def x(ratio: float) -> float:
        return width / 2 * (1 + max(-1.0, min(1.0, (ratio - 1) / span)))

    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" class="interval" width="{width}" height="20" '
        f'viewBox="0 0 {width} 20" fill="none" stroke="currentColor" stroke-width="2"><title>{escape(title)}</title>'
        f'<path d="M{width / 2:.1f} 0V20" stroke-width="1" opacity="0.5"/>'
        f'<path d="M{x(low):.1f} 5V15M{x(low):.1f} 10H{x(high):.1f}M{x(high):.1f} 5V15"/>'
        f'<circle cx="{x(point):.1f}" cy="10" r="4" fill="currentColor"/></svg>'
    )


def _range(values: Sequence[float | None]) -> tuple[float, float]:
    """The least value that is drawn, and how much there is above it; 0 where all values are the same."""
    known = [value for value in values if value is not None]
    if not known or min(known) == max(known):
        return (known[0] if known else 0.0), 0.0
    low, high = min(known), max(known)
    missing = max(0.0, LEAST_SPAN * abs(low + high) / 2 - (high - low))
    return low - missing / 2, high - low + missing


def _pieces(values: Sequence[float | None], borders: Sequence[int]) -> list[list[tuple[int, float]]]:
    """Runs of neighbouring values between gaps and borders, with their places."""
    pieces: list[list[tuple[int, float]]] = [[]]
    for index, value in enumerate(values):
        if index in borders:
            pieces.append([])
        if value is not None:
            pieces[-1].append((index, value))
        elif pieces[-1]:
            pieces.append([])
    return [piece for piece in pieces if piece]

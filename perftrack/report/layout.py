"""Lines and columns for a given width, without colour: styled lines in, nothing is ever cut."""

import re
import textwrap
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from perftrack.foreign import plain

Style = Literal["", "bold", "dim", "red", "green", "yellow", "cyan"]

_BEFORE_UNIT = re.compile(r"(?<=\d) (?=[%µ])")
_TIE = "\ue000"
"""Stands for a blank at which no line is broken; of the letters that have no meaning, so that no text has it."""

Line = tuple[tuple[str, Style], ...]
"""Pieces of text, each in one style."""


@dataclass(frozen=True, slots=True)
class Look:
    """Where text is going to be seen."""

    width: int = 160
    color: bool = False
    unicode: bool = True


def line(text: str = "", style: Style = "") -> Line:
    """A line in one style."""
    return ((text, style),)


def cell_width(text: str) -> int:
    """Columns that the text takes on a terminal: wide letters two, combining marks none."""
    return sum(_letter_width(letter) for letter in text)


def pad(text: str, width: int, *, right: bool = False) -> str:
    """The text, filled with blanks up to `width` columns."""
    blanks = " " * (width - cell_width(text))
    return blanks + text if right else text + blanks


def wrap(text: str, width: int, indent: int = 0) -> list[str]:
    """Broken at blanks only, every line indented; a word longer than the line stays whole, a number keeps its unit."""
    blanks = " " * indent
    lines = textwrap.wrap(
        _BEFORE_UNIT.sub(_TIE, text),
        max(width, indent + 20),
        initial_indent=blanks,
        subsequent_indent=blanks,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [one.replace(_TIE, " ") for one in lines]


def entry(name: str, text: str, width: int) -> list[Line]:
    """`name   text`, wrapped with a hanging indent."""
    first, *rest = wrap(plain(text), width, 8) or [""]
    return [((f"{name:<7} ", "dim"), (first.strip(), "")), *(line(one) for one in rest)]


def table(
    header: Sequence[str], rows: Sequence[Sequence[str]], width: int, *, align: str, spare: Sequence[int] = ()
) -> list[Line]:
    """A table; `align` has `l` or `r` for each column.

    Where it does not fit `width`, the first column stands on a line of its own, above the rest; rows with the same
    first cell share it. Where the rest does not fit either, the columns `spare` are left out, one by one.
    """
    rows = [[plain(cell) for cell in cells] for cells in rows]
    kept = list(range(len(header)))
    widths = [max(cell_width(cells[column]) for cells in (header, *rows)) for column in kept]
    if _total(widths) <= width:
        return [_row(header, widths, align, "dim"), *(_row(cells, widths, align) for cells in rows)]
    widths[0] = 0
    for column in spare:
        if _total([widths[one] for one in kept]) > width:
            kept.remove(column)

    def shown(cells: Sequence[str], style: Style = "") -> Line:
        below = ["", *(cells[column] for column in kept[1:])]
        return _row(below, [widths[column] for column in kept], [align[column] for column in kept], style)

    lines = [line(header[0], "dim"), shown(header, "dim")]
    above = ""
    for cells in rows:
        if cells[0] != above:
            lines += [line(one) for one in wrap(cells[0], width)]
            above = cells[0]
        lines.append(shown(cells))
    return lines


def fits(header: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> bool:
    """Whether `table` gives each row one line."""
    return (
        _total([max(cell_width(plain(cells[column])) for cells in (header, *rows)) for column in range(len(header))])
        <= width
    )


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + 2 * (len(widths) - 1)


def in_ascii(text: str) -> str:
    """For terminals that know no other letters."""
    for letter, other in (("µ", "u"), ("×", "x"), ("…", "..."), ("–", "-")):
        text = text.replace(letter, other)
    return text.encode("ascii", "backslashreplace").decode()


def _row(cells: Sequence[str], widths: Sequence[int], align: Sequence[str], style: Style = "") -> Line:
    columns = zip(cells, widths, align, strict=True)
    return line("  ".join(pad(cell, width, right=side == "r") for cell, width, side in columns).rstrip(), style)


def _letter_width(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in ("W", "F") else 1

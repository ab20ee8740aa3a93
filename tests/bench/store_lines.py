"""Lines of the table that `store_scale` prints: a figure, its bound, and whether it holds."""

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple


class Line(NamedTuple):
    engine: str
    what: str
    figure: float
    bound: float
    least: bool
    """The bound is the least, else the most."""
    unit: str
    note: str = ""

    @property
    def holds(self) -> bool:
        return self.figure >= self.bound if self.least else self.figure <= self.bound

    def __str__(self) -> str:
        sign, word = (">=", "held") if self.least else ("<=", "held")
        word = word if self.holds else "MISSED"
        note = f"  ({self.note})" if self.note else ""
        return (
            f"{word:6}  {self.engine:10}  {self.what:52}  {self.figure:9.3g} {self.unit:6} {sign} {self.bound:g}{note}"
        )


class Table:
    """Says each line as soon as it is known."""

    def __init__(self) -> None:
        self.lines: list[Line] = []

    def most(self, engine: str, what: str, figure: float, bound: float, unit: str = "", note: str = "") -> None:
        self._add(Line(engine, what, figure, bound, False, unit, note))

    def least(self, engine: str, what: str, figure: float, bound: float, unit: str = "", note: str = "") -> None:
        self._add(Line(engine, what, figure, bound, True, unit, note))

    def _add(self, line: Line) -> None:
        self.lines.append(line)
        say(str(line))


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def medians(*works: Callable[[], Any], repeat: int = 5) -> list[float]:
    """Of several works that take turns, the median seconds of each; the first turn does not count."""
    taken: list[list[float]] = [[] for _ in works]
    for turn in range(repeat + 1):
        for work, times in zip(works, taken, strict=True):
            spent = seconds(work)
            if turn:
                times.append(spent)
    return [statistics.median(times) for times in taken]

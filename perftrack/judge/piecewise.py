"""Looking for changes of level in one environment and method at a time: across their borders nothing is compared."""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

Detector = Callable[[Sequence[float]], Sequence[tuple[int, int]]]
"""Values of one series, oldest first, NaN where there is none → (index of the first value of a new level, +1 up or -1
down), in order."""


def changes_of(values: Sequence[float | None], borders: Iterable[int], detect: Detector) -> list[tuple[int, int]]:
    """What `detect` says of each piece between two `borders` by itself; indices are those of `values`."""
    found: list[tuple[int, int]] = []
    for start, end in pairwise(sorted({0, *borders, len(values)})):
        piece = [float("nan") if value is None else value for value in values[start:end]]
        found += [(start + index, direction) for index, direction in detect(piece)]
    return found

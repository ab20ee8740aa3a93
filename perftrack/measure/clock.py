"""The clock that a GPU's multiprocessors ran at while a sample was timed, from stamps of their counters.

A stamp is what one multiprocessor says at one moment: its number, the cycles it has run, and the nanoseconds of the
device's own timer. NVML's clock is polled by the host and lags; two stamps around a sample tell it exactly.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from perftrack import stats

CLOCK_LIMIT = 0.02
"""Samples of one block whose clocks differ by more than this share are no comparison of code."""

_MHZ = 1e3
"""Cycles per nanosecond to MHz."""


def clocks_mhz(stamps: NDArray[np.uint64]) -> tuple[float | None, ...]:
    """The SM clock of each sample, MHz: median over multiprocessors of cycles ÷ nanoseconds between its two stamps.

    `stamps[sample, end, block]` is (multiprocessor, cycles, nanoseconds), `end` 0 before and 1 after the sample.
    Nanoseconds of 0 mean that the timer was not seen to tick. Multiprocessors that are missing at either end, or
    whose counters did not go up, are left out; None where none is left.
    """
    return tuple(_clock_mhz(before, after) for before, after in stamps)


def _clock_mhz(before: NDArray[np.uint64], after: NDArray[np.uint64]) -> float | None:
    before, after = (end[end[:, 2] > 0] for end in (before, after))
    _, first, last = np.intersect1d(before[:, 0], after[:, 0], return_indices=True)
    start, stop = before[first], after[last]
    up = (stop[:, 1:] > start[:, 1:]).all(axis=1)
    passed = (stop[up, 1:] - start[up, 1:]).astype(np.float64)
    return float(np.median(passed[:, 0] / passed[:, 1])) * _MHZ if len(passed) else None


def median_mhz(clocks: Iterable[float | None]) -> float | None:
    """The median of those that are known; None where none is."""
    known = [clock for clock in clocks if clock is not None]
    return stats.median(known) if known else None


def differ(clocks: Sequence[float | None], limit: float = CLOCK_LIMIT) -> bool:
    """Whether the fastest known clock is more than `limit` above the slowest."""
    known = [clock for clock in clocks if clock is not None]
    return bool(known) and max(known) > (1 + limit) * min(known)

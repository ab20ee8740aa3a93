"""Stamps around the samples of a block: queued with them, read once when the block has ended."""

from typing import Any

from perftrack.measure.clock import clocks_mhz
from perftrack.measure.cuda_kernels import Kernels

STAMP_S = 20e-6
"""Further head start of a sample that a stamp is queued before: launching it takes 3 to 8 µs of the host."""


class Stamps:
    """Two for each sample, in memory that is taken before anything is queued."""

    def __init__(self, kernels: Kernels) -> None:
        self._kernels = kernels
        self._made: Any = kernels.stamps(2)

    def make_room(self, samples: int) -> None:
        """For so many samples; call it while the device is idle."""
        if len(self._made) < 2 * samples:
            self._made = self._kernels.stamps(2 * samples)

    def before(self, sample: int) -> None:
        """Queue the first stamp of a sample."""
        self._kernels.stamp(self._made, 2 * sample)

    def after(self, sample: int) -> None:
        """Queue its second."""
        self._kernels.stamp(self._made, 2 * sample + 1)

    def clocks_mhz(self, samples: int) -> tuple[float | None, ...]:
        """Read those of the first `samples` samples, which have ended: see `clock.clocks_mhz`."""
        stamps = self._made[: 2 * samples].get()
        return clocks_mhz(stamps.reshape(samples, 2, *stamps.shape[1:]))

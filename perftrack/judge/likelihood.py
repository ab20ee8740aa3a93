"""Log-likelihoods of a series in its order, under one mode and under two: the larger one says what its noise is.

The differences of a series tell where a second mode would lie, but hardly whether there is one: they overlap where the
gap is a few deviations. The values about their level overlap less, and whether a mode lasts shows only in their order.
Each change of level costs the same under both.
"""

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from perftrack.judge.segmentation import Array, cheapest_cuts, clip_outliers, middle

LEVEL_PRICE = 12.0
LEAST_DEVIATION = 2e-5
"""Relative: a series without any noise is still only as exact as its timer."""
_OWN_NOISE = 12
"""A level of so many values has a size of noise of its own."""
_LEAST_SCALED = 0.1
"""Deviation, and variance, of noise that was scaled to about 1: no level is more exact than `LEAST_DEVIATION`."""
_OUTLIER_SHARE = 0.05
_LARGEST_CORRELATION = 0.9
_WIDER = (0.7, 0.85, 1.0, 1.2, 1.5)
"""Scales of Student's t that are tried, relative to that of the median."""


def of_two_modes(rest: Array, lower: NDArray[np.bool_], levels: int) -> float:
    """Of distances from the own mode of each value, where the modes follow so many `levels`.

    Inside a mode the noise is normal, but for 5 % of outliers; which mode follows which is a Markov chain, with the
    rates that `lower` itself shows. It is what one path says, so never more than all paths would.
    """
    deviation = 1.4826 * middle(np.abs(rest))
    deviation = max(math.sqrt(float(np.minimum(rest * rest, 9 * deviation**2).mean())), LEAST_DEVIATION)
    peak = (1 - _OUTLIER_SHARE) / (deviation * math.sqrt(2 * math.pi))
    emitted = np.log(
        peak * np.exp(-0.5 * (rest / deviation) ** 2) + _OUTLIER_SHARE / max(float(np.ptp(rest)), LEAST_DEVIATION)
    )
    next_one, before = lower[1:], lower[:-1]
    path = _log_chance(next_one[before]) + _log_chance(next_one[~before]) - math.log(2)
    return float(emitted.sum()) + path - LEVEL_PRICE * (levels - 1)


def of_one_mode(values: Array, deviation: float) -> float:
    """Of the levels that least squares find, or of a single one: the best of normal and heavy-tailed noise.

    Both are first-order autoregressive. `deviation`: from value to value.
    """
    cuts = cheapest_cuts(clip_outliers(values, deviation)[0], deviation)
    return max(_about_levels(values, chosen) - LEVEL_PRICE * len(chosen) for chosen in {(), tuple(cuts)})


def _log_chance(chosen: NDArray[np.bool_]) -> float:
    """Of a row of choices at the rate that it shows itself."""
    count, yes = len(chosen), int(chosen.sum())
    return sum(part * math.log(part / count) for part in (yes, count - yes) if part)


def _about_levels(values: Array, cuts: tuple[int, ...]) -> float:
    """About the median of each level between the cuts, with its own size of noise; short levels share theirs."""
    levels = [values[start:end] for start, end in pairwise([0, *cuts, len(values)])]
    rests = [level - middle(level) for level in levels]
    short = [rest for rest in rests if len(rest) < _OWN_NOISE]
    common = _size(np.concatenate(short)) if short else 0.0
    sizes = [common if len(rest) < _OWN_NOISE else _size(rest) for rest in rests]
    scaled = np.concatenate([rest / size for rest, size in zip(rests, sizes, strict=True)])
    square = float(scaled @ scaled)
    correlation = min(max(float(scaled[1:] @ scaled[:-1]) / square, 0.0), _LARGEST_CORRELATION) if square > 0 else 0.0
    scaled[1:] -= correlation * scaled[:-1]
    scaling = math.fsum(len(rest) * math.log(size) for rest, size in zip(rests, sizes, strict=True))
    return max(_normal(scaled), _heavy(scaled)) - scaling


def _size(rest: Array) -> float:
    """Standard deviation of normal noise, from the mean absolute value: outliers count less."""
    return max(math.sqrt(math.pi / 2) * float(np.abs(rest).mean()), LEAST_DEVIATION)


def _normal(rest: Array) -> float:
    return -0.5 * len(rest) * (math.log(2 * math.pi * max(float(rest @ rest) / len(rest), _LEAST_SCALED)) + 1)


def _heavy(rest: Array) -> float:
    """Of Student's t with three degrees of freedom, at the best of a few scales."""
    typical = max(middle(np.abs(rest)) / 0.765, _LEAST_SCALED)
    scales = typical * np.array(_WIDER)[:, None]
    return float(np.log(2 / (math.pi * math.sqrt(3) * scales) * (1 + (rest / scales) ** 2 / 3) ** -2).sum(axis=1).max())

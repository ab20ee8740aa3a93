"""Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011) in NumPy, CuPy and Numba.

One rule on every backend and for every dtype: counter e // 8 under a 64-bit key serves elements 8 (e // 8) to
8 (e // 8) + 7 with 16 bits each, the lower half of a word first. An element's uniform number is its 16 bits / 65536.
"""

from functools import cache, partial
from typing import Any

import numpy as np

from kernels.launch import Step, array_module

GROUP = 8
"""Elements served by one counter."""

LEVELS = 65536
"""A uniform number is a multiple of 1 / LEVELS, exact in float32."""

_ROUNDS = 10
_MULTIPLY = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_WORD = 0xFFFFFFFF
_TILE = 4096
"""Counters a time in NumPy: all buffers together fit a second-level cache."""


def words(counters: Any, key: int) -> Any:
    """The four words of each counter, [counters, 4] uint32, from an array of uint64."""
    return array_module(counters).stack(four_words(counters, key), axis=1).astype(np.uint32)


def four_words(counters: Any, key: int) -> tuple[Any, Any, Any, Any]:
    """The same, each in an array or tensor of its own, of the 64-bit integers of `counters`, which may have signs."""
    c0, c1 = counters & _WORD, _upper(counters)
    c2 = c3 = counters ^ counters
    for k0, k1 in _keys(key):
        p0, p1 = c0 * _MULTIPLY[0], c2 * _MULTIPLY[1]
        c0, c2 = _upper(p1) ^ c1 ^ k0, _upper(p0) ^ c3 ^ k1
        c1, c3 = p1 & _WORD, p0 & _WORD
    return c0, c1, c2, c3


def _upper(x: Any) -> Any:
    return x >> 32 & _WORD  # of an integer with a sign, the shift brings in copies of it


def draws(xp: Any, elements: int, key: int) -> Any:
    """The 16-bit draw of each of the first `elements` elements, as int64."""
    counters = xp.arange(-(-elements // GROUP), dtype=np.uint64)
    four = words(counters, key)
    halves = xp.stack((four & np.uint32(0xFFFF), four >> np.uint32(16)), axis=2)
    return halves.reshape(-1)[:elements].astype(np.int64)


def uniform_steps(key: int, out: Any) -> tuple[Step, ...]:
    """NumPy steps that fill `out` (flat, float32 or float64) with uniform numbers, tile by tile, in place."""
    buffers = np.empty((6, _TILE), np.uint64)
    groups = -(-out.size // GROUP)
    return tuple(
        partial(_fill, buffers[:, : min(_TILE, groups - first)], key, first, out[first * GROUP :][: _TILE * GROUP])
        for first in range(0, groups, _TILE)
    )


def _fill(buffers: Any, key: int, first: int, out: Any) -> None:
    c0, c1, c2, c3, p0, p1 = buffers
    counters = np.arange(first, first + c0.size, dtype=np.uint64)
    np.bitwise_and(counters, np.uint64(_WORD), out=c0)
    np.right_shift(counters, np.uint64(32), out=c1)
    c2.fill(0)
    c3.fill(0)
    for k0, k1 in _keys(key):
        np.multiply(c0, np.uint64(_MULTIPLY[0]), out=p0)
        np.multiply(c2, np.uint64(_MULTIPLY[1]), out=p1)
        np.right_shift(p1, np.uint64(32), out=c0)
        np.bitwise_xor(c0, c1, out=c0)
        np.bitwise_xor(c0, k0, out=c0)
        np.right_shift(p0, np.uint64(32), out=c2)
        np.bitwise_xor(c2, c3, out=c2)
        np.bitwise_xor(c2, k1, out=c2)
        np.bitwise_and(p1, np.uint64(_WORD), out=c1)
        np.bitwise_and(p0, np.uint64(_WORD), out=c3)
    four = np.stack((c0, c1, c2, c3), axis=1).astype("<u4")
    # little-endian words are their two halves, the lower one first
    np.multiply(four.view("<u2").reshape(-1)[: out.size], out.dtype.type(1 / LEVELS), out=out)


def _keys(key: int) -> tuple[tuple[int, int], ...]:
    low, high = key & _WORD, key >> 32
    return tuple(((low + n * _WEYL[0]) & _WORD, (high + n * _WEYL[1]) & _WORD) for n in range(_ROUNDS))


@cache
def compiled_words() -> Any:
    """A compiled `(counter, key) -> four uint32 words`, to be called from compiled loops."""
    import numba

    multiply_0, multiply_1 = np.uint64(_MULTIPLY[0]), np.uint64(_MULTIPLY[1])
    weyl_0, weyl_1 = np.uint32(_WEYL[0]), np.uint32(_WEYL[1])
    half, zero = np.uint64(32), np.uint32(0)

    @numba.njit
    def four(counter: Any, key: Any) -> Any:
        c0, c1, c2, c3 = np.uint32(counter), np.uint32(counter >> half), zero, zero
        k0, k1 = np.uint32(key), np.uint32(key >> half)
        for _ in range(_ROUNDS):
            p0, p1 = np.uint64(c0) * multiply_0, np.uint64(c2) * multiply_1
            c0, c1 = np.uint32(np.uint32(p1 >> half) ^ c1 ^ k0), np.uint32(p1)
            c2, c3 = np.uint32(np.uint32(p0 >> half) ^ c3 ^ k1), np.uint32(p0)
            k0, k1 = np.uint32(k0 + weyl_0), np.uint32(k1 + weyl_1)
        return c0, c1, c2, c3

    return four

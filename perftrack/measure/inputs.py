"""Inputs: seeded random data on the device, and how many sets of it are rotated."""

import hashlib
import math
from typing import Any

import numpy as np

from perftrack.model import Method

MAX_SETS = 64
"""Sets of small inputs are not multiplied beyond this; what then fits the cache is labelled `cached`."""

MIN_SETS = 2
"""With fewer, a variant that remembers its last answer could pass for a fast one."""


class Rng:
    """The generator that a benchmark's inputs come from: normal, uniform and integer data of any shape."""

    def __init__(self, xp: Any, seed: int) -> None:
        self._xp = xp
        self._generator = xp.random.default_rng(seed)

    def normal(self, shape: int | tuple[int, ...], dtype: str = "float32") -> Any:
        """Standard normal values."""
        return self._float(self._generator.standard_normal, shape, dtype)

    def uniform(self, shape: int | tuple[int, ...], dtype: str = "float32") -> Any:
        """Values in [0, 1)."""
        return self._float(self._generator.random, shape, dtype)

    def integers(self, low: int, high: int, shape: int | tuple[int, ...], dtype: str = "int64") -> Any:
        """Integers in [low, high)."""
        return self._generator.integers(low, high, size=shape).astype(dtype_of(dtype), copy=False)

    def _float(self, draw: Any, shape: int | tuple[int, ...], dtype: str) -> Any:
        wanted = dtype_of(dtype)
        source = np.dtype(np.float64 if wanted == np.float64 else np.float32)
        return draw(size=shape, dtype=source).astype(wanted, copy=False)


def dtype_of(name: Any) -> np.dtype[Any]:
    """The dtype of a name, `bfloat16` included."""
    if name == "bfloat16":
        import ml_dtypes  # noqa: PLC0415 - only where a suite asks for it

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


def seed_of(seed: int, suite: str, case_key: str, round_number: int, set_index: int) -> int:
    """The seed of one input set: the same on both sides and every machine, another in every round."""
    text = f"{seed}\0{suite}\0{case_key}\0{round_number}\0{set_index}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


def as_tuple(value: Any) -> tuple[Any, ...]:
    """What a suite returned, one array or several, as a tuple."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def nbytes(arrays: tuple[Any, ...]) -> int:
    """Bytes of the arrays among `arrays`."""
    return sum(int(getattr(array, "nbytes", 0)) for array in arrays)


def sets_wanted(method: Method, rotation_bytes: int, set_bytes: int) -> int:
    """How many sets make a rotation of `rotation_bytes`, which no cache can hold."""
    if method.cache == "hot":
        return 1
    return min(MAX_SETS, max(method.sets, math.ceil(rotation_bytes / max(1, set_bytes))))


def fits_cache(sets: int, set_bytes: int, cache_bytes: int) -> bool:
    """Whether a cache may hold a good part of a rotation (caches are not strictly least-recently-used)."""
    return sets * set_bytes <= 2 * cache_bytes


def fingerprint(xp: Any, arrays: tuple[Any, ...]) -> tuple[int, ...]:
    """A number per array that changes when its bytes do: wrap-around sums of its 4-byte (else 1-byte) words."""
    return tuple(_word_sum(xp, array) for array in arrays if isinstance(array, xp.ndarray))


def _word_sum(xp: Any, array: Any) -> int:
    flat = xp.ascontiguousarray(array).reshape(-1).view(xp.uint8)
    words = flat.view(xp.uint32) if flat.size % 4 == 0 else flat
    return int(words.sum(dtype=xp.uint64))


def same_bytes(xp: Any, left: tuple[Any, ...], right: tuple[Any, ...]) -> bool:
    """Whether two input sets are bitwise equal."""
    return len(left) == len(right) and all(_same(xp, a, b) for a, b in zip(left, right, strict=True))


def _same(xp: Any, a: Any, b: Any) -> bool:
    if not isinstance(a, xp.ndarray) or not isinstance(b, xp.ndarray):
        return type(a) is type(b) and bool(a == b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    return bool(
        (xp.ascontiguousarray(a).reshape(-1).view(xp.uint8) == xp.ascontiguousarray(b).reshape(-1).view(xp.uint8)).all()
    )

"""How values become columns: samples as packed bytes, small documents as canonical JSON, NaN refused by name."""

import math
import struct
import sys
import zlib
from array import array
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

import msgspec

from perftrack.errors import StoreError

FLOAT64_ZLIB = 1
"""Encoding number 1: little-endian float64 (samples) and int32 (blocks), in zlib's format."""

_DISTINCT = 0.9
"""Where more of the values than this differ, they are stored as they are."""

_WINDOW = 2**13
"""Bytes: whatever is shorter needs no larger window."""

_BLOCK = 2**16
"""Bytes: a stored block of zlib's format has fewer."""
_STORED = struct.Struct("<3B2H")

_INT64 = range(-(2**63), 2**63)


def _packed(code: str, values: Sequence[float], *, as_they_are: bool) -> bytes:
    numbers = array(code, values)
    if sys.byteorder == "big":
        numbers.byteswap()
    data = numbers.tobytes()
    if as_they_are and len(data) < _BLOCK:
        # one block that is stored, as RFC 1950 and 1951 have it: asking zlib for that takes four times as long
        size = len(data)
        return _STORED.pack(0x78, 1, 1, size, size ^ (_BLOCK - 1)) + data + zlib.adler32(data).to_bytes(4, "big")
    level = 0 if as_they_are else 1
    if len(data) > _WINDOW:
        return zlib.compress(data, level)
    # zlib's own window takes longer to be made than a few samples to be packed
    packer = zlib.compressobj(level, wbits=_WINDOW.bit_length() - 1, memLevel=6)
    return packer.compress(data) + packer.flush()


def _unpacked(code: str, data: bytes) -> tuple[Any, ...]:
    numbers = array(code)
    numbers.frombytes(zlib.decompress(data))
    if sys.byteorder == "big":
        numbers.byteswap()
    return tuple(numbers)


def pack_floats(values: Sequence[float]) -> bytes:
    """Encoding 1 of float64 values: bit for bit, and a third of the size for timer ticks, which repeat."""
    # numbers that hardly repeat would lose a tenth of their size, and take most of the time of storing a job
    return _packed("d", values, as_they_are=len(set(values)) > _DISTINCT * len(values))


def unpack_floats(data: bytes) -> tuple[float, ...]:
    """The inverse of `pack_floats`."""
    return _unpacked("d", data)


def pack_ints(values: Sequence[int]) -> bytes:
    """Encoding 1 of int32 values."""
    return _packed_ints(tuple(values))


@lru_cache(maxsize=64)
def _packed_ints(values: tuple[int, ...]) -> bytes:
    """Remembered: the blocks of most measurements are the same."""
    return _packed("i", values, as_they_are=False)


def unpack_ints(data: bytes) -> tuple[int, ...]:
    """The inverse of `pack_ints`."""
    return _unpacked("i", data)


def json_text(value: object) -> str:
    """Canonical JSON: keys sorted, no white space."""
    return msgspec.json.encode(value, order="sorted").decode()


def plain(text: str) -> str:
    """Text that both engines can hold: PostgreSQL has no NUL character."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")


def refuse_unstorable(value: object, path: str) -> None:
    """StoreError naming the field where `value` holds NaN, infinity or something that is no plain Python value.

    NumPy's scalars are refused too: the SQLite driver would store their bytes without a word.
    """
    if isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            if not _is_plain(field := getattr(value, name)):
                refuse_unstorable(field, f"{path}.{name}")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if not _is_plain(item):
                refuse_unstorable(item, f"{path}[{key!r}]")
    elif isinstance(value, tuple | list):
        _refuse_in_sequence(value, path)
    else:
        _refuse_scalar(value, path)


def _is_plain(value: object) -> bool:
    """Whether it can be stored, as far as that is seen at once: so are nearly all fields of every job."""
    kind = type(value)
    if kind is float:
        return math.isfinite(cast("float", value))
    if kind is int:
        return value in _INT64
    return value is None or kind is bool or (kind is str and cast("str", value).isascii())


def _refuse_in_sequence(values: Sequence[Any], path: str) -> None:
    kinds = set(map(type, values))
    # thousands of samples and of their blocks: the only places where speed matters
    if kinds == {float} and all(map(math.isfinite, values)):
        return
    if kinds == {int} and min(values) in _INT64 and max(values) in _INT64:
        return
    for index, item in enumerate(values):
        refuse_unstorable(item, f"{path}[{index}]")


def _refuse_scalar(value: object, path: str) -> None:
    if value is None or type(value) is bool:
        return
    if isinstance(value, str):  # also our enums
        try:
            value.encode()
        except UnicodeEncodeError:
            raise StoreError(f"{path} is text with a lone surrogate, which cannot be stored") from None
    elif type(value) is int:
        if value not in _INT64:
            raise StoreError(f"{path} is {value}, which needs more than 64 bits and cannot be stored")
    elif isinstance(value, float) and type(value).__module__ in {"builtins", "numpy"}:
        if not math.isfinite(value):
            raise StoreError(f"{path} is {value}; only finite numbers can be stored: say None and a status")
    else:
        raise StoreError(f"{path} is a {type(value).__module__}.{type(value).__name__}; convert it to int or float")

"""Fields of records: looked up, checked, and named in words where they are not what they should be."""

import datetime as dt
import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from perftrack.interop.value import BadRecordError
from perftrack.model import Scalar

MAX_NAME_BYTES = 2000
"""Of a suite or case in UTF-8: the largest that every database can index. A longer name ends in its digest."""

_COMMIT = re.compile(r"[0-9a-f]{7,64}", re.IGNORECASE)
_SHOWN = 60


def table(value: Any, what: str) -> Mapping[str, Any]:
    """A JSON object; BadRecordError where it is something else."""
    if not isinstance(value, dict):
        raise BadRecordError(f"{what} is {shown(value)}, not an object")
    return value


def sequence(value: Any, what: str) -> Sequence[Any]:
    """A JSON array; BadRecordError where it is something else."""
    if not isinstance(value, list):
        raise BadRecordError(f"{what} is {shown(value)}, not a list")
    return value


def member(record: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """An object within an object; empty where it is absent or something else."""
    value = record.get(key)
    return value if isinstance(value, dict) else {}


def text(record: Mapping[str, Any], key: str) -> str:
    """A text or number as a text that can be stored; empty where it is absent or something else."""
    value = record.get(key)
    is_text = isinstance(value, str | int | Decimal | float) and not isinstance(value, bool)
    return spelled(str(value)) if is_text else ""


def first_line(record: Mapping[str, Any], key: str) -> str:
    """The first line of a text; empty where it is absent or something else."""
    value = record.get(key)
    return spelled((value.splitlines() or [""])[0]) if isinstance(value, str) else ""


def name(record: Mapping[str, Any], key: str) -> str:
    """A name that tells results apart; BadRecordError where there is none."""
    value = record.get(key)
    if not isinstance(value, str) or not value.strip():
        raise BadRecordError(f"`{key}` is {shown(value)}, not a name" if key in record else f"it has no `{key}`")
    return spelled(value)


def spelled(value: str) -> str:
    r"""A name as it can be stored and shown: whatever is not printable becomes its escape (`\n`, `\x1b`, `\udce9`)."""
    if not value.isprintable():
        value = "".join(
            one if one.isprintable() else one.encode("unicode_escape", "backslashreplace").decode() for one in value
        )
    encoded = value.encode()
    if len(encoded) <= MAX_NAME_BYTES:
        return value
    digest = hashlib.sha256(encoded).hexdigest()[:16]
    return f"{encoded[: MAX_NAME_BYTES - 20].decode('utf-8', 'ignore')}…{digest}"


def number(value: Any, what: str) -> float | int | Decimal:
    """A finite number; BadRecordError otherwise."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise BadRecordError(f"{what} is {shown(value)}, not a number")
    if isinstance(value, float) and not math.isfinite(value):
        raise BadRecordError(f"{what} is {value}, not a finite number")
    return value


def seconds(value: Any, what: str, *, exponent: int = 0, rate: bool = False) -> float:
    """`value` × 10^`exponent` seconds; with `rate`, `value` of something per that time. BadRecordError if not a time.

    Decimal arithmetic: what was scaled on the way out is the same double again on the way in.
    """
    found = number(value, what)
    try:
        exact = found if isinstance(found, Decimal) else Decimal(repr(found))
        time = float(1 / exact.scaleb(-exponent) if rate else exact.scaleb(exponent))
    except (ArithmeticError, ValueError):
        time = math.nan
    if not 0 < time < 1e300:
        raise BadRecordError(f"{what} is {shown(value)}, which is no time: it must be above 0 and finite")
    return time


def times(values: Any) -> tuple[float, ...]:
    """Raw times in seconds; empty where any of them is none."""
    if not isinstance(values, list):
        return ()
    for value in values:
        if isinstance(value, bool) or not isinstance(value, float | int) or not 0 < value < 1e300:
            return ()
    return tuple(map(float, values))


def count(value: Any, default: int = 1) -> int:
    """A number of samples or calls; `default` where it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or not 0 < value < 2**31:
        return default
    return int(value) or default


def scalars(values: Mapping[str, Any]) -> dict[str, Scalar]:
    """Parameters or facts as scalars: what is null is left out, what is nested becomes text."""
    made: dict[str, Scalar] = {}
    for key, given in values.items():
        if given is None:
            continue
        value = float(given) if isinstance(given, Decimal) else given
        plain = isinstance(value, bool) or (isinstance(value, int) and abs(value) < 2**63)
        finite = isinstance(value, float) and math.isfinite(value)
        made[spelled(key)] = value if plain or finite else spelled(str(value))
    return made


def instant(value: Any) -> int | None:
    """Microseconds UTC of an ISO 8601 text (without a zone: UTC); None where it is none."""
    if not isinstance(value, str):
        return None
    try:
        found = dt.datetime.fromisoformat(value.strip())
        found = found if found.tzinfo else found.replace(tzinfo=dt.UTC)
        return (found - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)
    except (ValueError, OverflowError):
        return None


def instant_of_ms(value: Any) -> int | None:
    """Microseconds UTC of JavaScript's milliseconds; None where it is none."""
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    return int(value) * 1000 if is_number and 0 < value < 4e12 else None


def commit(value: Any) -> str:
    """The digits of a commit; empty for what tools write where they know none (`unversioned`, `unknown`)."""
    return value.lower() if isinstance(value, str) and _COMMIT.fullmatch(value) else ""


def shown(value: Any) -> str:
    """A value in a message: short, and on one line."""
    if value is None:
        return "null"
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    made = f'"{spelled(value)}"' if isinstance(value, str) else str(value)
    return made if len(made) <= _SHOWN else f"{made[:_SHOWN]}…"

"""Verification: poisoned outputs, a float64 reference, and every element compared where the data is."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from perftrack.measure.inputs import as_tuple

MAX_FACTOR = 10
"""The largest single error may be this many times the relative L2 error allowed."""

_POISON_FLOAT = 0xFF  # all bits set is a NaN in every floating dtype, bfloat16 included
_POISON_WORD = 0x5A
_CHUNK = {"cupy": 1 << 24, "numpy": 1 << 17}
"""Elements compared at a time: few launches on a GPU, what fits the cache on a CPU."""


@dataclass(frozen=True, slots=True)
class Reference:
    """The right answer: outputs in float64 (integers as they are) and each one's root mean square."""

    outputs: tuple[Any, ...]
    rms: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Errors:
    """How far outputs are from the reference; `problem` is a sentence when that is too far."""

    l2: float = 0.0
    max: float = 0.0
    problem: str = ""


def make_reference(
    xp: Any, function: Callable[..., Any], inputs: tuple[Any, ...], params: Mapping[str, Any]
) -> Reference:
    """Evaluate the benchmark's reference from float64 copies of its inputs, on the device."""
    with np.errstate(all="ignore"):
        outputs = as_tuple(function(*(_widen(xp, array) for array in inputs), **params))
        outputs = tuple(xp.asarray(output) for output in outputs)
        return Reference(outputs, tuple(_rms(xp, output) for output in outputs))


def poison(xp: Any, outputs: tuple[Any, ...]) -> None:
    """Fill outputs with NaN, integers with a bit pattern, so that an element left unwritten is wrong."""
    for output in outputs:
        byte = _POISON_WORD if output.dtype.kind in "iub" else _POISON_FLOAT
        if output.flags.c_contiguous:
            output.reshape(-1).view(xp.uint8).fill(byte)
        else:
            output.fill(xp.nan if output.dtype.kind not in "iub" else output.dtype.type(byte))


def check_arrays(xp: Any, outputs: tuple[Any, ...]) -> str:
    """Why `outputs` are not the backend's plain arrays; empty when they are."""
    for index, output in enumerate(outputs):
        if type(output) is not xp.ndarray:
            return f"output {index} is a {type(output).__name__}, not a {xp.__name__}.ndarray"
    return "" if outputs else "there are no outputs"


def compare(
    xp: Any,
    outputs: tuple[Any, ...],
    reference: Reference,
    *,
    dtypes: tuple[Any, ...] | None,
    tolerance: Mapping[str, float],
    factor: float,
) -> Errors:
    """Compare all elements of all outputs; the errors of the worst output.

    `dtypes` are the baseline variant's; `tolerance` is by dtype, `factor` the variant's own multiple of it.
    """
    if len(outputs) != len(reference.outputs):
        return Errors(problem=f"there are {len(outputs)} outputs, the reference has {len(reference.outputs)}")
    worst = Errors()
    for index, (output, right) in enumerate(zip(outputs, reference.outputs, strict=True)):
        if output.shape != right.shape:
            return Errors(problem=f"output {index} has shape {output.shape}, the reference {right.shape}")
        if dtypes is not None and dtypes[index : index + 1] != (output.dtype,):
            return Errors(problem=f"output {index} is {output.dtype}, the baseline's is {_name(dtypes, index)}")
        found = _compare_one(xp, index, output, right, reference.rms[index], tolerance, factor)
        if found.problem:
            return found
        worst = Errors(max(worst.l2, found.l2), max(worst.max, found.max))
    return worst


def _name(dtypes: tuple[Any, ...], index: int) -> str:
    return str(dtypes[index]) if index < len(dtypes) else "absent"


def _compare_one(
    xp: Any, index: int, output: Any, right: Any, rms: float, tolerance: Mapping[str, float], factor: float
) -> Errors:
    if output.dtype.kind in "iub":
        return _compare_exactly(xp, index, output, right)
    name = _real_name(output.dtype)
    if name not in tolerance:
        return Errors(problem=f"output {index} is {name}, for which the benchmark declares no tolerance")
    allowed = tolerance[name] * factor
    with np.errstate(all="ignore"):
        l2, largest, strange = _figures(xp, output, right, rms)
    if strange:
        return Errors(
            problem=f"output {index} has {strange} of {output.size} elements that are NaN or infinite where the "
            "reference is not, or the reverse (an element that is never written is NaN here)"
        )
    if l2 <= allowed and largest <= MAX_FACTOR * allowed:
        return Errors(l2, largest)
    return Errors(
        l2,
        largest,
        f"output {index}: relative L2 error {l2:.2g} (allowed {allowed:.2g}), "
        f"largest single error {largest:.2g} (allowed {MAX_FACTOR * allowed:.2g})",
    )


def _compare_exactly(xp: Any, index: int, output: Any, right: Any) -> Errors:
    # a boolean is compared as its byte, since a poisoned byte is neither 0 nor 1
    kind = xp.uint8 if output.dtype.kind == "b" else output.dtype
    wrong = sum(int((_plain(xp, o) != r.astype(kind)).sum()) for o, r in _chunks(xp, output, right))
    share = wrong / max(1, output.size)
    problem = f"output {index} differs from the reference at {wrong} of {output.size} elements" if wrong else ""
    return Errors(share, float(wrong > 0), problem)


def _plain(xp: Any, values: Any) -> Any:
    return values.view(xp.uint8) if values.dtype.kind == "b" else values


def _figures(xp: Any, output: Any, right: Any, rms: float) -> tuple[float, float, int]:
    """(relative L2 error, largest |o − r| ÷ (|r| + rms), elements that are not finite and not equal)."""
    squares, largest, strange = 0.0, 0.0, 0
    scale = rms or float(np.finfo(np.float64).tiny)
    for o, r in _chunks(xp, output, right):
        difference = _widen(xp, o) - r
        part = float((difference * difference.conj()).real.sum())
        if not math.isfinite(part):
            difference, odd = _finite_part(xp, _widen(xp, o), r)
            strange += odd
            part = float((difference * difference.conj()).real.sum())
        squares += part
        size = abs(r)
        largest = max(largest, float((abs(difference) / (xp.where(xp.isfinite(size), size, 0) + scale)).max()))
    return math.sqrt(squares / max(1, output.size)) / scale, largest, strange


def _finite_part(xp: Any, o: Any, r: Any) -> tuple[Any, int]:
    """The difference with zeros where either is not finite, and in how many of those the two are not the same."""
    odd = ~(xp.isfinite(o) & xp.isfinite(r))
    same = (o == r) | (xp.isnan(o) & xp.isnan(r))
    return xp.where(odd, 0, o - r), int((odd & ~same).sum())


def _chunks(xp: Any, output: Any, right: Any) -> Iterator[tuple[Any, Any]]:
    flat, flat_right = output.reshape(-1), right.reshape(-1)
    step = _CHUNK.get(xp.__name__, 1 << 17)
    for start in range(0, flat.size, step):
        yield flat[start : start + step], flat_right[start : start + step]


def _rms(xp: Any, output: Any) -> float:
    if output.dtype.kind in "iub" or not output.size:
        return 0.0
    size = abs(_widen(xp, output))
    if not math.isfinite(total := float((size * size).sum())):
        size = xp.where(xp.isfinite(size), size, 0)
        total = float((size * size).sum())
    return math.sqrt(total / output.size)


def _widen(xp: Any, value: Any) -> Any:
    """Floating arrays as float64 (complex as complex128); integers and plain numbers as they are."""
    if not isinstance(value, xp.ndarray) or value.dtype.kind in "iub":
        return value
    if value.dtype.kind == "c":
        return value.astype(np.complex128)
    if value.dtype.kind != "f":  # bfloat16: its way to float64 leads through float32 and loses nothing
        value = value.astype(np.float32)
    return value.astype(np.float64)


def _real_name(dtype: Any) -> str:
    return {"complex64": "float32", "complex128": "float64"}.get(str(dtype.name), str(dtype.name))

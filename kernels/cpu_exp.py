"""An exponential that a compiler can vectorise: Numba calls the C library once per element."""

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np


@dataclass(frozen=True)
class _Format:
    """What the exponential needs to know about a floating-point format."""

    real: type
    integer: type
    mantissa_bits: int
    bias: int
    degree: int
    """Of the Taylor polynomial on |r| ≤ ln(2) / 2: its remainder is below half a unit of round-off."""
    least: float
    most: float
    """Between these, the result is a normal number."""
    ln2_high: float
    """ln 2 with so many trailing zero bits that a product with an exponent is exact."""
    ln2_low: float
    """What ln2_high lacks; a difference of float64 numbers would be too coarse for float64."""


_FORMATS = {
    "float32": _Format(np.float32, np.int32, 23, 127, 7, -87.0, 88.0, 0.693145751953125, 1.4286068203094173e-06),
    "float64": _Format(np.float64, np.int64, 52, 1023, 13, -708.0, 709.0, 0.6931471803691238, 1.9082149292705877e-10),
}


@cache
def exponential(dtype: str) -> Any:
    """A compiled `exp(x)` for a scalar of `dtype`, to be called from compiled loops.

    exp(x) = 2^k · exp(r), x = k ln 2 + r. Arguments are clamped to where the result is a normal number, so that
    exp(-inf) is about 1e-38 (1e-308 in float64), not 0. The relative error is some 2 units of round-off.
    """
    import numba

    f = _FORMATS[dtype]
    real, integer = f.real, f.integer
    least, most, log2_e = real(f.least), real(f.most), real(1 / math.log(2))
    round_up = real(1.5 * 2**f.mantissa_bits)  # adding it leaves the nearest integer in the low bits
    ln2_high, ln2_low = real(f.ln2_high), real(f.ln2_low)
    coefficients = tuple(real(1 / math.factorial(n)) for n in range(f.degree, -1, -1))
    shift, one = integer(f.mantissa_bits), integer(f.bias << f.mantissa_bits)

    # said explicitly, since a callee inherits fast-math from its caller, and then `t + c - c` would be t
    @numba.njit(fastmath=False)
    def exp(x: Any) -> Any:
        x = min(max(x, least), most)
        rounded = x * log2_e + round_up
        k = rounded - round_up
        r = (x - k * ln2_high) - k * ln2_low
        p = coefficients[0]
        for c in coefficients[1:]:
            p = p * r + c
        power = integer(integer(real(rounded).view(integer) << shift) + one)
        return p * integer(power).view(real)

    return exp

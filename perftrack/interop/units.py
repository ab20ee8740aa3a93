"""Units as tools write them: which of them are times, and of which size."""

from typing import NamedTuple

_TIMES = {
    0: ("s", "sec", "secs", "second", "seconds"),
    -3: ("ms", "msec", "msecs", "millisecond", "milliseconds"),
    -6: ("us", "µs", "μs", "usec", "usecs", "microsecond", "microseconds"),
    -9: ("ns", "nsec", "nsecs", "nanosecond", "nanoseconds"),
    -12: ("ps", "psec", "picosecond", "picoseconds"),
}  # fmt: skip
_EXPONENTS = {unit: exponent for exponent, units in _TIMES.items() for unit in units}
_ONE_CALL = frozenset(
    {"iter", "iters", "iteration", "iterations", "op", "ops", "operation", "operations", "call", "run"}
)


class Unit(NamedTuple):
    """A unit of time, or with `rate` one call per such a unit."""

    exponent: int
    rate: bool = False


def time_unit(name: str, *, rates: bool = False) -> Unit | None:
    """`ns`, `ns/iter`, `us/op` …; with `rates` also `iter/sec` and `ops/s`. None where it measures something else.

    A rate is a time only where one call follows the other, which is for the caller to know.
    """
    above, _, below = (part.strip().lower() for part in name.partition("/"))
    if above in _EXPONENTS and (not below or below in _ONE_CALL):
        return Unit(_EXPONENTS[above])
    if rates and above in _ONE_CALL and below in _EXPONENTS:
        return Unit(_EXPONENTS[below], rate=True)
    return None

"""What changed beside the time, from base to head: of the compiled code, of its work, of the clock it ran at."""

import math
from collections.abc import Callable, Sequence

import msgspec

from perftrack import stats
from perftrack.judge.disturbance import CLOCK_MOVES
from perftrack.judge.rounds import Round
from perftrack.model import Case, Resources, Side


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one variant on one side; None where it is not."""

    registers: float | None = None
    """A thread, the largest of its kernels; so is local memory."""
    local_bytes: float | None = None
    """A thread: spilled registers, and arrays that found no registers."""
    shared_bytes: float | None = None
    """A block."""
    occupancy: float | None = None
    """0…1, the smallest of its kernels."""
    launches: float | None = None
    """A call."""
    moved_bytes: float | None = None
    """A call, by the benchmark's own traffic model."""
    clock_mhz: float | None = None
    """Median over rounds of the SM clock its samples ran at."""


def facts(rounds: Sequence[Round], side: Side, variant: str, case: Case | None) -> Facts:
    """Of one side, from the rounds that have samples of both; the compiled code as the first of them saw it.

    `case`: as that side declares it.
    """
    keys: tuple[tuple[Side, str], ...] = (("head", variant), ("base", variant))
    both = [part for part in rounds if all(key in part.block_medians for key in keys)]
    mine = [part.measurements[side, variant] for part in both]
    clocks = [one.clock_mhz for one in mine if one.clock_mhz is not None]
    used = mine[0].resources if mine else Resources()
    return Facts(
        registers=used.registers,
        local_bytes=used.local_bytes,
        shared_bytes=used.shared_bytes,
        occupancy=used.occupancy,
        launches=used.launches,
        moved_bytes=case.traffic.moved_bytes.get(variant) if case else None,
        clock_mhz=stats.median(clocks) if clocks else None,
    )


def why(base: Facts, head: Facts, change: float, min_effect: float) -> str:
    """`likely spills: local memory 0 -> 48 B, registers 64 -> 40`; empty where nothing is known to have changed.

    `change` is head ÷ base time. Where it is at least the minimum effect, what most likely made it stands first; all
    else follows in a fixed order.
    """
    changed = _changed(base, head)
    moved = not 1 / (1 + min_effect) < change < 1 + min_effect
    reasons = likely(*((base, head) if change > 1 else (head, base)), max(change, 1 / change)) if moved else []
    first = [name for name in reasons if name in changed]
    said = [f"{_FIELDS[name][0]} {changed[name]}" for name in dict.fromkeys((*first, *changed))]
    cause = f"likely {' and '.join(_REASONS[name] for name in first)}: " if first else ""
    return cause + ", ".join(said)


def likely(fast: Facts, slow: Facts, change: float) -> list[str]:
    """Fields that can explain that `slow` takes `change` (> 1) times as long as `fast`; the strongest kind only.

    More local memory or more launches than before are work that was not there. More bytes, or a lower clock, are a
    reason where they account for half of the change at least (on a logarithmic scale): time is proportional to the one
    in a kernel bound by memory, to the inverse of the other in one bound by arithmetic. A lower occupancy is one where
    nothing else is.
    """
    half = math.sqrt(change)
    found = [name for name in ("local_bytes", "launches") if _ratio(fast, slow, name) > 1]
    found += ["moved_bytes"] if _ratio(fast, slow, "moved_bytes") >= half else []
    found += ["clock_mhz"] if _ratio(slow, fast, "clock_mhz") >= half else []
    return found or [name for name in ("occupancy",) if _ratio(slow, fast, name) > 1]


def _ratio(before: Facts, after: Facts, name: str) -> float:
    """After ÷ before; 1 where one is unknown, or both are 0, or the clock moved by less than can be told."""
    first, second = getattr(before, name), getattr(after, name)
    if first is None or second is None or first == second or not (second or first):
        return 1.0
    if name == "clock_mhz" and abs(second / first - 1) < CLOCK_MOVES:
        return 1.0
    return second / first if first and second else (math.inf if second else 0.0)


def _changed(base: Facts, head: Facts) -> dict[str, str]:
    """Field → `from -> to`, of what differs."""
    return {
        name: f"{spell(getattr(base, name))} -> {spell(getattr(head, name))}{unit}"
        for name, (_, spell, unit) in _FIELDS.items()
        if not math.isclose(_ratio(base, head, name), 1.0)
    }


def _plain(value: float) -> str:
    return f"{value:g}"


def _share(value: float) -> str:
    return f"{100 * value:.0f} %"


def _bytes(value: float) -> str:
    unit, size = next(
        ((word, size) for word, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)) if value >= size), ("B", 1)
    )
    return f"{value / size:.4g} {unit}"


_FIELDS: dict[str, tuple[str, Callable[[float], str], str]] = {
    "registers": ("registers", _plain, ""),
    "local_bytes": ("local memory", _plain, " B"),
    "shared_bytes": ("shared memory", _plain, " B"),
    "occupancy": ("occupancy", _share, ""),
    "launches": ("launches", _plain, ""),
    "moved_bytes": ("bytes moved", _bytes, ""),
    "clock_mhz": ("clock", lambda value: f"{value:.0f}", " MHz"),
}
"""Field → its name in words, how a value is said, and the unit after the second."""

_REASONS = {
    "local_bytes": "spills",
    "launches": "launches",
    "moved_bytes": "bytes moved",
    "clock_mhz": "the clock",
    "occupancy": "occupancy",
}

"""The noise of A/A comparisons: head and base are one commit, so whatever moves is the machine and the method.

Every ratio is the one that a comparison of two commits uses: median over good blocks of head ÷ base, one a round.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from perftrack import stats
from perftrack.judge.rounds import Round, read_rounds
from perftrack.model import Case, Device, JobResult, Status


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """The noise of one suite on one device class. Shares, not per cent: 0.001 is 0.1 %."""

    suite: str
    device_class: str
    comparisons: int
    """(case, variant) pairs with at least one round that measured both sides."""
    rounds: int
    """Of the comparison that has most."""
    fastest_s: float
    """Shortest and longest median time of a compared variant."""
    slowest_s: float
    deviation: float
    """Standard deviation of head ÷ base over all comparisons and rounds, about the 1 that it is known to be."""
    worst: float
    """Largest |head ÷ base - 1| of a round."""
    process_deviation: float | None
    """Standard deviation of a variant's median time from process to process on one device, relative; None where no
    device measured one twice."""
    detectable: float | None
    """The smallest change that the rounds could have shown, relative: median over the comparisons with two rounds."""
    detectable_worst: float | None


class DeviceNoise(msgspec.Struct, frozen=True, kw_only=True):
    """What the rounds saw of one device itself."""

    uuid: str
    device_class: str
    processes: int
    blocks: int
    bad_blocks: int
    ceiling_bytes_per_s: float | None
    """Copy ceiling, median over processes."""
    ceiling_spread: float | None
    """Largest ÷ smallest copy ceiling of a process, less 1."""
    canary_spread: float | None
    """Largest ÷ smallest median canary of a process, less 1."""
    clock_low_mhz: float | None
    clock_high_mhz: float | None


def families(cases: Iterable[Case], devices: Iterable[Device], results: Sequence[JobResult]) -> list[Family]:
    """The noise suite by suite, from the results of a run whose head is its base; suites without a ratio are left out.

    `cases`: of all backends. `results`: of all cases, rounds and devices, the attempts that count.
    """
    found: dict[tuple[str, str], list[_Comparison]] = {}
    classes = {device.device_class: device.backend for device in devices}
    for case in cases:
        for name in (name for name, backend in classes.items() if backend == case.backend):
            rounds = read_rounds(results, case, name)
            made = [one for variant in case.variants if (one := _compare(rounds, variant)) is not None]
            found.setdefault((case.suite, name), []).extend(made)
    return [_family(suite, name, mine) for (suite, name), mine in found.items() if mine]


def devices_seen(results: Sequence[JobResult]) -> list[DeviceNoise]:
    """What every device that gave results went through, in order of their first appearance."""
    by_device: dict[str, list[JobResult]] = {}
    for result in results:
        if result.device_uuid:
            by_device.setdefault(result.device_uuid, []).append(result)
    return [_device(uuid, mine) for uuid, mine in by_device.items()]


def unmeasured(results: Iterable[JobResult]) -> list[str]:
    """What gave no number and why, in sentences: skipped variants counted by their reason, the rest one by one."""
    skipped: Counter[str] = Counter()
    others: dict[str, None] = {}
    for result in results:
        named = f"{result.suite}: {result.case_key}"
        if result.status is not Status.OK:
            others[f"{named} on {result.device_class}: {result.status.value}: {result.message}"] = None
        for one in result.measurements:
            if one.side == "head" and result.round == 1 and one.status is Status.SKIPPED:
                skipped[one.message] += 1
            elif one.status not in (Status.OK, Status.SKIPPED, Status.UNSTABLE):
                others[f"{named} {one.variant}: {one.status.value}: {one.message}"] = None
    return [f"{count} variant{'s' if count > 1 else ''} skipped: {why}" for why, count in skipped.items()] + list(
        others
    )


@dataclass(frozen=True, slots=True)
class _Comparison:
    """One variant of one case on one device class."""

    ratios: list[float]
    """Head ÷ base, one a round."""
    time_s: float
    squares: float
    """Of the distances of log median times from their mean, device by device, summed; over `degrees` of freedom."""
    degrees: int


def _compare(rounds: Sequence[Round], variant: str) -> _Comparison | None:
    used = [(part, ratio) for part in rounds if (ratio := part.ratio(("head", variant), ("base", variant))) is not None]
    if not used:
        return None
    times: list[float] = []
    by_device: dict[str, list[float]] = {}
    for part, _ in used:
        time_s = part.time_s("head", variant) or 0.0  # a ratio has both
        times.append(time_s)
        by_device.setdefault(part.result.device_uuid, []).append(math.log(time_s))
    squares = sum(_squares(logs) for logs in by_device.values())
    return _Comparison([ratio for _, ratio in used], stats.median(times), squares, len(times) - len(by_device))


def _squares(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values)


def _family(suite: str, device_class: str, comparisons: Sequence[_Comparison]) -> Family:
    ratios = [ratio for one in comparisons for ratio in one.ratios]
    detectable = [stats.detectable_effect(one.ratios) for one in comparisons if len(one.ratios) > 1]
    degrees = sum(one.degrees for one in comparisons)
    return Family(
        suite=suite,
        device_class=device_class,
        comparisons=len(comparisons),
        rounds=max(len(one.ratios) for one in comparisons),
        fastest_s=min(one.time_s for one in comparisons),
        slowest_s=max(one.time_s for one in comparisons),
        deviation=math.sqrt(math.fsum(math.log(ratio) ** 2 for ratio in ratios) / len(ratios)),
        worst=max(abs(ratio - 1) for ratio in ratios),
        process_deviation=math.sqrt(math.fsum(one.squares for one in comparisons) / degrees) if degrees else None,
        detectable=stats.median(detectable) if detectable else None,
        detectable_worst=max(detectable, default=None),
    )


def _device(uuid: str, results: Sequence[JobResult]) -> DeviceNoise:
    ceilings: dict[int, float] = {}
    canaries: dict[int, list[float]] = {}
    for result in results:  # one process a round; of two ceilings the later is the better one
        if result.ceiling_bytes_per_s:
            ceilings[result.round] = max(result.ceiling_bytes_per_s, ceilings.get(result.round, 0.0))
        canaries.setdefault(result.round, []).extend(result.canary_s)
    clocks = [clock for result in results for clock in result.clock_mhz]
    return DeviceNoise(
        uuid=uuid,
        device_class=results[0].device_class,
        processes=len({result.round for result in results}),
        blocks=sum(len(result.canary_s) for result in results),
        bad_blocks=sum(len(result.bad_blocks) for result in results),
        ceiling_bytes_per_s=stats.median(list(ceilings.values())) if ceilings else None,
        ceiling_spread=_spread(ceilings.values()),
        canary_spread=_spread(stats.median(seconds) for seconds in canaries.values() if seconds),
        clock_low_mhz=min(clocks, default=None),
        clock_high_mhz=max(clocks, default=None),
    )


def _spread(values: Iterable[float]) -> float | None:
    known = list(values)
    return max(known) / min(known) - 1 if len(known) > 1 and min(known) > 0 else None

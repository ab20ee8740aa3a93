"""What spoils measuring on a device, read from results: disturbed blocks, clocks, settings, others at work.

Each is a sentence and a remedy in words. None of it enters a verdict: bad blocks are left out of those already.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from perftrack import stats
from perftrack.judge.noise import devices_seen
from perftrack.model import Backend, Device, JobResult, Method, Scalar, Status

CLOCK_MOVES = 0.01
"""Share by which the SM clock may move between blocks before it is said."""

CANARY_MOVES: Mapping[Backend, float] = {"cuda": 0.01, "cpu": 0.1}
"""Share by which the median canary may move from process to process before it is said."""

BUSY_LOAD = 0.5
"""Processes that want to run on a CPU before measuring begins, on average, from which it is not one's own."""

_REASONS = {
    "sw_power_cap": (
        "the power cap held the clock down",
        "raise it to the card's maximum (nvidia-smi -pl, root); work that is always capped is steady all the same",
    ),
    "sw_thermal": (
        "the card was too hot and slowed itself down",
        "better cooling, or a pause before measuring",
    ),
    "hw_thermal": (
        "the card was too hot and was slowed down by its hardware",
        "stop measuring on it until its cooling is mended",
    ),
    "hw_power_brake": (
        "the machine's power supply made the card slow down",
        "fewer cards at work on this supply at a time, or a larger supply",
    ),
    "hw_slowdown": (
        "the card's hardware slowed it down",
        "nvidia-smi -q -d PERFORMANCE names the reason; temperature and power supply are the usual ones",
    ),
}

_COMPARED = ("driver", "power_limit_w", "app_sm_mhz", "ecc", "mig", "persistence", "compute_mode", "nice", "governor")
"""Settings in which the devices of one class should agree."""


class Disturbance(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that makes measuring worse than it could be."""

    where: str
    """UUID of the device, or the device class; empty for the pool as a whole."""
    what: str
    remedy: str


def disturbances(
    devices: Sequence[Device], results: Sequence[JobResult], methods: Mapping[Backend, Method]
) -> list[Disturbance]:
    """What the results of a run show, device by device, then what the devices of a class do not agree in.

    `results`: every attempt, also those that do not count. `methods`: as the run was measured, by backend.
    """
    found: list[Disturbance] = []
    for device in devices:
        mine = [result for result in results if result.device_uuid == device.uuid]
        said = [*_bad_blocks(mine, methods[device.backend]), *_canary(mine, device), *_clock(mine), *_others(mine)]
        found += [
            Disturbance(where=device.uuid, what=what, remedy=remedy)
            for what, remedy in (*said, *_settings(_entries(mine)))
        ]
    return found + _differences(devices, results)


def busy_host(device: Device, load: float) -> list[Disturbance]:
    """Whether a CPU had other work: `load` is its load average, in processes, before measuring began."""
    if device.backend != "cpu" or load < BUSY_LOAD:
        return []
    what = (
        f"other processes were at work before measuring began: a load of {load:.1f} on {device.multiprocessors} cores"
    )
    return [
        Disturbance(where=device.uuid, what=what, remedy="end them, or measure on a machine with nothing else to do")
    ]


def _bad_blocks(results: Sequence[JobResult], method: Method) -> Iterable[tuple[str, str]]:
    total = sum(len(result.canary_s) for result in results)
    why = Counter(reason for result in results for reason in _why_bad(result, method))
    if count := why["canary"]:
        yield (
            f"{count} of {total} blocks: the canary copy was more than {100 * method.canary_limit:g} % off its median",
            "keep other work off the device and its machine; on a GPU also lock the clocks (nvidia-smi -lgc, root)",
        )
    if count := why["host"]:
        yield (
            f"{count} of {total} blocks: the device waited for the host, or its clock changed inside the block",
            "leave the worker's CPU cores to it, set their governor to performance, and lock the card's clocks",
        )
    for reason in sorted({reason for result in results for reason in result.throttle_reasons}):
        if reason in _REASONS:
            what, remedy = _REASONS[reason]
            yield (f"{what}: {why[reason]} of {total} blocks" if why[reason] else what), remedy
    if unstable := sum(result.status is Status.UNSTABLE for result in results):
        yield (
            f"{unstable} of {len(results)} jobs gave no number: more than {100 * method.max_bad_share:g} % bad blocks",
            "what made the blocks bad is said above",
        )


def _why_bad(result: JobResult, method: Method) -> Iterable[str]:
    """For each bad block `canary`, or else every reason for a low clock (known of the whole job only), or `host`."""
    if not result.bad_blocks:
        return
    middle = stats.median(result.canary_s)
    for block in result.bad_blocks:
        if abs(result.canary_s[block] - middle) > method.canary_limit * middle:
            yield "canary"
        else:
            yield from result.throttle_reasons or ("host",)


def _canary(results: Sequence[JobResult], device: Device) -> Iterable[tuple[str, str]]:
    for seen in devices_seen(results):
        if seen.canary_spread is not None and seen.canary_spread > CANARY_MOVES[device.backend]:
            yield (
                f"the same copy took up to {100 * seen.canary_spread:.1f} % longer in one process than in another",
                "something else used the memory now and then, or the clock changed: keep the machine to itself",
            )


def _clock(results: Sequence[JobResult]) -> Iterable[tuple[str, str]]:
    clocks = [clock for result in results for clock in result.clock_mhz if clock > 0]
    if clocks and max(clocks) > (1 + CLOCK_MOVES) * min(clocks):
        yield (
            f"the SM clock is not locked: it was between {min(clocks):.0f} and {max(clocks):.0f} MHz",
            "lock it (nvidia-smi -lgc, root): times of two runs agree better; head and base share blocks as it is",
        )


def _others(results: Sequence[JobResult]) -> Iterable[tuple[str, str]]:
    for message in dict.fromkeys(result.message for result in results if result.status is Status.INFRA):
        yield message, "keep other programs off the device while it is measured (nvidia-smi lists them)"


def _settings(entries: Mapping[str, Scalar]) -> Iterable[tuple[str, str]]:
    highest, chosen = entries.get("max_sm_mhz"), entries.get("app_sm_mhz")
    if entries.get("persistence") is False:
        yield (
            "persistence mode is off: the driver may load the card anew for every process",
            "nvidia-smi -pm 1 (root)",
        )
    if entries.get("ecc") is False:
        yield (
            "ECC is off: a flipped bit goes unseen",
            "nvidia-smi -e 1 and a reboot, or leave it off on all cards alike",
        )
    if entries.get("mig") is True:
        yield (
            "the card is divided (MIG): its parts share memory and power",
            "leave the other parts idle, or divide it not",
        )
    if isinstance(highest, int) and isinstance(chosen, int) and chosen < highest:
        yield f"the application clock is set to {chosen} of {highest} MHz", "nvidia-smi -rac, unless it is meant so"
    if isinstance(nice := entries.get("nice"), int) and nice > 0:
        yield (
            f"the worker runs at niceness {nice}, so everything else on the machine goes first",
            "start Ray with RAY_worker_niceness=0, and `ray start` without nice",
        )
    if (governor := entries.get("governor", "performance")) != "performance":
        yield (
            f"the CPU's governor is {governor}: its clock follows the load",
            "cpupower frequency-set -g performance (root)",
        )


def _entries(results: Iterable[JobResult]) -> Mapping[str, Scalar]:
    """The environment that the last result names."""
    known = [result.environment.entries for result in results if result.environment is not None]
    return known[-1] if known else {}


def _differences(devices: Sequence[Device], results: Sequence[JobResult]) -> list[Disturbance]:
    found: list[Disturbance] = []
    for name in dict.fromkeys(device.device_class for device in devices):
        uuids = [device.uuid for device in devices if device.device_class == name]
        entries = [_entries(result for result in results if result.device_uuid == uuid) for uuid in uuids]
        for setting in _COMPARED:
            values = list(dict.fromkeys(str(one[setting]) for one in entries if setting in one))
            if len(values) > 1:
                what = f"the devices of {name} differ in {setting}: {', '.join(values)}"
                remedy = "give them the same; until then results of one do not continue the series of another"
                found.append(Disturbance(where=name, what=what, remedy=remedy))
    return found

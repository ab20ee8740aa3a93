"""A made-up past, the same every time: commits of a repository that is not, measured on devices that are not."""

import hashlib
import random
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from perftrack.errors import UsageError
from perftrack.model import (
    Case,
    Device,
    Environment,
    JobResult,
    Measurement,
    Resources,
    Revision,
    Scalar,
    Side,
    Status,
    Traffic,
)
from perftrack.store import Store

REPO = "synthetic-demo"
COMMITS = 60
START_US = 1_767_600_000_000_000
"""5 January 2026; a commit a day."""
DAY_US = 86_400_000_000

_LAUNCH_S = 3e-6
_REACHED = 0.93
"""Of its copy ceiling a kernel reaches so much."""
_BLOCKS = 4
_NOISE = (0.0012, 0.0008)
"""Relative standard deviations: of a process, of a sample."""

ENVIRONMENT = Environment(entries={"driver": "synthetic", "cuda": "synthetic"})


def refuse(store: Store) -> None:
    """UsageError where the store holds what is made up: what was measured never joins it."""
    newest = store.runs(last=1)
    if newest and newest[0].run.repo == REPO:
        raise UsageError(
            f"{store.label} holds the made-up history of `perftrack demo`, which no results join: name another "
            "database (--db or PERFTRACK_DB)"
        )


class Operation(NamedTuple):
    """What is needed to make a case up."""

    suite: str
    benchmark: str
    params: dict[str, Scalar]
    elements: int
    reads: int
    """Arrays read at least; one is written."""
    kernels: int
    """Of the unfused variant, each of which reads one array more than the last of them and writes one."""


class Change(NamedTuple):
    """What happens to the `fused` variant of a benchmark on a device class, from one commit until before another."""

    benchmark: str
    device_class: str
    first: int
    until: int
    subject: str
    level: float = 1.0
    """Time ÷ time before; of a creep at its end."""
    registers: int = 32
    launches: int = 1
    creeps: bool = False
    message: str = ""
    """Of a crash."""


LARGE = Device(
    uuid="GPU-synthetic-large", name="synthetic GPU, large", backend="cuda", device_class="synthetic-large-141G",
    node="synthetic-1", memory_bytes=141 * 10**9, compute_capability="9.0", multiprocessors=132, l2_bytes=60 * 10**6,
    peak_bytes_per_s=4.8e12,
)  # fmt: skip
SMALL = Device(
    uuid="GPU-synthetic-small", name="synthetic GPU, small", backend="cuda", device_class="synthetic-small-24G",
    node="synthetic-2", memory_bytes=24 * 10**9, compute_capability="8.9", multiprocessors=58, l2_bytes=48 * 10**6,
    peak_bytes_per_s=0.3e12,
)  # fmt: skip
DEVICES = (LARGE, SMALL)

_OPERATIONS = (
    Operation("elementwise", "add_mul_relu", {"dtype": "float32", "n": 2**20}, 2**20, 3, 3),
    Operation("elementwise", "add_mul_relu", {"dtype": "float32", "n": 2**26}, 2**26, 3, 3),
    Operation("normalization", "layer_norm", {"cols": 4096, "dtype": "float16", "rows": 8192}, 2**25, 1, 4),
    Operation("normalization", "residual_rms_norm", {"cols": 8192, "dtype": "float16", "rows": 4096}, 2**25, 2, 4),
    Operation("optimizer", "adamw", {"dtype": "float32", "n": 2**24}, 2**24, 4, 6),
    Operation("softmax", "softmax", {"cols": 4096, "dtype": "float16", "rows": 8192}, 2**25, 1, 4),
)

_AFTER = COMMITS + 1
CHANGES = (
    Change("softmax", LARGE.device_class, 14, 27, "softmax: one block a row", level=1.15, launches=2),
    Change("layer_norm", SMALL.device_class, 18, _AFTER, "layer_norm: tidy up", level=1.11, creeps=True),
    Change("adamw", LARGE.device_class, 33, _AFTER, "adamw: keep the moments in float32", level=1.07, registers=40),
    Change("add_mul_relu", LARGE.device_class, 41, _AFTER, "elementwise: 16-byte accesses", level=0.88),
    Change(
        "layer_norm", LARGE.device_class, 46, 49, "layer_norm: two rows a block",
        message="CUDA error: an illegal memory access was encountered",
    ),
    Change("residual_rms_norm", SMALL.device_class, 50, _AFTER, "rms_norm: unroll by 8", level=1.06, registers=48),
    Change("residual_rms_norm", LARGE.device_class, COMMITS, _AFTER, "rms_norm: wide tile", level=1.09, registers=64),
)  # fmt: skip
ACKNOWLEDGED = ("adamw", 40, "the moments lost too much in float16")
"""Benchmark, commit after whose run it is said, and why."""


@cache
def pairs() -> list[tuple[Case, Device]]:
    """What is measured of every commit, and on which device."""
    cases = [_case(one) for one in _OPERATIONS]
    return [(case, device) for device in DEVICES for case in cases]


def _case(one: Operation) -> Case:
    width = 4 if one.params["dtype"] == "float32" else 2
    size = one.elements * width
    stepwise = (one.reads - 1 + 2 * one.kernels) * size
    return Case(
        suite=one.suite,
        benchmark=one.benchmark,
        key=f"{one.benchmark}[{','.join(f'{name}={value}' for name, value in sorted(one.params.items()))}]",
        backend="cuda",
        params=one.params,
        variants=("unfused", "steps", "fused"),
        traffic=Traffic(
            read_bytes=one.reads * size,
            write_bytes=size,
            moved_bytes={"unfused": stepwise, "steps": stepwise, "fused": (one.reads + 1) * size},
            flops=one.kernels * one.elements,
        ),
        min_effect=0.02,
        doc="Made up: nothing was measured.",
    )


@cache
def revision(number: int) -> Revision:
    """The commit at a first-parent distance of `number` from the first."""
    begun = next((one.subject for one in CHANGES if one.first == number), "")
    ended = next((f"revert: {one.subject}" for one in CHANGES if one.until == number), "")
    return Revision(
        sha=_hex("commit", number),
        tree=_hex("tree", number),
        dirty=False,
        parent=_hex("commit", number - 1) if number > 1 else None,
        position=number - 1,
        committed_us=START_US + number * DAY_US,
        subject=begun or ended or f"synthetic commit {number}",
        branch="main",
    )


def run_uid(number: int) -> str:
    """Of the run that measured commit `number`: 32 hex digits."""
    return _hex("run", number)[:32]


def job(case: Case, device: Device, number: int, turn: int) -> JobResult:
    """Round `turn` of a case at commit `number`, beside the commit before unless it is the first."""
    noise = random.Random(f"{number} {turn} {case.key} {device.uuid}")  # noqa: S311 - noise, not a secret
    sides: tuple[Side, ...] = ("head", "base") if number > 1 else ("head",)
    ceiling = 0.9 * (device.peak_bytes_per_s or 0.0)
    return JobResult(
        suite=case.suite,
        case_key=case.key,
        device_class=device.device_class,
        round=turn,
        attempt=1,
        status=Status.OK,
        device_uuid=device.uuid,
        environment=ENVIRONMENT,
        seed=number,
        measurements=tuple(_measured(case, device, number, sides, noise)),
        canary_s=(1e-4,) * _BLOCKS,
        clock_mhz=(1500.0,) * _BLOCKS,
        ceiling_bytes_per_s=ceiling,
        mix_ceiling_bytes_per_s=ceiling,
        cached=case.traffic.min_bytes < device.l2_bytes,
        sets=4,
        set_bytes=case.traffic.min_bytes,
        timed_s=0.3,
        wall_s=2.0,
        started_us=revision(number).committed_us + turn * 60_000_000,
    )


def _measured(
    case: Case, device: Device, number: int, sides: tuple[Side, ...], noise: random.Random
) -> Iterator[Measurement]:
    for side in sides:
        at = number if side == "head" else number - 1
        for variant in case.variants:
            change = _change(case, device, at) if variant == "fused" else None
            if change and change.message:
                yield Measurement(side=side, variant=variant, status=Status.FAILED, message=change.message)
                continue
            kernels = next(one.kernels for one in _OPERATIONS if one.benchmark == case.benchmark)
            launches = 1 if variant == "fused" else kernels
            seconds = _time_s(case, device, variant, launches) * _level(change, at) * noise.gauss(1, _NOISE[0])
            yield Measurement(
                side=side,
                variant=variant,
                status=Status.OK,
                samples_s=tuple(seconds * noise.gauss(1, _NOISE[1]) for _ in range(_BLOCKS)),
                blocks=tuple(range(_BLOCKS)),
                calls_per_sample=20,
                mode="graph",
                error_l2=1e-7,
                error_max=4e-7,
                host_s=launches * _LAUNCH_S,
                resources=Resources(
                    registers=change.registers if change else 32,
                    local_bytes=0,
                    shared_bytes=0,
                    occupancy=1.0,
                    launches=change.launches if change else launches,
                ),
                clock_mhz=1500.0,
                build_s=0.4,
            )


def _time_s(case: Case, device: Device, variant: str, launches: int) -> float:
    slower = 1.3 if variant == "unfused" else 1.0  # than well-made single steps
    reached = _REACHED * 0.9 * (device.peak_bytes_per_s or 1.0)
    return launches * _LAUNCH_S + slower * case.traffic.moved_bytes[variant] / reached


def _change(case: Case, device: Device, number: int) -> Change | None:
    return next(
        (
            one
            for one in CHANGES
            if (one.benchmark, one.device_class) == (case.benchmark, device.device_class)
            and one.first <= number < one.until
        ),
        None,
    )


def _level(change: Change | None, number: int) -> float:
    if change is None:
        return 1.0
    share = (number - change.first + 1) / (COMMITS - change.first + 1) if change.creeps else 1.0
    return change.level**share


def _hex(what: str, number: int) -> str:
    return hashlib.sha256(f"perftrack demo: {what} {number}".encode()).hexdigest()[:40]

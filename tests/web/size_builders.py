"""A store with a chain of operations at many sizes: launching costs 3 µs a kernel, memory gives 4 TB/s."""

from web_builders import DRIVER, START_US, run_uid

from perftrack.judge.value import Interval, Summary
from perftrack.model import Case, Device, JobResult, Measurement, Method, Revision, Run, RunOptions, Status, Traffic

CLASS = "NVIDIA-H200-141G"
SIZES = tuple(4**power for power in range(6, 14))
LAUNCH_S, BYTES_PER_S = 3e-6, 4e12
KERNELS = {"unfused": 3, "steps": 3, "fused": 1, "fused_slow": 1}
OPERATIONS = 3


def time_s(variant: str, n: int, itemsize: int) -> float:
    """`fused_slow` does as well as steps where launching is the time, and worse at larger sizes."""
    moved = {"unfused": 8, "steps": 8, "fused": 3, "fused_slow": 9}[variant] * n * itemsize
    slower = {"unfused": 1.2}.get(variant, 1.0)
    launches = 3 if variant == "fused_slow" else KERNELS[variant]
    return launches * LAUNCH_S + slower * moved / BYTES_PER_S


def sizes(store, number: int = 1, *, benchmark: str = "chain", only: tuple[int, ...] = SIZES) -> None:
    """One run of `benchmark` in two dtypes and of a benchmark that counts no operations."""
    cases = [case("chains", benchmark, dtype, n) for dtype in ("float16", "float32") for n in only]
    cases.append(case("copies", "copy", "float32", SIZES[-1], flops=0))
    run = Run(
        uid=run_uid(number), repo="kernels", head=head(number), base=None, base_note="none",
        options=RunOptions(methods={"cuda": Method()}), started_us=START_US + number, expected_jobs=len(cases),
    )  # fmt: skip
    store.begin_run(run)
    card = Device(
        uuid="GPU-1", name=CLASS, backend="cuda", device_class=CLASS, node="gpu-07", memory_bytes=141 * 10**9,
    )  # fmt: skip
    for one in cases:
        attempt = JobResult(
            suite=one.suite, case_key=one.key, device_class=CLASS, round=1, attempt=1, status=Status.OK,
            device_uuid=card.uuid, environment=DRIVER, started_us=run.started_us,
            measurements=tuple(Measurement(side="head", variant=name, status=Status.OK) for name in one.variants),
        )  # fmt: skip
        store.add_job(run.uid, one, attempt, card)
    store.finish_run(
        run.uid, state="complete", finished_us=run.started_us, findings=(),
        summaries=[summary(one, name) for one in cases for name in one.variants],
    )  # fmt: skip


def head(number: int) -> Revision:
    return Revision(
        sha=f"{number:07x}".ljust(40, "d"), tree="t" * 40, dirty=False, parent=None, position=number,
        committed_us=START_US, subject="chain",
    )  # fmt: skip


def case(suite: str, benchmark: str, dtype: str, n: int, *, flops: int = OPERATIONS) -> Case:
    width = {"float16": 2, "float32": 4}[dtype]
    return Case(
        suite=suite, benchmark=benchmark, key=f"{benchmark}[dtype={dtype},n={n}]", backend="cuda",
        params={"dtype": dtype, "n": n}, variants=tuple(KERNELS), min_effect=0.02,
        traffic=Traffic(
            read_bytes=2 * n * width, write_bytes=n * width, flops=flops * n,
            moved_bytes={"unfused": 8 * n * width, "steps": 8 * n * width, "fused": 3 * n * width},
        ),
    )  # fmt: skip


def summary(one: Case, variant: str) -> Summary:
    n, width = one.params["n"], one.traffic.min_bytes // 3 // one.params["n"]
    times = {name: time_s(name, n, width) for name in KERNELS}
    own = times[variant]
    gain = times["steps"] / own if variant.startswith("fused") else None
    expected = 8 / 3 if variant == "fused" else None
    exact = lambda ratio: None if ratio is None else Interval(ratio, ratio, ratio)  # noqa: E731
    return Summary(
        suite=one.suite, case_key=one.key, device_class=CLASS, device_uuid="GPU-1", environment_digest=DRIVER.digest,
        variant=variant, side="head", status=Status.OK, time_s=own, baseline_s=times["unfused"],
        speedup=None if variant == "unfused" else exact(times["unfused"] / own), fusion_gain=exact(gain),
        expected_gain=expected, fusion_efficiency=gain / expected if gain and expected else None,
        bandwidth_bytes_per_s=one.traffic.min_bytes / own, utilization=one.traffic.min_bytes / own / BYTES_PER_S,
        flops_per_s=one.traffic.flops / own if one.traffic.flops else None, rounds=3,
        cached=one.traffic.min_bytes < 60 * 2**20,
    )  # fmt: skip

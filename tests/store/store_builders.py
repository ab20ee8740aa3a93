"""Small whole values, to be varied by keyword."""

from typing import Any

from perftrack.judge.value import Finding, Interval, Summary
from perftrack.model import (
    Case,
    Cause,
    Device,
    Environment,
    JobResult,
    Measurement,
    Method,
    Resources,
    Revision,
    Run,
    RunOptions,
    Status,
    Traffic,
    Verdict,
)

ENVIRONMENT = Environment(entries={"driver": "580.65", "threads": 2, "locked": True, "clock": 1.5})
RESOURCES = Resources(registers=32, local_bytes=0, shared_bytes=48, occupancy=0.75, launches=1, code_digest="c0de")


def revision(number: int = 7, **changes: Any) -> Revision:
    """The commit at a first-parent distance of `number`."""
    fields: dict[str, Any] = {
        "sha": f"{number:07x}".ljust(40, "a"),
        "tree": f"{number:07x}".ljust(40, "b"),
        "dirty": False,
        "parent": f"{number - 1:07x}".ljust(40, "a") if number else None,
        "position": number,
        "committed_us": 1_700_000_000_000_000 + number,
        "subject": f"commit {number}",
        "branch": "main",
    }
    return Revision(**(fields | changes))


def run(number: int = 1, **changes: Any) -> Run:
    fields: dict[str, Any] = {
        "uid": f"{number:032x}"[::-1],
        "repo": "kernels",
        "head": revision(7),
        "base": revision(6),
        "base_note": "merge-base with main, 1 commit back",
        "options": RunOptions(methods={"cpu": Method(timer="host", cache="hot"), "cuda": Method()}, seed=3),
        "started_us": 1_700_000_100_000_000 + number,
        "problems": ("suite broken: SyntaxError",),
        "expected_jobs": 12,
    }
    return Run(**(fields | changes))


def case(key: str = "add[dtype=float32,n=1024]", **changes: Any) -> Case:
    fields: dict[str, Any] = {
        "suite": "elementwise",
        "benchmark": key.partition("[")[0],
        "key": key,
        "backend": "cpu",
        "params": {"n": 1024, "dtype": "float32", "scale": 1.0, "fast": True},
        "variants": ("unfused", "steps", "fused"),
        "traffic": Traffic(read_bytes=8192, write_bytes=4096, moved_bytes={"steps": 24576, "fused": 12288}, flops=2048),
        "min_effect": 0.02,
        "doc": "Add, multiply, clip.",
    }
    return Case(**(fields | changes))


def device(number: int = 1, **changes: Any) -> Device:
    fields: dict[str, Any] = {
        "uuid": f"CPU-{number}",
        "name": "EPYC 9654",
        "backend": "cpu",
        "device_class": "EPYC-9654-2c",
        "node": f"node-{number}",
        "memory_bytes": 2**35,
    }
    return Device(**(fields | changes))


def measurement(side: str = "head", variant: str = "fused", **changes: Any) -> Measurement:
    fields: dict[str, Any] = {
        "side": side,
        "variant": variant,
        "status": Status.OK,
        "samples_s": tuple(1e-5 + 1e-9 * index for index in range(50)),
        "blocks": tuple(index // 2 for index in range(50)),
        "calls_per_sample": 20,
        "mode": "loop",
        "error_l2": 1e-7,
        "error_max": 2e-7,
        "host_s": 3e-6,
        "resources": RESOURCES,
    }
    return Measurement(**(fields | changes))


def job(**changes: Any) -> JobResult:
    fields: dict[str, Any] = {
        "suite": "elementwise",
        "case_key": "add[dtype=float32,n=1024]",
        "device_class": "EPYC-9654-2c",
        "round": 1,
        "attempt": 1,
        "status": Status.OK,
        "device_uuid": "CPU-1",
        "environment": ENVIRONMENT,
        "seed": 2**40,
        # in the order in which they were measured, which no key implies
        "measurements": tuple(
            measurement(side, variant) for variant in ("unfused", "fused", "steps") for side in ("head", "base")
        ),
        "canary_s": (1.0e-4, 1.1e-4),
        "bad_blocks": (1,),
        "clock_mhz": (1590.0, 1605.0),
        "throttle_reasons": ("power cap",),
        "ceiling_bytes_per_s": 3e10,
        "mix_ceiling_bytes_per_s": 2.9e10,
        "cached": True,
        "sets": 4,
        "set_bytes": 2**28,
        "source_digest": {"head": "aa", "base": "bb"},
        "timed_s": 1.25,
        "wall_s": 2.5,
        "started_us": 1_700_000_100_000_100,
    }
    return JobResult(**(fields | changes))


def failed(**changes: Any) -> JobResult:
    """An attempt that ended before it measured anything."""
    nothing: dict[str, Any] = {
        "status": Status.FAILED,
        "message": "exit code -11",
        "measurements": (),
        "canary_s": (),
        "clock_mhz": (),
        "bad_blocks": (),
        "environment": None,
        "device_uuid": "",
    }
    return job(**(nothing | changes))


def summary(side: str = "head", variant: str = "fused", **changes: Any) -> Summary:
    fields: dict[str, Any] = {
        "suite": "elementwise",
        "case_key": "add[dtype=float32,n=1024]",
        "device_class": "EPYC-9654-2c",
        "device_uuid": "CPU-1",
        "environment_digest": ENVIRONMENT.digest,
        "variant": variant,
        "side": side,
        "status": Status.OK,
        "time_s": 1e-5,
        "q10_s": 0.999e-5,
        "q90_s": 1.001e-5,
        "baseline_s": 2e-5,
        "speedup": Interval(2.0, 1.98, 2.02),
        "fusion_gain": Interval(1.5, 1.49, 1.51),
        "expected_gain": 2.0,
        "fusion_efficiency": 0.75,
        "bandwidth_bytes_per_s": 1.2288e9,
        "utilization": 0.9,
        "peak_utilization": 0.8,
        "flops_per_s": 2.048e8,
        "samples": 150,
        "rounds": 3,
        "bad_blocks": 1,
        "error_l2": 1e-7,
        "error_max": 2e-7,
        "host_s": 3e-6,
        "mode": "loop",
        "cached": True,
        "resources": RESOURCES,
    }
    return Summary(**(fields | changes))


def failed_summary(side: str = "head", variant: str = "fused", **changes: Any) -> Summary:
    """A variant without a time."""
    whole = summary(side, variant)
    kept: dict[str, Any] = {
        name: getattr(whole, name) for name in ("suite", "case_key", "device_class", "side", "variant")
    }
    kept |= {"device_uuid": "", "environment_digest": "", "status": Status.FAILED, "message": "exit code -11"}
    return Summary(**(kept | changes))


def finding(variant: str = "fused", **changes: Any) -> Finding:
    fields: dict[str, Any] = {
        "suite": "elementwise",
        "case_key": "add[dtype=float32,n=1024]",
        "device_class": "EPYC-9654-2c",
        "variant": variant,
        "verdict": Verdict.SLOWER,
        "cause": Cause.FUSED_SLOWER,
        "message": "",
        "head_s": 1.1e-5,
        "base_s": 1e-5,
        "baseline_head_s": 2e-5,
        "baseline_base_s": 2.01e-5,
        "speedup_head": 1.8,
        "speedup_base": 2.0,
        "change": Interval(1.1, 1.09, 1.11),
        "baseline_change": Interval(1.0, 0.99, 1.01),
        "min_effect": 0.02,
        "detectable": 0.01,
        "rounds": 5,
        "ratios": (1.1, 1.09, 1.11),
        "confirmed": True,
        "newly": False,
        "why": "registers 32 -> 64",
    }
    return Finding(**(fields | changes))

"""Literal runs, summaries and findings for the tests of the report."""

from perftrack.judge.value import Finding, Interval, Summary
from perftrack.model import Case, Cause, Device, Method, Revision, Run, RunOptions, Status, Traffic, Verdict

CLASS = "NVIDIA-H200-141G"
ADD = "add_mul_relu[dtype=float32,n=67108864]"
SOFTMAX = "softmax[cols=4096,dtype=float16,rows=16384]"
NORM = "residual_layer_norm[cols=8192,dtype=float16,rows=16384]"


def revision(sha="7e3f9a1c0ffee000", subject="fuse bias into AdamW", *, dirty=False):
    return Revision(
        sha=sha.ljust(40, "0"),
        tree="t" * 40,
        dirty=dirty,
        parent=None,
        position=3,
        committed_us=1_790_000_000_000_000,
        subject=subject,
    )


def run(*, base=True, state="complete", **more):
    return Run(
        uid="0419" * 8,
        repo="perftrack",
        head=more.pop("head", revision()),
        base=revision("b81c0d4deadbeef0", "before") if base else None,
        base_note=more.pop("note", "merge-base with main, 3 commits back" if base else "a first commit has no parent"),
        options=RunOptions(methods={"cuda": Method()}),
        started_us=1,
        state=state,
        **more,
    )


def case(key, *variants, suite="elementwise", backend="cuda"):
    return Case(
        suite=suite,
        benchmark=key.partition("[")[0],
        key=key,
        backend=backend,
        params={},
        variants=variants or ("unfused", "steps", "fused"),
        traffic=Traffic(read_bytes=1, write_bytes=1),
        min_effect=0.02,
    )


def device(uuid="GPU-3fe1", device_class=CLASS, node="gpu-07", backend="cuda"):
    return Device(
        uuid=uuid, name=device_class, backend=backend, device_class=device_class, node=node, memory_bytes=141 * 10**9
    )


def summary(key, variant="fused", *, side="head", status=Status.OK, time_s=127.4e-6, suite="elementwise", **more):
    ok = status is Status.OK
    numbers = {
        "time_s": time_s,
        "baseline_s": 961.0e-6,
        "speedup": Interval(961.0e-6 / time_s, 7.4, 7.6),
        "vectorisation": Interval(3.75, 3.74, 3.76),
        "fusion_gain": Interval(2.01, 2.0, 2.02),
        "expected_gain": 2.0,
        "fusion_efficiency": 1.005,
        "bandwidth_bytes_per_s": 4.213e12,
        "utilization": 0.982,
        "rounds": 3,
    }
    if variant in ("unfused", "steps"):
        numbers |= {"speedup": None, "vectorisation": None, "fusion_gain": None}
    return Summary(
        suite=suite,
        case_key=key,
        device_class=more.pop("device_class", CLASS),
        device_uuid="GPU-3fe1",
        environment_digest="e",
        variant=variant,
        side=side,
        status=status,
        **({**numbers, **more} if ok else more),
    )


def summaries(*keys, **more):
    return [summary(key, variant, **more) for key in keys for variant in ("unfused", "steps", "fused")]


def finding(key, verdict=Verdict.SAME, *, ratio=1.0, spread=0.003, **more):
    timed = verdict in (Verdict.SLOWER, Verdict.FASTER, Verdict.SAME, Verdict.AMBIGUOUS)
    numbers = {
        "head_s": 41.2e-6 * ratio,
        "base_s": 41.2e-6,
        "baseline_head_s": 95.3e-6,
        "baseline_base_s": 95.2e-6,
        "speedup_head": 2.31 / ratio,
        "speedup_base": 2.31,
        "change": Interval(ratio, ratio * (1 - spread), ratio * (1 + spread)),
        "detectable": spread,
        "rounds": 3,
    }
    return Finding(
        suite=more.pop("suite", "elementwise"),
        case_key=key,
        device_class=more.pop("device_class", CLASS),
        variant=more.pop("variant", "fused"),
        verdict=verdict,
        **({**numbers, **more} if timed else more),
    )


def slower(key=ADD, ratio=1.192, **more):
    numbers = {"ratio": ratio, "cause": Cause.FUSED_SLOWER, "confirmed": True, "rounds": 5, **more}
    return finding(key, Verdict.SLOWER, **numbers)

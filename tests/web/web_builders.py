"""Stores with what the pages show: thirty commits on two device classes, one planted slowdown, whatever the names."""

from collections.abc import Sequence
from typing import NamedTuple

from perftrack.judge.life import CaseId, Kind
from perftrack.judge.sightings import Seen
from perftrack.judge.value import Finding, Interval, Summary
from perftrack.model import (
    Accuracy,
    Case,
    Cause,
    Device,
    Environment,
    JobResult,
    Measurement,
    Method,
    Revision,
    Run,
    RunOptions,
    Status,
    Traffic,
    Verdict,
)

START_US = 1_790_000_000_000_000
DAY_US = 86_400_000_000
DRIVER = Environment(entries={"driver": "580.65", "cuda": "13.0"})


class Names(NamedTuple):
    """Every text of a store that comes from elsewhere."""

    suites: Sequence[str] = ("elementwise", "normalization")
    cases: Sequence[str] = ("add_mul_relu[dtype=float32,n=67108864]", "softmax[cols=4096,dtype=float16,rows=16384]")
    classes: Sequence[str] = ("NVIDIA-H200-141G", "NVIDIA-L4-24G")
    variant: str = "fused"
    repo: str = "kernels"
    subject: str = "fuse bias into AdamW"
    node: str = "gpu-07"
    text: str = "registers 32 -> 64"


def hostile(name: str) -> Names:
    return Names(
        suites=(name,), cases=(name, f"{name}[n=1]"), classes=(name,), variant=name, repo=name, subject=name,
        node=name, text=name,
    )  # fmt: skip


def revision(number: int, subject: str) -> Revision:
    return Revision(
        sha=f"{number + 0xA0:07x}".ljust(40, "c"), tree="t" * 40, dirty=False, parent=None, position=number,
        committed_us=START_US + number * DAY_US, subject=f"{subject} {number}", branch="main",
    )  # fmt: skip


def fill(store, names=None, *, commits: int = 30, slow_from: int = 22, remembered: bool = True):
    """One run a commit, each against the one before. The first case of the first class is 12 % slower from one on.

    Uncommitted changes, for one, are red and begin no regression: then nothing is `remembered`.
    """
    for number in range(1, commits + 1):
        one_run(store, names or Names(), number, slow_from, remembered=remembered)


def run_uid(number: int) -> str:
    return f"{number:04x}" * 8


def one_run(store, names, number, slow_from, *, remembered=True):
    uid, started_us = run_uid(number), START_US + number * DAY_US
    store.begin_run(
        Run(
            uid=uid, repo=names.repo, head=revision(number, names.subject),
            base=revision(number - 1, names.subject) if number > 1 else None,
            base_note=names.text, options=RunOptions(methods={"cuda": Method()}), started_us=started_us,
            problems=(names.text,), expected_jobs=len(names.cases) * len(names.classes),
        )
    )  # fmt: skip
    summaries, findings, seen = [], [], []
    for class_number, device_class in enumerate(names.classes):
        card = Device(
            uuid=f"GPU-{class_number}-{device_class}"[:200], name=device_class, backend="cuda",
            device_class=device_class, node=names.node, memory_bytes=141 * 10**9, compute_capability="9.0",
            multiprocessors=132,
        )  # fmt: skip
        for case_number, key in enumerate(names.cases):
            suite = names.suites[case_number % len(names.suites)]
            planted = (case_number, class_number) == (0, 0)
            level = lambda at, planted=planted: 1.12 if planted and at >= slow_from else 1.0  # noqa: E731
            time_s = 100e-6 * (1 + case_number) * level(number) * (1 + 0.002 * ((number * 7) % 5 - 2))
            store.add_job(
                uid, case(suite, key, names), attempt(suite, key, device_class, card, names, started_us), card
            )
            summaries += both(suite, key, device_class, card, names, time_s)
            if number > 1:
                findings.append(finding(suite, key, device_class, names, time_s, level(number) / level(number - 1)))
            if planted and number == slow_from:
                said = CaseId(suite, key, names.variant)
                seen.append(
                    Seen(
                        case=said,
                        device_class=device_class,
                        kind=Kind.SLOWER,
                        gone=False,
                        level=1.12,
                        regression_id=None,
                    )
                )
    store.finish_run(uid, state="complete", finished_us=started_us + 60_000_000, summaries=summaries, findings=findings)
    store.remember(uid, seen if remembered else ())


def case(suite, key, names):
    return Case(
        suite=suite, benchmark="b", key=key, backend="cuda", params={"n": 1}, variants=("unfused", names.variant),
        traffic=Traffic(read_bytes=2, write_bytes=1), min_effect=0.02, doc=names.text,
    )  # fmt: skip


def attempt(suite, key, device_class, card, names, started_us):
    return JobResult(
        suite=suite, case_key=key, device_class=device_class, round=1, attempt=1, status=Status.OK,
        device_uuid=card.uuid, environment=DRIVER, wall_s=12.0, started_us=started_us,
        measurements=(Measurement(side="head", variant=names.variant, status=Status.OK),),
    )  # fmt: skip


def both(suite, key, device_class, card, names, time_s):
    whose = {"suite": suite, "case_key": key, "device_class": device_class, "device_uuid": card.uuid}
    whose |= {"environment_digest": DRIVER.digest, "side": "head", "status": Status.OK, "rounds": 3}
    unfused_s = 231e-6
    return [
        Summary(**whose, variant="unfused", time_s=unfused_s, baseline_s=unfused_s),
        Summary(
            **whose, variant=names.variant, time_s=time_s, baseline_s=unfused_s,
            speedup=Interval(unfused_s / time_s, 0.99 * unfused_s / time_s, 1.01 * unfused_s / time_s),
        ),
    ]  # fmt: skip


def finding(suite, key, device_class, names, time_s, ratio):
    slow = ratio > 1.02
    return Finding(
        suite=suite, case_key=key, device_class=device_class, variant=names.variant,
        verdict=Verdict.SLOWER if slow else Verdict.SAME, cause=Cause.FUSED_SLOWER if slow else Cause.NONE,
        message=names.text if slow else "", head_s=time_s, base_s=time_s / ratio,
        baseline_head_s=231e-6, baseline_base_s=231e-6, speedup_head=231e-6 / time_s,
        speedup_base=231e-6 / time_s * ratio, change=Interval(ratio, ratio * 0.995, ratio * 1.005),
        detectable=0.004, rounds=5 if slow else 3, confirmed=slow, why=names.text, accuracy=Accuracy.NONE,
    )  # fmt: skip

"""Reports and comparisons of what is stored."""

import pytest

from perftrack.judge.value import Finding, Interval, Summary
from perftrack.model import (
    Accuracy,
    Case,
    Device,
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
from perftrack.pipeline.reports import comparison_of, report_of
from perftrack.store import Store

CLASS = "NVIDIA-H200-141G"
CASE = Case(
    suite="elementwise", benchmark="add", key="add[n=1]", backend="cuda", params={"n": 1},
    variants=("unfused", "steps", "fused"), traffic=Traffic(read_bytes=2, write_bytes=1), min_effect=0.02,
)  # fmt: skip
SECOND = 1_000_000


def device(uuid):
    return Device(uuid=uuid, name="H200", backend="cuda", device_class=CLASS, node="n", memory_bytes=1)


def revision(number):
    return Revision(
        sha=f"{number:07x}".ljust(40, "a"), tree="t" * 40, dirty=False, parent=None, position=number,
        committed_us=number, subject="s",
    )  # fmt: skip


def attempt(number, uuid, wall_s, *, attempt=1, status=Status.OK):
    return JobResult(
        suite=CASE.suite, case_key=CASE.key, device_class=CLASS, round=number, attempt=attempt, status=status,
        device_uuid=uuid, measurements=(Measurement(side="head", variant="fused", status=Status.OK),), wall_s=wall_s,
    )  # fmt: skip


def summary(side, variant, **more):
    return Summary(
        suite=CASE.suite, case_key=CASE.key, device_class=CLASS, device_uuid="GPU-a", environment_digest="",
        variant=variant, side=side, status=Status.OK, time_s=1e-5, **more,
    )  # fmt: skip


FINDING = Finding(
    suite=CASE.suite, case_key=CASE.key, device_class=CLASS, variant="fused", verdict=Verdict.SAME,
    error_head=4e-7, error_base=1e-7, accuracy=Accuracy.LESS,
)  # fmt: skip


@pytest.fixture
def store(tmp_path):
    with Store.open(str(tmp_path / "perf.db")) as opened:
        yield opened


def stored(store, *, seconds=100, findings=(FINDING,)):
    """A run on two cards that took `seconds`; None: it still goes on."""
    run = Run(
        uid="7" * 32, repo="r", head=revision(7), base=revision(6), base_note="", started_us=5 * SECOND,
        options=RunOptions(methods={"cuda": Method()}),
    )  # fmt: skip
    store.begin_run(run)
    for result in (
        attempt(1, "GPU-a", 30.0),
        attempt(2, "GPU-b", 15.0, status=Status.UNSTABLE),
        attempt(2, "GPU-b", 25.0, attempt=2),
        attempt(3, "", 99.0, status=Status.INFRA),
    ):
        store.add_job(run.uid, CASE, result, device(result.device_uuid or "GPU-a"))
    if seconds is not None:
        gain, speedup = Interval(1.5, 1.4, 1.6), Interval(1.25, 1.2, 1.3)
        summaries = [
            summary("head", "unfused", error_l2=9e-8),
            summary("head", "steps", speedup=speedup),
            summary("head", "fused", fusion_gain=gain, error_l2=4e-7),
            summary("base", "fused", error_l2=1e-7),
        ]
        end = (5 + seconds) * SECOND
        store.finish_run(run.uid, state="complete", finished_us=end, summaries=summaries, findings=findings)
    return run.uid


def test_each_card_has_its_attempts_and_its_share_of_the_runs_wall_time(store):
    report = report_of(store, stored(store))
    uses = [(one.uuid, one.jobs, one.busy_s, one.busy_share) for one in report.devices[0].use]
    assert uses == [("GPU-a", 1, 30.0, pytest.approx(0.3)), ("GPU-b", 2, 40.0, pytest.approx(0.4))]


def test_while_a_run_goes_on_no_share_is_known(store):
    report = report_of(store, stored(store, seconds=None))
    assert [(one.jobs, one.busy_share) for one in report.devices[0].use] == [(1, None), (2, None)]


def test_a_stored_loss_of_accuracy_is_reported_with_both_factors_of_the_speedup(store):
    report = report_of(store, stored(store))
    (row,) = report.accuracy
    assert (row.accuracy, row.error_base, row.error_head, row.baseline_error_head) == (
        "less-accurate",
        1e-7,
        4e-7,
        9e-8,
    )
    assert (report.rows[0].vectorisation, report.rows[0].fusion_gain) == (1.25, 1.5)


def test_two_stored_revisions_are_compared_by_error_too(store, tmp_path):
    stored(store)
    rows = {row.variant: row for row in comparison_of(store, "0000006", "0000007", device="", start=tmp_path).rows}
    fused = rows["fused"]
    assert (fused.left_error, fused.right_error, fused.verdict, fused.accuracy) == (1e-7, 4e-7, "same", Accuracy.LESS)

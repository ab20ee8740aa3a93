"""What the cross-check makes of readings, and its preparation on the CPU: the parts that need no GPU."""

import csv
from importlib import import_module

import cross_check
import msgspec
import pytest
from cross_check import OURS, Reading

from perftrack.measure.cpu import CpuEngine
from perftrack.measure.methods import quick_method

READINGS = [
    Reading("copy", OURS, 100e-6),
    Reading("copy", "event loop", 104e-6),
    Reading("copy", "torch.profiler (CUPTI)", 99e-6),
    Reading("copy", "NVBench (cuda.bench)", note="not run: No module named 'cuda'"),
    Reading("small", OURS, 2.5e-6),
    Reading("small", "event loop", 7.5e-6),
]


def test_the_table_shows_times_and_distances_from_ours():
    assert cross_check.table(READINGS).splitlines() == [
        "copy",
        "  perftrack                   100.00 µs",
        "  event loop                  104.00 µs    +4.00 %",
        "  torch.profiler (CUPTI)       99.00 µs    -1.00 %",
        "  NVBench (cuda.bench)    not run: No module named 'cuda'",
        "small",
        "  perftrack                     2.50 µs",
        "  event loop                    7.50 µs  +200.00 %",
    ]


def test_the_file_has_the_same(tmp_path):
    cross_check.write_csv(READINGS, tmp_path / "cross.csv")
    with (tmp_path / "cross.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[1].values()) == ["copy", "event loop", "104.000", "4.000", ""]
    assert (rows[0]["percent_of_ours"], rows[3]["us"], rows[3]["note"]) == (
        "",
        "",
        "not run: No module named 'cuda'",
    )
    assert len(rows) == len(READINGS)


def test_long_kernels_are_held_against_cupti_and_else_against_the_events():
    assert cross_check.disagreements(READINGS, ["copy"]) == []
    without = [one for one in READINGS if "CUPTI" not in one.timer]
    assert cross_check.disagreements(without, ["copy"]) == ["copy: 100.00 µs, event loop says 104.00 µs"]
    assert cross_check.disagreements(READINGS, ["gemm"]) == ["gemm: there is nothing to compare"]
    truth = "torch.profiler (CUPTI)"
    within, beyond = Reading("copy", truth, 100e-6 / 1.029), Reading("copy", truth, 100e-6 / 1.031)
    assert cross_check.disagreements([READINGS[0], within], ["copy"]) == []
    assert len(cross_check.disagreements([READINGS[0], beyond], ["copy"])) == 1


def test_kernels_are_shared_out_among_calls_by_their_order():
    records = [(10, 12), (0, 1), (1.5, 3), (12.5, 14)]
    assert cross_check.spans(records, 2) == [3, 4]
    assert cross_check.spans(records, 4) == [1, 1.5, 2, 1.5]
    for calls in (3, 8):
        with pytest.raises(ValueError, match=f"4 kernels were recorded for {calls} calls"):
            cross_check.spans(records, calls)


def test_only_device_work_is_read_from_a_trace():
    events = [
        {"ph": "X", "cat": "kernel", "ts": 5.25, "dur": 2.5, "name": "k"},
        {"ph": "X", "cat": "cuda_runtime", "ts": 1, "dur": 1, "name": "cudaLaunchKernel"},
        {"ph": "X", "cat": "gpu_memset", "ts": 9, "dur": 1},
        {"ph": "M", "name": "process_name"},
    ]
    records = cross_check.trace_records({"traceEvents": events})
    assert records == [(0, 2.5), (3.75, 4.75)]
    assert cross_check.trace_records({"traceEvents": []}) == []


def test_nvbench_s_median_goes_before_its_mean():
    def summary(name, value):
        return {"tag": f"nv/cold/time/gpu/{name}", "data": [{"name": "value", "type": "float64", "value": value}]}

    document = {
        "benchmarks": [
            {"name": "anchor_0", "states": [{"summaries": [summary("mean", "2e-6"), summary("median", "1e-6")]}]},
            {"name": "anchor_1", "states": [{"summaries": [summary("mean", "3e-6")]}]},
            {"name": "anchor_2", "states": [{"summaries": None, "is_skipped": True}]},
        ]
    }
    assert cross_check.nvbench_seconds(document) == {"anchor_0": 1e-6, "anchor_1": 3e-6}


@pytest.fixture(scope="module")
def anchor():
    method = msgspec.structs.replace(
        quick_method("cpu"), blocks=2, timed_s=0.01, warmup_s=0.0, max_warmup_s=0.01, sets=2
    )
    engine = CpuEngine()
    engine.rotation_bytes = 1
    return cross_check.prepare(engine, "softmax", "softmax[cols=2048,dtype=float32,rows=256]", "unfused", method)


def test_an_anchor_is_verified_and_timed_by_the_harness_itself(anchor):
    assert (anchor.name, len(anchor.launches)) == ("softmax unfused", 2)
    turns = []
    for index, made in enumerate(anchor.work.alive()[0].launches):
        anchor.work.alive()[0].launches[index] = lambda index=index, made=made: (turns.append(index), made())
    turn = anchor.turn()
    for _ in range(3):
        turn()
    assert turns == [0, 1, 0]
    assert 1e-5 < cross_check.ours(anchor) < 10
    with pytest.raises(ValueError, match="no case nosuch on cpu"):
        cross_check.prepare(anchor.work.engine, "softmax", "nosuch", "fused", anchor.method)


def test_absent_and_broken_timers_are_said_and_the_rest_goes_on(anchor):
    def absent(_):
        import_module("nosuch_timer")

    def broken(_):
        raise RuntimeError("lost")

    timers = {OURS: lambda _: 1e-6, "absent": absent, "broken": broken, "other": lambda _: 2e-6}
    assert [(one.timer, one.seconds, one.note) for one in cross_check.read_all([anchor], timers)] == [
        (OURS, 1e-6, ""),
        ("absent", None, "not run: No module named 'nosuch_timer'"),
        ("broken", None, "failed: RuntimeError: lost"),
        ("other", 2e-6, ""),
    ]
    together = cross_check.read_together([anchor], "all", lambda _: {})
    assert [(one.anchor, one.note) for one in together] == [("softmax unfused", "no time given")]
    (missing,) = cross_check.read_together([anchor], "all", lambda _: import_module("nosuch_timer"))
    assert missing.note.startswith("not run")


def test_the_anchors_are_declared():
    import test_cross_check

    for suite, key, variant, _ in test_cross_check.ANCHORS:
        declared = cross_check.collect_suite(import_module(f"suites.{suite}"), suite)
        (case,) = [case for made in declared for case in made.cases(suite, "cuda") if case.key == key]
        assert variant in case.variants

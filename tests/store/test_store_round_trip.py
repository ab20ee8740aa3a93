"""What goes in comes out, equal, and floats bit for bit."""

import itertools
import math
import struct
from typing import Any

import msgspec
import pytest
import store_builders as build
from hypothesis import given, settings
from hypothesis import strategies as st

from perftrack.judge.value import Finding, Summary
from perftrack.model import Case, Device, JobResult, Measurement, Resources, Run, RunOptions, Status
from perftrack.store import Store, pack, rows

NUMBERS = itertools.count(1000)
"""Of runs: the examples of a property share a database."""

finite = st.floats(allow_nan=False, allow_infinity=False)
seconds = st.floats(min_value=0, max_value=1e299)
text = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)
counts = st.integers(0, 2**31 - 1)

resources = st.builds(
    Resources,
    registers=st.none() | counts,
    occupancy=st.none() | st.floats(0, 1),
    launches=st.none() | counts,
    code_digest=st.none() | text,
)


@st.composite
def measurements(draw: st.DrawFn) -> tuple[Measurement, ...]:
    names = draw(st.lists(st.tuples(st.sampled_from(["head", "base"]), text), max_size=4, unique=True))
    return tuple(
        Measurement(
            side=side,
            variant=variant,
            status=draw(st.sampled_from(Status)),
            message=draw(text),
            samples_s=tuple(draw(st.lists(finite, max_size=20))),
            blocks=tuple(draw(st.lists(st.integers(0, 10**6), max_size=20))),
            calls_per_sample=draw(counts),
            error_l2=draw(st.none() | seconds),
            host_s=draw(st.none() | seconds),
            resources=draw(resources),
        )
        for side, variant in names
    )


job_results = st.builds(
    build.job,
    status=st.sampled_from([Status.OK, Status.FAILED, Status.UNSTABLE]),
    message=text,
    seed=st.integers(0, 2**63 - 1),
    measurements=measurements(),
    canary_s=st.lists(finite, max_size=10).map(tuple),
    clock_mhz=st.lists(finite, max_size=10).map(tuple),
    bad_blocks=st.lists(counts, max_size=5).map(tuple),
    throttle_reasons=st.lists(text, max_size=3).map(tuple),
    source_digest=st.dictionaries(st.sampled_from(["head", "base"]), text),
    timed_s=seconds,
    wall_s=seconds,
    ceiling_bytes_per_s=st.none() | st.floats(min_value=5e-324, max_value=1e299),
)


@settings(max_examples=40, deadline=None)
@given(result=job_results)
def test_a_job_comes_back_whole(shared_store: Store, result: JobResult) -> None:
    run = build.run(next(NUMBERS))
    shared_store.begin_run(run)
    assert shared_store.add_job(run.uid, build.case(), result, build.device())
    (back,) = shared_store.jobs(run.uid)
    assert back == result
    for one, other in zip(back.measurements, result.measurements, strict=True):
        # equality would take -0.0 for 0.0
        assert struct.pack(f"{len(one.samples_s)}d", *one.samples_s) == struct.pack(
            f"{len(other.samples_s)}d", *other.samples_s
        )


def test_a_time_keeps_every_bit(store: Store) -> None:
    for value in (5e-324, 2.2250738585072014e-308, 0.1 + 0.2, 1e-5 * (1 + 2**-52), 9.9e299):
        run = build.run(next(NUMBERS))
        store.begin_run(run)
        store.add_job(run.uid, build.case(), build.job(timed_s=value), build.device())
        summaries = [build.summary(time_s=value)]
        store.finish_run(run.uid, state="complete", finished_us=1, summaries=summaries, findings=[])
        assert store.jobs(run.uid)[0].timed_s.hex() == value.hex()
        (summary,) = store.load_run(run.uid).summaries
        assert (summary.time_s or 0.0).hex() == value.hex()


def test_a_whole_run_comes_back(store: Store) -> None:
    run = build.run()
    assert store.begin_run(run)
    cases = [build.case(), build.case("mul[n=1]"), build.case("sub[n=2]")]
    for case in cases:
        store.add_job(run.uid, case, build.job(case_key=case.key), build.device())
    summaries = [
        build.summary("head", "fused"),
        build.summary("base", "fused"),
        build.summary("head", "unfused", speedup=None, fusion_gain=None, expected_gain=None, fusion_efficiency=None),
        build.failed_summary("head", "steps"),
        build.summary(case_key="mul[n=1]"),
    ]
    findings = [
        build.finding(),
        build.finding("steps", change=None, baseline_change=None, ratios=(), head_s=None),
        build.finding(case_key="mul[n=1]", newly=True, confirmed=False),
        # never measured, so that no job speaks of it
        build.finding(case_key="gone[n=9]", suite="old", verdict="removed", cause=""),
    ]
    findings = [msgspec.convert(msgspec.to_builtins(one), Finding) for one in findings]
    store.finish_run(
        run.uid, state="complete", finished_us=99, summaries=summaries, findings=findings, problems=("a", "b")
    )
    stored = store.load_run(run.uid)
    assert stored.run == msgspec.structs.replace(run, state="complete", finished_us=99, problems=("a", "b"))
    assert stored.cases == cases
    assert stored.devices == [build.device()]
    assert stored.findings == sorted(findings, key=lambda one: (one.suite, one.case_key, one.variant))
    assert stored.summaries == sorted(summaries, key=lambda one: (one.case_key, one.variant, one.side != "head"))


def test_a_run_without_base_and_options_comes_back(store: Store) -> None:
    run = build.run(base=None, options=RunOptions(), problems=())
    store.begin_run(run)
    assert store.load_run(run.uid).run == run


def test_a_commit_compared_with_itself_keeps_both_sides(store: Store) -> None:
    run = build.run(head=build.revision(5), base=build.revision(5))
    store.begin_run(run)
    store.add_job(run.uid, build.case(), build.job(), build.device())
    both = [build.summary("head", time_s=1e-5), build.summary("base", time_s=2e-5)]
    store.finish_run(run.uid, state="complete", finished_us=1, summaries=both, findings=[])
    assert store.load_run(run.uid).summaries == both


def test_a_gpu_with_everything_known_comes_back(store: Store) -> None:
    card = Device(
        uuid="GPU-1", name="NVIDIA H200", backend="cuda", device_class="NVIDIA-H200-141G", node="n",
        memory_bytes=150_754_820_096, compute_capability="9.0", multiprocessors=132, l2_bytes=62914560,
        peak_bytes_per_s=4.8e12,
    )  # fmt: skip
    run = build.run()
    store.begin_run(run)
    result = build.job(device_class=card.device_class, device_uuid=card.uuid)
    store.add_job(run.uid, build.case(backend="cuda"), result, card)
    assert store.load_run(run.uid).devices == [card]


def test_a_message_with_a_nul_character_is_storable(store: Store) -> None:
    run = build.run()
    store.begin_run(run)
    store.add_job(run.uid, build.case(), build.job(message="a\0b"), build.device())
    assert store.jobs(run.uid)[0].message == "a\N{REPLACEMENT CHARACTER}b"


@given(values=st.lists(finite))
def test_packing_floats_keeps_every_bit(values: list[float]) -> None:
    back = pack.unpack_floats(pack.pack_floats(values))
    assert [value.hex() for value in back] == [value.hex() for value in values]


def test_packed_samples_are_little_endian_doubles_in_zlib() -> None:
    import zlib

    assert zlib.decompress(pack.pack_floats([1.5, -2.0])) == struct.pack("<2d", 1.5, -2.0)
    assert zlib.decompress(pack.pack_ints([3, 4])) == struct.pack("<2i", 3, 4)


def test_timer_ticks_pack_well() -> None:
    ticks = [round(1e-5 + 5e-7 * math.sin(index), 8) for index in range(500)]
    assert len(pack.pack_floats(ticks)) < 8 * len(ticks) / 2


@pytest.mark.parametrize("count", [50, 1024, 1025, 5000])
@pytest.mark.parametrize("repeats", [1, 4])
def test_few_and_many_samples_come_back_whether_they_repeat_or_not(count: int, repeats: int) -> None:
    values = tuple(1e-5 + 1e-9 * (index // repeats) for index in range(count))
    data = pack.pack_floats(values)
    assert pack.unpack_floats(data) == values
    assert len(data) < 8 * count / min(repeats, 2) + 20
    blocks = tuple(range(count))
    assert pack.unpack_ints(pack.pack_ints(blocks)) == blocks
    assert len(pack.pack_ints(blocks)) < 4 * count * 0.6


@pytest.mark.parametrize(
    ("row", "value", "elsewhere"),
    [
        (lambda one: rows.summary_columns([one]), build.summary(), rows.SUMMARY_REFERENCES),
        (rows.finding_row, build.finding(), rows.FINDING_REFERENCES),
        (lambda one: rows.case_columns([one]), build.case(), {"suite", "key", "issue"}),
        (rows.device_row, build.device(), {"device_class"}),
        (rows.run_row, build.run(), {"repo", "head", "base"}),
        (lambda one: rows.columns([one], frozenset()), build.RESOURCES, set()),
        (rows.job_row, build.job(), {"suite", "case_key", "device_class", "environment", "measurements"}),
    ],
)
def test_every_field_of_a_struct_has_a_column(row: Any, value: msgspec.Struct, elsewhere: set[str]) -> None:
    kinds = {Summary, Finding, Case, Device, Run, Resources, JobResult}
    assert type(value) in kinds
    assert set(value.__struct_fields__) - elsewhere <= set(row(value))

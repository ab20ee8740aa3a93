"""What a result's row leaves out is worked out on reading: bit for bit, on both engines, in SQL and in frames."""

import math
import random
import struct
from contextlib import closing
from typing import Any

import msgspec
import numpy as np
import pytest
import sqlalchemy as sa
import store_builders as build
from hypothesis import given, settings
from hypothesis import strategies as st

from perftrack.judge.summary import summarize
from perftrack.judge.value import Interval, Summary
from perftrack.model import Device, JobResult, Status
from perftrack.store import Store, migrate, narrow, schema
from perftrack.store.door import Door
from perftrack.store.frames import Database

GPU = Device(
    uuid="GPU-1", name="NVIDIA H200", backend="cuda", device_class="NVIDIA-H200-141G", node="n",
    memory_bytes=150_754_820_096, peak_bytes_per_s=4.8e12,
)  # fmt: skip
CASE = build.case(backend="cuda")
RUN = build.run()


def _jobs() -> list[JobResult]:
    """Three rounds of all variants on both sides, as unround as measured ones; the second has no baseline."""
    chance = random.Random(7)  # noqa: S311 (not a secret)

    def one(side: str, variant: str, number: int) -> Any:
        level = {"unfused": 3e-5, "steps": 2e-5, "fused": 1e-5}[variant] * chance.uniform(0.9, 1.1)
        broken = (variant, number) == ("unfused", 2)
        return build.measurement(
            side,
            variant,
            status=Status.UNSTABLE if broken else Status.OK,
            samples_s=tuple(level * chance.gauss(1, 0.01) for _ in range(50)),
            error_l2=1e-7 * chance.random(),
            error_max=chance.random(),
            host_s=chance.random() * 1e-5,
            clock_mhz=chance.uniform(1700, 1980),
            build_s=chance.random(),
            mode="graph",
        )

    return [
        build.job(
            round=number,
            device_class=GPU.device_class,
            device_uuid=GPU.uuid,
            ceiling_bytes_per_s=3.9e12 * chance.random(),
            measurements=tuple(one(side, variant, number) for side in ("head", "base") for variant in CASE.variants),
        )
        for number in (1, 2, 3)
    ]


def _fill(store: Store, judged: list[Summary] | None = None) -> list[Summary]:
    """A run as judging leaves it; its summaries, head and base."""
    jobs = _jobs()
    store.begin_run(RUN)
    for job in jobs:
        store.add_job(RUN.uid, CASE, job, GPU)
    made = judged or [one for side in ("head", "base") for one in summarize(CASE, side, jobs, GPU)]
    store.finish_run(RUN.uid, state="complete", finished_us=1, summaries=made, findings=[])
    return sorted(made, key=lambda one: (one.variant, one.side != "head"))


def _extras(store: Store) -> int:
    question = sa.select(sa.func.count()).select_from(schema.result_extra)
    return store.read(lambda connection: connection.execute(question).scalar_one())


def _bits(value: Any) -> Any:
    return struct.pack("d", value) if isinstance(value, float) else value


def _same(one: Summary, other: Summary) -> bool:
    return all(_bits(getattr(one, name)) == _bits(getattr(other, name)) for name in Summary.__struct_fields__)


def test_what_is_judged_follows_but_for_a_baseline_of_other_rounds(store: Store) -> None:
    made = _fill(store)
    stored = store.load_run(RUN.uid).summaries
    assert all(map(_same, stored, made))
    assert {one.fusion_efficiency is None for one in made} == {True, False}
    # candidates have three rounds and the baseline two, of which theirs is the time: so it follows all the same
    assert _extras(store) == 0


def test_a_baseline_time_that_is_not_that_of_the_baseline_is_kept(store: Store) -> None:
    made = [
        msgspec.structs.replace(one, baseline_s=4e-5) if (one.variant, one.side) == ("fused", "head") else one
        for one in _fill(store)
    ]
    _fill(store, made)
    assert all(map(_same, store.load_run(RUN.uid).summaries, made))
    assert _extras(store) == 1
    frame = Database(store).results(columns=["variant", "side", "baseline_us"])
    fused = frame[frame["variant"] == "fused"].set_index("side")["baseline_us"]
    assert (fused["head"], fused["base"] < 4e-5 * 1e6) == (4e-5 * 1e6, True)


def test_frames_views_and_streams_say_what_was_judged(store: Store) -> None:
    made = {(one.side, one.variant): one for one in _fill(store)}
    opened = Database(store)
    view = opened.sql("SELECT * FROM results").set_index(["side", "variant"])
    whole = opened.results().set_index(["side", "variant"])
    alone = opened.results(variant="fused").set_index(["side", "variant"])
    names = ("time_s", "baseline_s", "fusion_efficiency", "bandwidth_bytes_per_s", "flops_per_s")
    for key, one in made.items():
        row = view.loc[key]
        for name in (*names, "host_s", "error_l2", "clock_mhz", "build_s", "utilization", "samples", "rounds"):
            expected = getattr(one, name)
            assert (row[name] == expected) if expected is not None else row[name] is None or math.isnan(row[name]), name
        for frame in (whole, alone):
            if key in frame.index:
                line = frame.loc[key]
                assert line["baseline_us"] == (one.baseline_s or 0.0) * 1e6
                assert (line["gbps"], line["tflops"]) == (
                    (one.bandwidth_bytes_per_s or 0.0) * 1e-9,
                    (one.flops_per_s or 0.0) * 1e-12,
                )
                assert (line["peak_utilization"], line["error_max"]) == (one.peak_utilization, one.error_max)
                assert (line["host_us"], line["clock_mhz"]) == ((one.host_s or 0.0) * 1e6, one.clock_mhz)
                assert (line["build_first_s"], line["build_s"]) == (one.build_first_s, one.build_s)
                assert np.isnan(line["expected_gain"]) == (one.expected_gain is None)


def test_down_to_the_wide_table_and_up_again(own_url: str) -> None:
    with Store.open(own_url) as store:
        made = _fill(store)
        address = store._door.address
    with closing(Door(address)) as door:

        def rows(table: str) -> list[dict[str, Any]]:
            question = sa.text(f"SELECT * FROM {table} ORDER BY 1, 2")  # noqa: S608 (a name of the schema)
            return door.read(lambda connection: [dict(row) for row in connection.execute(question).mappings()])

        before = {row["digest"] for row in rows("setting")}
        door.write(lambda connection: migrate.migrate(connection, "0004"))
        wide = {(row["series_id"], row["side"]): row for row in rows("result")}
        series = {row["id"]: row["variant"] for row in rows("series")}
        of = {(series[number], side): row for (number, side), row in wide.items()}
        for one in made:
            row = of[one.variant, one.side]
            for name in (*narrow.EXTRA, "time_s", "expected_gain", "utilization", "samples", "mode"):
                assert _bits(row[name]) == _bits(getattr(one, name)), name
            assert (row["speedup_low"] is None) == (one.speedup is None)
        door.write(lambda connection: migrate.migrate(connection, migrate.HEAD))
        assert {row["digest"] for row in rows("setting")} == before
        assert rows("result_extra") == []
    with Store.open(own_url) as store:
        assert all(map(_same, store.load_run(RUN.uid).summaries, made))
        assert len(store.load_run(RUN.uid).summaries) == len(made)


anything = st.none() | st.floats(min_value=5e-324, max_value=1e299)
whole = st.integers(1, 10**7).map(lambda number: number / 1e9)
three_digits = st.tuples(st.integers(100, 999), st.integers(0, 25)).map(lambda pair: float(f"{pair[0]}e-{pair[1]}"))
intervals = st.none() | st.builds(Interval, *[st.floats(min_value=5e-324, max_value=1e299)] * 3)
summaries = st.builds(
    build.summary,
    variant=st.sampled_from(["fused", "steps", "unfused"]),
    message=st.sampled_from(["", "odd"]),
    time_s=st.floats(min_value=5e-324, max_value=1e299),
    baseline_s=anything,
    speedup=intervals,
    fusion_gain=intervals,
    expected_gain=anything,
    fusion_efficiency=anything,
    bandwidth_bytes_per_s=anything,
    utilization=anything,
    peak_utilization=anything,
    flops_per_s=anything,
    error_l2=anything | three_digits,
    error_max=st.just(0.0) | three_digits,
    host_s=anything | whole,
    clock_mhz=anything | st.integers(1, 40_000).map(float),
    build_first_s=anything | whole,
    build_s=anything,
    samples=st.integers(0, 2**40),
    rounds=st.integers(0, 9),
    mode=st.sampled_from(["loop", "graph", "another"]),
)


@settings(max_examples=40, deadline=None)
@given(made=st.lists(summaries, max_size=3, unique_by=lambda one: one.variant), number=st.integers(0, 2**60))
def test_any_summary_comes_back_whole(shared_store: Store, made: list[Summary], number: int) -> None:
    run = build.run(uid=f"{number:032x}")
    shared_store.begin_run(run)
    shared_store.add_job(run.uid, build.case(), build.job(), build.device())
    shared_store.finish_run(run.uid, state="complete", finished_us=1, summaries=made, findings=[])
    stored = shared_store.load_run(run.uid).summaries
    steps = next((one.speedup for one in made if one.variant == "steps"), None)
    for one in made:
        back = next(other for other in stored if other.variant == one.variant)
        expected = steps if one.variant == "fused" else None
        assert _same(back, msgspec.structs.replace(one, vectorisation=expected))


@pytest.mark.parametrize(
    ("value", "digits"),
    [(None, None), (0.0, 0), (4.37e-7, 9437), (1.0, 2100), (999.0, 999), (1e-20, 22100)],
)
def test_three_digits_and_a_power_of_ten(value: float | None, digits: int | None) -> None:
    assert narrow.digits(value) == digits


def test_the_words_of_a_fault_are_those_of_the_status(store: Store) -> None:
    made = [build.failed_summary("head", "fused", status=status) for status in Status if status is not Status.OK]
    store.begin_run(RUN)
    store.add_job(RUN.uid, build.case(), build.job(), build.device())
    for one in made:
        store.finish_run(RUN.uid, state="complete", finished_us=1, summaries=[one], findings=[])
        assert store.load_run(RUN.uid).summaries == [one]
        assert Database(store).results()["message"].tolist() == ["exit code -11"]

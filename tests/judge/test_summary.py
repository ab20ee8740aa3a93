import msgspec
import pytest
from judge_builders import case, device, measured, result

from perftrack.judge.summary import summarize
from perftrack.model import Resources, Status


def summaries(results, of=None, side="head", on=None):
    return {one.variant: one for one in summarize(of or case(), side, results, on or device())}


def one_round(number, unfused, steps, fused, **more):
    return result(
        number,
        measured("head", "unfused", *unfused),
        measured("head", "steps", *steps),
        measured("head", "fused", *fused, **more),
        ceiling_bytes_per_s=1e9,
    )


def test_times_are_medians_over_rounds_of_medians_over_blocks():
    results = [
        one_round(1, (8e-6, 9e-6, 30e-6), (4e-6,) * 3, (2e-6, 3e-6, 10e-6)),
        one_round(2, (8e-6,) * 3, (4e-6,) * 3, (5e-6,) * 3),
        one_round(3, (8e-6,) * 3, (4e-6,) * 3, (4e-6,) * 3),
    ]
    fused = summaries(results)["fused"]
    assert fused.time_s == pytest.approx(4e-6)
    assert fused.baseline_s == pytest.approx(8e-6)
    assert (fused.rounds, fused.samples, fused.status) == (3, 18, Status.OK)


def test_a_ratio_is_taken_inside_blocks_not_between_stored_times():
    # both slow down threefold inside the round: the ratio of neighbours stays exactly 2
    results = [one_round(n, (2e-6, 4e-6, 6e-6), (1e-6, 2e-6, 3e-6), (1e-6, 2e-6, 3e-6)) for n in (1, 2, 3)]
    fused = summaries(results)["fused"]
    assert fused.speedup.point == pytest.approx(2.0)
    assert fused.speedup.low == pytest.approx(2.0)
    assert fused.fusion_gain.point == pytest.approx(1.0)


def test_gains_bandwidth_and_utilization():
    results = [one_round(n, (16e-6,) * 3, (8e-6,) * 3, (4e-6,) * 3) for n in (1, 2)]
    fused = summaries(results, case(flops=40), on=device(peak=4e9))["fused"]
    assert fused.fusion_gain.point == pytest.approx(2.0)
    assert fused.expected_gain == pytest.approx(2.0)
    assert fused.fusion_efficiency == pytest.approx(1.0)
    assert fused.bandwidth_bytes_per_s == pytest.approx(1e9)
    assert fused.utilization == pytest.approx(1.0)
    assert fused.peak_utilization == pytest.approx(0.25)
    assert fused.flops_per_s == pytest.approx(1e7)


def test_the_baseline_has_no_speedup_and_the_steps_no_fusion_gain():
    every = summaries([one_round(n, (16e-6,) * 3, (8e-6,) * 3, (4e-6,) * 3) for n in (1, 2)])
    assert every["unfused"].speedup is None
    assert every["unfused"].fusion_gain is None
    assert every["steps"].speedup.point == pytest.approx(2.0)
    assert every["steps"].fusion_gain is None
    assert every["steps"].expected_gain is None


def test_a_speedup_is_vectorisation_times_fusion_gain():
    # both factors drift inside a round; neighbours are what is divided, not medians
    results = [
        one_round(n, (16e-6, 24e-6, 40e-6), (8e-6 * n, 12e-6 * n, 20e-6 * n), (4e-6, 6e-6, 10e-6))
        for n in (1, 1.1, 1.2)
    ]
    results = [msgspec.structs.replace(one, round=number) for number, one in enumerate(results, 1)]
    every = summaries(results)
    fused = every["fused"]
    assert fused.vectorisation.point == pytest.approx(2 / (1 * 1.1 * 1.2) ** (1 / 3))
    assert fused.vectorisation.low < fused.vectorisation.point < fused.vectorisation.high
    assert fused.vectorisation.point * fused.fusion_gain.point == pytest.approx(fused.speedup.point)
    assert fused.vectorisation == every["steps"].speedup
    assert (every["unfused"].vectorisation, every["steps"].vectorisation) == (None, None)


def test_without_steps_that_have_a_time_the_vectorisation_is_unknown():
    pairs = [result(n, measured("head", "unfused", 8e-6), measured("head", "fused", 4e-6)) for n in (1, 2)]
    assert summaries(pairs, case("unfused", "fused"))["fused"].vectorisation is None
    failed = [
        msgspec.structs.replace(
            one, measurements=(*one.measurements, measured("head", "steps", status=Status.FAILED, message="no"))
        )
        for one in pairs
    ]
    assert summaries(failed)["fused"].vectorisation is None


def test_without_steps_the_efficiency_is_that_of_the_speedup():
    results = [
        result(n, measured("head", "unfused", 8e-6, 8e-6), measured("head", "fused", 4e-6, 4e-6)) for n in (1, 2)
    ]
    fused = summaries(results, case("unfused", "fused"))["fused"]
    assert fused.fusion_gain is None
    assert fused.fusion_efficiency == pytest.approx(1.0)


def test_bad_blocks_do_not_count():
    results = [
        result(
            n,
            measured("head", "unfused", 8e-6, 8e-6, 800e-6),
            measured("head", "fused", 4e-6, 4e-6, 100e-6),
            bad_blocks=(2,),
        )
        for n in (1, 2)
    ]
    fused = summaries(results, case("unfused", "fused"))["fused"]
    assert fused.q90_s < 5e-6
    assert (fused.samples, fused.bad_blocks) == (8, 2)


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ((Status.OK, Status.WRONG, Status.FAILED), Status.WRONG),
        ((Status.OK, Status.FAILED, Status.INVALID), Status.FAILED),
        ((Status.OK, Status.INVALID, Status.UNSTABLE), Status.INVALID),
        ((Status.SKIPPED, Status.UNSTABLE, Status.INFRA), Status.UNSTABLE),
        ((Status.SKIPPED, Status.INFRA, Status.INFRA), Status.SKIPPED),
        ((Status.OK, Status.UNSTABLE, Status.INFRA), Status.OK),
    ],
)
def test_breakage_in_any_round_wins_and_a_lost_round_does_not(statuses, expected):
    results = [
        result(n, measured("head", "fused", 4e-6, 4e-6, status=status, message=f"m-{status}", error_l2=0.1 * n))
        for n, status in enumerate(statuses, 1)
    ]
    fused = summaries(results)["fused"]
    assert fused.status is expected
    if expected is not Status.OK:
        assert fused.message == f"m-{expected}"
        assert fused.time_s is None
        assert fused.speedup is None
        assert fused.error_l2 == pytest.approx(0.3)


def test_a_job_that_died_fails_its_variants():
    fused = summaries([result(1, status=Status.FAILED, attempt=2)])["fused"]
    assert (fused.status, fused.time_s) == (Status.FAILED, None)


def test_the_last_attempt_of_a_round_counts():
    results = [
        result(1, measured("head", "fused", 4e-6, 4e-6), attempt=2),
        result(1, status=Status.INFRA, attempt=1),
    ]
    assert summaries(results)["fused"].time_s == pytest.approx(4e-6)


def test_an_unstable_job_is_not_a_number():
    results = [result(1, measured("head", "fused", 4e-6, 4e-6), status=Status.UNSTABLE)]
    assert summaries(results)["fused"].status is Status.UNSTABLE
    results = [result(1, measured("head", "fused", 4e-6), bad_blocks=(0,))]
    assert summaries(results)["fused"].message == "no block was undisturbed"


def test_what_was_never_tried_has_no_summary():
    assert summaries([result(1, measured("head", "unfused", 4e-6))]).keys() == {"unfused"}
    assert summaries([]) == {}


def test_one_round_has_the_interval_of_its_blocks():
    results = [
        result(1, measured("head", "unfused", 8e-6, 8.1e-6, 7.9e-6), measured("head", "fused", 4e-6, 4e-6, 4e-6))
    ]
    speedup = summaries(results)["fused"].speedup
    assert speedup.low < 2 < speedup.high
    assert speedup.point == pytest.approx(2.0)


def test_identity_and_resources_come_from_the_first_round():
    results = [
        one_round(1, (8e-6,), (8e-6,), (4e-6,), resources=Resources(registers=32), host_s=2e-6, mode="graph"),
        one_round(2, (8e-6,), (8e-6,), (4e-6,), resources=Resources(registers=32), host_s=4e-6, mode="graph"),
    ]
    fused = summaries(results)["fused"]
    assert (fused.device_uuid, fused.resources.registers, fused.mode) == ("GPU-1", 32, "graph")
    assert fused.host_s == pytest.approx(3e-6)
    assert len(fused.environment_digest) == 64


def test_the_longest_build_is_the_first_and_the_others_tell_what_is_left_with_filled_caches():
    def one(number, build_s, clock_mhz):
        return result(number, measured("head", "unfused", 2e-6, build_s=build_s, clock_mhz=clock_mhz))

    whole = summarize(case(), "head", [one(1, 0.9, 1980), one(2, 0.2, 1920), one(3, 0.4, 1950)], device())[0]
    assert (whole.build_first_s, whole.build_s, whole.clock_mhz) == (0.9, pytest.approx(0.3), 1950)
    single = summarize(case(), "head", [one(1, 0.9, None)], device())[0]
    assert (single.build_first_s, single.build_s, single.clock_mhz) == (0.9, None, None)
    old = summarize(case(), "head", [one(1, None, None)], device())[0]
    assert (old.build_first_s, old.build_s) == (None, None)


def test_diagnostics_are_rounded_and_times_are_not():
    exact = {
        "host_s": 2.3456789e-6,
        "clock_mhz": 1949.7,
        "build_s": 0.12345678,
        "error_l2": 4.3712e-7,
        "error_max": 1.0,
    }
    time_s = 1e-5 * (1 + 2**-52)
    one = summarize(case(), "head", [result(1, measured("head", "unfused", time_s, **exact))], device())[0]
    assert (one.host_s, one.clock_mhz, one.build_first_s) == (2.346e-6, 1950.0, 0.123457)
    assert (one.error_l2, one.error_max, one.time_s) == (4.37e-7, 1.0, time_s)

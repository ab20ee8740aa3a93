"""The noise of A/A rounds: what is known about equal code from results alone."""

import math

import msgspec
import pytest
from judge_builders import CLASS, case, device, measured, result, rounds

from perftrack.judge.noise import devices_seen, families, unmeasured
from perftrack.model import Status

PAIR = case("unfused", "fused")


def only(results, cases=(PAIR,)):
    (family,) = families(cases, [device()], results)
    return family


def test_noise_is_the_deviation_from_a_ratio_of_one():
    family = only(rounds((10.1, 9.9, 10.0)))  # `unfused` is equal in every round
    assert (family.suite, family.device_class, family.comparisons, family.rounds) == ("elementwise", CLASS, 2, 3)
    squares = math.log(1.01) ** 2 + math.log(0.99) ** 2
    assert family.deviation == pytest.approx(math.sqrt(squares / 6), rel=1e-9)
    assert family.worst == pytest.approx(0.01)
    assert (family.fastest_s, family.slowest_s) == pytest.approx((10e-6 * 1.05, 20e-6 * 1.05))


def test_a_bias_that_every_round_shares_is_noise_too():
    family = only(rounds((10.1, 10.1, 10.1)), [case("fused")])
    assert family.deviation == pytest.approx(math.log(1.01))
    assert family.detectable == pytest.approx(0, abs=1e-12), "the interval is as narrow as the rounds agree"


def test_what_could_be_seen_is_the_judge_s_own_figure():
    family = only(rounds((10.1, 9.9, 10.0)))
    # Student's t of 2 degrees at 95 % is 4.3027; the deviation of the three logarithms is 0.0100
    assert family.detectable_worst == pytest.approx(math.expm1(4.3027 * 0.0100005 / math.sqrt(3)), rel=1e-3)
    assert family.detectable == pytest.approx(family.detectable_worst / 2, rel=1e-9), "median with an equal pair"


def test_processes_are_compared_on_one_device_only():
    one = rounds((10.0, 10.2))
    two = [
        msgspec.structs.replace(part, round=part.round + 2, device_uuid="GPU-2")
        for part in rounds((12.0, 12.24), (12.0, 12.0))
    ]
    apart = math.log(1.02) / math.sqrt(2)
    assert only(one, [case("fused")]).process_deviation == pytest.approx(apart)
    assert only(one + two, [case("fused")]).process_deviation == pytest.approx(apart), "the cards differ by 20 %"
    assert only(one[:1] + two[:1], [case("fused")]).process_deviation is None


def test_one_round_shows_noise_but_not_what_could_be_seen():
    family = only(rounds((10.1,)))
    assert family.worst == pytest.approx(0.01)
    assert (family.detectable, family.detectable_worst, family.process_deviation) == (None, None, None)


def test_suites_and_classes_are_families_of_their_own_and_empty_ones_are_left_out():
    other = msgspec.structs.replace(PAIR, suite="softmax")
    here = rounds((10.0, 10.0))
    there = [msgspec.structs.replace(part, device_class="cpu-2c") for part in here]
    cpu = msgspec.structs.replace(device(), device_class="cpu-2c", backend="cpu")
    of_both = [PAIR, msgspec.structs.replace(PAIR, backend="cpu"), other]
    found = families(of_both, [device(), cpu], here + there)
    assert [(one.suite, one.device_class) for one in found] == [("elementwise", CLASS), ("elementwise", "cpu-2c")]
    assert [one.comparisons for one in found] == [2, 2], "a case counts where its backend is"
    failed = [result(1, measured("head", "fused", 10e-6), status=Status.UNSTABLE, message="disturbed")]
    assert families([PAIR], [device()], failed) == []


def test_a_device_is_described_by_its_ceiling_canary_clock_and_blocks():
    made = [
        result(1, canary_s=(1e-4, 1.1e-4, 1e-4), ceiling_bytes_per_s=4.0e12, clock_mhz=(1900, 1980), bad_blocks=(1,)),
        result(1, canary_s=(1e-4, 1e-4), ceiling_bytes_per_s=4.1e12),
        result(2, canary_s=(1.02e-4, 1.02e-4), ceiling_bytes_per_s=4.305e12, clock_mhz=(1890, 1980)),
    ]
    (seen,) = devices_seen(made)
    assert (seen.uuid, seen.device_class, seen.processes) == ("GPU-1", CLASS, 2)
    assert (seen.blocks, seen.bad_blocks) == (7, 1)
    assert (seen.clock_low_mhz, seen.clock_high_mhz) == (1890, 1980)
    assert seen.ceiling_bytes_per_s == pytest.approx(4.2025e12), "the better one of the first process counts"
    assert seen.ceiling_spread == pytest.approx(0.05)
    assert seen.canary_spread == pytest.approx(0.02)


def test_what_gave_no_number_is_said_once():
    torch = "needs torch, which is not installed"
    made = [
        result(
            number,
            measured("head", "torch", status=Status.SKIPPED, message=torch),
            measured("base", "torch", status=Status.SKIPPED, message=torch),
            measured("head", "jit", status=Status.SKIPPED, message=torch),
            measured("head", "fused", status=Status.WRONG, message="output 0"),
            measured("base", "fused", status=Status.WRONG, message="output 0"),
        )
        for number in (1, 2)
    ]
    made.append(result(3, status=Status.UNSTABLE, message="9 of 25 blocks were disturbed"))
    assert unmeasured(made) == [
        f"2 variants skipped: {torch}",
        f"elementwise: {PAIR.key} fused: wrong: output 0",
        f"elementwise: {PAIR.key} on {CLASS}: unstable: 9 of 25 blocks were disturbed",
    ]

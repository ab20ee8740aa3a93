"""A change that one device shows and another does not is the device's, not the commit's."""

import msgspec
import pytest
from judge_builders import CLASS, case, rounds

from perftrack.judge.confirm import settle
from perftrack.judge.paired import compare, one_device_only
from perftrack.model import Cause, Status, Verdict


def on(devices, results):
    """The same results, each of the device that is named for it."""
    return [msgspec.structs.replace(result, device_uuid=uuid) for uuid, result in zip(devices, results, strict=True)]


def look(devices, head_fused):
    (fused,) = compare(case(), case(), on(devices, rounds(head_fused)), device_class=CLASS)
    return fused


def test_a_slowdown_on_one_device_only_is_the_devices():
    found = look(["GPU-2", "GPU-1", "GPU-2", "GPU-1", "GPU-2"], [10.0, 10.6, 10.01, 10.6, 9.99])
    assert (found.verdict, found.cause, found.red) == (Verdict.AMBIGUOUS, Cause.DEVICE, False)
    assert found.message == "on one device only: 6.0 % slower on GPU-1, 0.0 % on GPU-2"


def test_a_slowdown_on_both_devices_is_the_commits():
    found = look(["GPU-2", "GPU-1", "GPU-2", "GPU-1", "GPU-2"], [10.6, 10.61, 10.59, 10.6, 10.6])
    assert (found.verdict, found.cause) == (Verdict.SLOWER, Cause.FUSED_SLOWER)


def test_a_suspicion_that_fresh_rounds_find_on_one_device_only_keeps_that_cause():
    first = look(["GPU-1"] * 3, [10.6, 10.6, 10.6])
    assert first.verdict is Verdict.SLOWER
    second = look(["GPU-2", "GPU-1", "GPU-2", "GPU-1", "GPU-2"], [10.0, 10.6, 10.01, 10.6, 9.99])
    (settled,) = settle([first], [second])
    assert (settled.verdict, settled.cause, settled.red) == (Verdict.AMBIGUOUS, Cause.DEVICE, False)
    assert "on one device only" in settled.message


@pytest.mark.parametrize(
    ("ratios", "alone"),
    [
        ({"A": [1.05, 1.04], "B": [1.0, 1.001]}, True),
        ({"A": [0.95, 0.94], "B": [1.0, 1.001]}, True),
        ({"A": [1.05, 1.04]}, False),
        ({"A": [1.05], "B": [1.0, 1.0]}, False),
        ({"A": [1.05, 1.01], "B": [1.0, 1.0]}, False),
        ({"A": [1.05, 0.95], "B": [1.0, 1.0]}, False),
        ({"A": [1.05, 1.04], "B": [1.0, 1.03]}, False),
    ],
)
def test_two_rounds_of_each_device_are_needed_and_all_must_agree(ratios, alone):
    assert bool(one_device_only(ratios, 0.02)) is alone


def test_an_unstable_case_is_the_devices():
    results = [msgspec.structs.replace(one, status=Status.UNSTABLE, message="disturbed") for one in rounds([10.0] * 3)]
    (found,) = compare(case(), case(), results, device_class=CLASS)
    assert (found.verdict, found.cause) == (Verdict.UNSTABLE, Cause.DEVICE)


def test_a_canary_that_moves_is_the_devices():
    results = rounds([10.6, 10.6, 10.6])
    results[0] = msgspec.structs.replace(results[0], canary_s=(1.1e-4,) * 3)
    (found,) = compare(case(), case(), results, device_class=CLASS)
    assert (found.verdict, found.cause) == (Verdict.AMBIGUOUS, Cause.DEVICE)
    assert found.message == "the canary moved by 10 % between rounds"


@pytest.mark.parametrize(
    ("fused", "verdict"),
    [
        (20.0, Verdict.SLOWER),  # twice the time, where the canary moved by 10 %
        (5.0, Verdict.FASTER),
        (10.9, Verdict.AMBIGUOUS),
        (9.2, Verdict.AMBIGUOUS),
    ],
)
def test_a_canary_explains_no_change_that_is_larger_than_its_own(fused, verdict):
    results = rounds([fused, fused * 1.001, fused * 0.999])
    results[0] = msgspec.structs.replace(results[0], canary_s=(1.1e-4,) * 3)
    (found,) = compare(case(), case(), results, device_class=CLASS)
    assert found.verdict is verdict

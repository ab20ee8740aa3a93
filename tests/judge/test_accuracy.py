"""The error against float64 is judged beside the time: a kernel that lost accuracy within its tolerance is found."""

import ml_dtypes
import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge_builders import CLASS, case, measured, result

from perftrack.judge import accuracy
from perftrack.judge.confirm import settle, suspects
from perftrack.judge.paired import compare
from perftrack.measure.inputs import dtype_of
from perftrack.model import Accuracy, Status, Verdict

PAIR = case("unfused", "fused")
FLOOR = 2**-26
"""A quarter of float32's unit of round-off."""


def looked(*errors, head_us=10.0, status=Status.OK, first=1, of=PAIR, **more):
    """The finding on `fused` from one round for each (error at head, error at base)."""
    results = [
        result(
            first + number,
            measured("head", "unfused", 20e-6, 20e-6),
            measured("head", "fused", head_us * 1e-6, head_us * 1e-6, status=status, error_l2=head),
            measured("base", "unfused", 20e-6, 20e-6),
            measured("base", "fused", 10e-6, 10e-6, error_l2=base),
            **more,
        )
        for number, (head, base) in enumerate(errors)
    ]
    (finding,) = compare(of, of, results, device_class=CLASS)
    return finding


def test_an_error_that_grew_in_every_round_is_found_beside_an_unchanged_time():
    found = looked((4e-7, 1e-7), (4.2e-7, 1.1e-7), (3.9e-7, 0.9e-7))
    assert (found.accuracy, found.verdict, found.red) == (Accuracy.LESS, Verdict.SAME, False)
    assert (found.error_head, found.error_base) == (4.2e-7, 1.1e-7)


def test_a_variant_can_be_faster_and_less_accurate():
    found = looked(*[(4e-7, 1e-7)] * 3, head_us=8.0)
    assert (found.accuracy, found.verdict) == (Accuracy.LESS, Verdict.FASTER)


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ([(4e-7, 1e-7)], Accuracy.LESS),  # one round will do: nothing in it is random
        ([(1e-7, 4e-7)] * 3, Accuracy.MORE),
        ([(1.5e-7, 1e-7)] * 3, Accuracy.LESS),
        ([(2**0.5 * 1e-7, 1e-7)] * 3, Accuracy.NONE),  # one rounding more
        ([(4e-7, 1e-7), (4e-7, 1e-7), (1.2e-7, 1e-7)], Accuracy.NONE),  # the rounds disagree
        ([(2e-9, 1e-9)] * 3, Accuracy.NONE),  # below what rounding the output once costs
        ([(2e-8, 1e-9)] * 3, Accuracy.LESS),
        ([(1e-9, 2e-8)] * 3, Accuracy.MORE),
        ([(2e-8, 0.0)] * 3, Accuracy.LESS),
        ([(1e-8, 0.0)] * 3, Accuracy.NONE),
        ([(0.0, 2e-8)] * 3, Accuracy.MORE),
        ([(0.0, 0.0)] * 3, Accuracy.NONE),
        ([], Accuracy.NONE),
    ],
)
def test_decide(errors, expected):
    assert accuracy.decide(errors, FLOOR) is expected


@given(st.lists(st.tuples(*[st.sampled_from([0.0, 1e-9, 1e-8, 2e-8, 1e-7, 1.6e-7, 1.0])] * 2), max_size=5))
def test_swapping_head_and_base_mirrors_the_answer(errors):
    swapped = {Accuracy.LESS: Accuracy.MORE, Accuracy.MORE: Accuracy.LESS, Accuracy.NONE: Accuracy.NONE}
    mirrored = accuracy.decide([(base, head) for head, base in errors], FLOOR)
    assert mirrored is swapped[accuracy.decide(errors, FLOOR)]


def test_units_of_round_off_are_the_dtypes_own():
    for name, unit in accuracy.UNIT_ROUND_OFF.items():
        assert 2 * unit == float(ml_dtypes.finfo(name).eps)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("draw", ["standard_normal", "random"])
def test_rounding_an_output_once_is_above_the_floor_and_one_rounding_more_is_no_news(dtype, draw):
    narrow = dtype_of(dtype)
    generator = np.random.default_rng(7)
    wide = np.dtype("float32" if narrow.itemsize < 4 else narrow)
    a, b, c = (getattr(generator, draw)(20_000).astype(wide).astype(narrow) for _ in range(3))
    right = (a.astype(np.longdouble) + b.astype(np.longdouble)) * c.astype(np.longdouble)

    def error(output):
        return float(np.sqrt(((output.astype(np.longdouble) - right) ** 2).sum() / (right**2).sum()))

    once = error(right.astype(wide).astype(narrow))
    twice = error((a + b) * c)
    floor = accuracy.floor_of(msgspec.structs.replace(PAIR, params={"dtype": dtype, "n": 20_000}))
    assert once > floor
    assert accuracy.decide([(twice, once)], floor) is Accuracy.NONE
    assert accuracy.decide([(2 * once, once)], floor) is Accuracy.LESS


def test_the_floor_is_that_of_the_finest_dtype_of_the_axes():
    def floor(**params):
        return accuracy.floor_of(msgspec.structs.replace(PAIR, params=params))

    assert floor(dtype="float16") == 2**-13
    assert floor(inputs="float16", output="float32", n=3) == 2**-26
    assert floor(n=1024, mode="fast") == 2**-26  # nothing says so: float32


def test_what_is_wrong_is_not_also_less_accurate():
    found = looked(*[(4e-1, 1e-7)] * 3, status=Status.WRONG)
    assert (found.verdict, found.accuracy, found.error_head) == (Verdict.WRONG, Accuracy.NONE, None)


def test_a_disturbed_round_still_tells_the_error_and_a_lost_one_does_not():
    unstable = looked(*[(4e-7, 1e-7)] * 3, status=Status.UNSTABLE)
    assert (unstable.verdict, unstable.accuracy) == (Verdict.UNSTABLE, Accuracy.LESS)
    results = [
        result(1, measured("head", "fused", 1e-5, error_l2=4e-7), measured("base", "fused", 1e-5, error_l2=1e-7)),
        result(
            2,
            measured("head", "fused", 1e-5, error_l2=1e-7),
            measured("base", "fused", 1e-5, error_l2=1e-7),
            status=Status.INFRA,
        ),
    ]
    (found,) = compare(PAIR, PAIR, results, device_class=CLASS)
    assert (found.accuracy, found.error_head) == (Accuracy.LESS, 4e-7)


def test_without_a_base_there_is_no_change():
    results = [result(1, measured("head", "fused", 1e-5, error_l2=4e-7))]
    (found,) = compare(PAIR, None, results, device_class=CLASS)
    assert (found.verdict, found.accuracy, found.error_head) == (Verdict.NEW, Accuracy.NONE, None)


def test_a_lost_accuracy_alone_needs_no_fresh_rounds():
    assert suspects([looked(*[(4e-7, 1e-7)] * 3)]) == []


def settled(first, second):
    (one,) = settle([first], [second])
    return one


def test_a_second_look_must_say_the_same_of_the_error():
    first = looked(*[(4e-7, 1e-7)] * 3, head_us=10.6)
    assert first.verdict is Verdict.SLOWER
    agrees = settled(first, looked(*[(5e-7, 1.2e-7)] * 5, head_us=10.6, first=4))
    assert (agrees.verdict, agrees.confirmed) == (Verdict.SLOWER, True)
    assert (agrees.accuracy, agrees.error_head, agrees.error_base) == (Accuracy.LESS, 5e-7, 1.2e-7)
    assert settled(first, looked(*[(1.2e-7, 1.2e-7)] * 5, head_us=10.6, first=4)).accuracy is Accuracy.NONE


def test_a_second_look_without_errors_leaves_the_first():
    first = looked(*[(4e-7, 1e-7)] * 3, head_us=10.6)
    (lost,) = compare(PAIR, PAIR, [result(4, status=Status.INFRA, message="node lost")], device_class=CLASS)
    assert settled(first, lost).accuracy is Accuracy.LESS
    wrong = looked(*[(4e-1, 1e-7)] * 5, status=Status.WRONG, first=4)
    assert settled(first, wrong).accuracy is Accuracy.NONE

"""Comparing outputs with a reference."""

import ml_dtypes
import numpy as np
import pytest

from perftrack.measure.inputs import Rng, fingerprint, fits_cache, same_bytes, seed_of, sets_wanted
from perftrack.measure.verify import compare, make_reference, poison
from perftrack.model import Method

TOLERANCE = {"float64": 1e-13, "float32": 2e-6, "float16": 2e-3, "bfloat16": 1.2e-2}


def errors(output, right, dtypes=None, factor=1.0):
    right = np.asarray(right)
    reference = make_reference(np, lambda: right, (), {})
    return compare(np, (output,), reference, dtypes=dtypes, tolerance=TOLERANCE, factor=factor)


@pytest.mark.parametrize(
    "dtype", ["float64", "float32", "float16", ml_dtypes.bfloat16, "int32", "uint8", "bool", "complex64"]
)
def test_a_poisoned_output_never_passes(dtype):
    for value in (0, 1):
        right = np.full((3, 1000), value).astype(dtype)
        output = right.copy()
        assert not errors(output, right).problem
        poison(np, (output[1],))
        assert errors(output, right).problem


def test_poison_reaches_views_that_are_not_contiguous():
    whole = np.zeros((8, 8), np.float32)
    poison(np, (whole[:, ::2],))
    assert np.isnan(whole[:, ::2]).all()
    assert not whole[:, 1::2].any()


def test_infinities_and_nans_at_the_same_place_are_right():
    values = np.array([1.0, np.inf, -np.inf, np.nan], np.float32)
    assert not errors(values, values.astype(np.float64)).problem
    flipped = values.copy()
    flipped[1] = -np.inf
    assert "1 of 4 elements" in errors(flipped, values.astype(np.float64)).problem


def test_one_bad_element_among_many_is_found():
    right = np.random.default_rng(0).standard_normal(1 << 20)
    output = right.astype(np.float32)
    output[77] += 1e-3  # far below the L2 tolerance over a million elements
    found = errors(output, right)
    assert found.l2 < 2e-6
    assert "largest single error" in found.problem


def test_the_errors_are_those_of_the_definition():
    rng = np.random.default_rng(1)
    right = rng.standard_normal(300_000)
    output = (right * (1 + 1e-7 * rng.standard_normal(right.size))).astype(np.float32)
    found = errors(output, right)
    difference = output.astype(np.float64) - right
    rms = np.sqrt(np.mean(right**2))
    assert found.l2 == pytest.approx(np.linalg.norm(difference) / np.linalg.norm(right), rel=1e-9)
    assert found.max == pytest.approx(np.max(np.abs(difference) / (np.abs(right) + rms)), rel=1e-9)


def test_a_variants_own_factor_widens_the_tolerance():
    right = np.ones(10)
    output = np.full(10, 1 + 3e-6, np.float32)
    assert errors(output, right).problem
    assert not errors(output, right, factor=2).problem


def test_shape_dtype_and_number_must_match():
    right = np.ones((2, 3))
    assert "shape (3, 2)" in errors(np.ones((3, 2), np.float32), right).problem
    assert "the baseline's is float16" in errors(np.ones((2, 3), np.float32), right, (np.dtype("float16"),)).problem
    reference = make_reference(np, lambda: (right, right), (), {})
    found = compare(np, (right,), reference, dtypes=None, tolerance=TOLERANCE, factor=1)
    assert "1 outputs, the reference has 2" in found.problem


def test_the_reference_gets_float64_and_untouched_integers():
    seen = []

    def reference(x, ids, scale, n):
        seen.extend([x.dtype, ids.dtype, scale, n])
        return x

    make_reference(np, reference, (np.ones(3, ml_dtypes.bfloat16), np.arange(3, dtype=np.int32), 0.5), {"n": 3})
    assert seen == [np.float64, np.int32, 0.5, 3]


def test_inputs_are_the_same_for_a_seed_and_differ_between_sets_and_rounds():
    seeds = {seed_of(0, "s", "k", round_number, index) for round_number in (1, 2) for index in range(4)}
    assert len(seeds) == 8
    first, again, other = (Rng(np, seed).normal((4, 5), "float16") for seed in (1, 1, 2))
    assert first.dtype == np.float16
    assert same_bytes(np, (first,), (again,))
    assert not same_bytes(np, (first,), (other,))
    assert fingerprint(np, (first,)) != fingerprint(np, (other,))
    uniform, integers = Rng(np, 1).uniform(1000, "bfloat16"), Rng(np, 1).integers(-2, 3, 1000, "int8")
    assert uniform.dtype == ml_dtypes.bfloat16
    assert set(integers.tolist()) == {-2, -1, 0, 1, 2}
    assert integers.dtype == np.int8


def test_a_rotation_is_larger_than_any_cache_or_labelled_cached():
    mib = 1 << 20
    assert sets_wanted(Method(), 256 * mib, 1024 * mib) == 4
    assert sets_wanted(Method(), 256 * mib, 16 * mib) == 16
    assert sets_wanted(Method(), 400 * mib, 16 * mib) == 25
    assert sets_wanted(Method(), 256 * mib, 1) == 64
    assert sets_wanted(Method(cache="hot"), 256 * mib, 1) == 1
    assert fits_cache(64, mib, 60 * mib)
    assert not fits_cache(4, 1024 * mib, 60 * mib)

"""Measuring inside this process, as the pytest plug-in does."""

import sys
import types

import numpy as np
import pytest

from perftrack.declare import benchmark
from perftrack.measure.session import Session
from perftrack.model import Status


def add(x, y, n):
    out = np.empty_like(x)
    return lambda: np.add(x, y, out=out), out


def subtract(x, y, n):
    out = np.empty_like(x)
    return lambda: np.subtract(x, y, out=out), out


@benchmark(
    variants={"unfused": add, "fused": add, "wrong": subtract},
    reference=lambda x, y, n: x + y,
    axes={"n": [1 << 16]},
    traffic=lambda n: {"reads": 8 * n, "writes": 4 * n},
)
def added(rng, n):
    """Add."""
    return rng.normal(n, "float32"), rng.normal(n, "float32")


@pytest.fixture(scope="module")
def session():
    return Session("cpu")


def test_a_session_prepares_verified_launches_and_ceilings(session):
    module = types.ModuleType("in_memory")
    module.added = added
    ((made, case),) = session.cases(module, "in_memory")
    ready = session.prepare(made, case, "fused")
    assert ready.status is Status.OK
    ready.run()
    variant_s, baseline_s = ready.pair_s()
    assert variant_s > 0
    assert baseline_s > 0
    assert ready.ceiling_bytes_per_s > 1e8
    assert ready.mix_ceiling_bytes_per_s > 1e8
    assert "in_memory" not in sys.modules


def test_a_wrong_variant_is_not_timed(session):
    ((made, case),) = [(added, case) for case in added.cases("s", "cpu")]
    wrong = session.prepare(made, case, "wrong")
    assert wrong.status is Status.WRONG
    assert "relative L2 error" in wrong.message

"""The stamps and the persisting part of the cache on a real card."""

import pytest

from perftrack.measure.nvml import gpu_names

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not gpu_names(), reason="no NVIDIA GPU")]

PERSISTING_L2_BYTES = 6


@pytest.fixture(scope="module")
def engine():
    from perftrack.measure.cuda import CudaEngine

    return CudaEngine()


@pytest.fixture(scope="module")
def highest_mhz():
    from perftrack.measure.cuda_device import pci_bus_id
    from perftrack.measure.nvml import Card

    return Card.open(pci_bus_id()).environment()["max_sm_mhz"]


@pytest.mark.parametrize("issue", ["queued", "eager"])
@pytest.mark.parametrize("elements", [64, 1 << 24])  # one multiprocessor busy, and all of them
def test_every_sample_has_a_clock_that_the_card_can_have(engine, highest_mhz, issue, elements):
    import cupy as cp

    from perftrack.measure.engine import Rotation

    with engine.active():
        arrays = [cp.ones(elements, cp.float32) for _ in range(4)]
        rotation = Rotation(tuple(lambda a=a: cp.multiply(a, 1, out=a) for a in arrays), lambda: None)
        cost = engine.cost(rotation)
        mode, (issuer,) = engine.issuers([rotation], [cost], issue)
        times = max(1, min(issuer.max_times, int(1e-3 / (cost.device_s * issuer.unit))))
        for _ in range(3):  # the first finds out how far ahead the host must be
            block = engine.time_block([(issuer, times)] * 6, 3)
    assert (mode == "eager") == (issue == "eager")
    assert not block.starved
    assert len(block.clocks_mhz) == 6
    assert all(0.3 * highest_mhz < clock < 1.02 * highest_mhz for clock in block.clocks_mhz), block.clocks_mhz


def test_what_a_case_set_aside_in_the_cache_is_given_back(engine):
    import cupy as cp

    with engine.active():
        cp.cuda.runtime.deviceSetLimit(PERSISTING_L2_BYTES, engine.cache_bytes // 4)
        assert cp.cuda.runtime.deviceGetLimit(PERSISTING_L2_BYTES) > 0
        assert engine.forget() == ""
        assert cp.cuda.runtime.deviceGetLimit(PERSISTING_L2_BYTES) == 0

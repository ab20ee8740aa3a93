"""Calls that are issued as a user's loop issues them, so that launching is part of the time."""

from types import SimpleNamespace

import pytest

from perftrack.measure.engine import Cost, EagerLoop, Rotation
from perftrack.model import Method


class Gpu:
    """Stands for stream, events, spin and stamp kernels; remembers the order of what was issued."""

    def __init__(self):
        self.log = []

    def event(self, name):
        return SimpleNamespace(record=lambda stream: self.log.append(name))

    def spin(self, seconds):
        self.log.append("spin")

    def before(self, sample):
        self.log.append("stamp")

    after = before

    def make_room(self, samples):
        pass

    def clocks_mhz(self, samples):
        return (1980.0,) * samples

    def wait(self):
        self.log.append("wait")

    def launch(self):
        self.log.append("call")


@pytest.fixture
def gpu():
    return Gpu()


@pytest.fixture
def engine(gpu, monkeypatch):
    cuda = pytest.importorskip("perftrack.measure.cuda")
    made = object.__new__(cuda.CudaEngine)
    made.busy_s, made._leads, made._stream = 0.0, {}, None
    made._kernels, made._stamps, made._origin, made._canary_calls = gpu, gpu, gpu.event("origin"), 1
    made._copy = lambda: gpu.log.append("copy")
    made._events = [(gpu.event("begin"), gpu.event("end")) for _ in range(3)]
    monkeypatch.setattr(made, "synchronize", gpu.wait, raising=False)
    monkeypatch.setattr(cuda.cp.cuda, "get_elapsed_time", lambda begin, end: 0.5)
    return made


def test_an_eager_sample_begins_on_an_idle_device_and_a_slow_host_is_no_fault(engine, gpu):
    # 2 µs on the device and 20 on the host: queued, this would need a graph
    mode, (issuer,) = engine.issuers([Rotation((gpu.launch,), lambda: None)], [Cost(2e-6, 20e-6)], "eager")
    assert mode == "eager"
    block = engine.time_block([(issuer, 3), (issuer, 3)], canary_at=1)
    sample = ["stamp", "wait", "begin", "call", "call", "call", "end", "stamp"]
    assert gpu.log == ["origin", "spin", *sample, "spin", "begin", "copy", "end", *sample, "wait"]
    assert block.elapsed_s == (0.5e-3, 0.5e-3)
    assert block.clocks_mhz == (1980.0, 1980.0)
    assert not block.starved


def test_a_queued_sample_has_a_head_start(engine, gpu):
    mode, (issuer,) = engine.issuers([Rotation((gpu.launch,), lambda: None)], [Cost(1e-3, 1e-5)], "queued")
    assert (mode, isinstance(issuer, EagerLoop)) == ("backlog", False)
    engine.time_block([(issuer, 1)], canary_at=None)
    assert gpu.log == ["origin", "spin", "spin", "stamp", "begin", "call", "end", "stamp", "wait"]


ADD = """
    import numpy as np
    from perftrack.declare import benchmark

    def add(x, n):
        out = np.empty_like(x)
        return lambda: np.add(x, 1, out=out), out

    @benchmark(
        variants={"unfused": add, "fused": add},
        reference=lambda x, n: x + 1,
        axes={"n": [1024]},
        traffic=lambda n: {"reads": 8 * n, "writes": 8 * n},
        issue="eager",
    )
    def added(rng, n):
        return rng.normal(n, "float64")
"""


def test_a_cpu_knows_only_its_loop(tree, measure):
    talk = measure({"head": tree("head", {"suites/tiny.py": ADD})})
    assert talk.measurement("fused").mode == talk.measurement("unfused").mode == "loop"
    assert talk.measurement("fused").samples_s


def test_what_was_stored_before_there_was_an_issue_keeps_its_method():
    was = "6bd562ae23e630c968bfcc3c050c222ee2a3a9cc88bdc4ccb731462966ac7606"
    assert Method(version=1).digest == was
    assert Method(issue="eager").digest != was

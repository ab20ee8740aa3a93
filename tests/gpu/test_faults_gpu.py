"""Kernels that take their context along, never end or want more memory than there is, and a process that stays: a real
Card on a real GPU.
"""

import os
import signal
from pathlib import Path

import pytest

from perftrack.measure.methods import quick_method
from perftrack.measure.nvml import gpu_names
from perftrack.model import Case, Job, Status, Traffic
from perftrack.pool.blame import Party, classify
from perftrack.pool.card import Card, CardSetup
from perftrack.pool.child_process import Limits
from perftrack.pool.lease import Finished, Lease, Lost
from perftrack.revision import Repository

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not gpu_names(), reason="no NVIDIA GPU"), pytest.mark.timeout(550)]

SUITE = '''
import subprocess
import sys
from pathlib import Path

import cupy as cp

from perftrack.declare import benchmark, variant

ILLEGAL = 'extern "C" __global__ void illegal(float* out) { *(volatile float*)(out + (1LL << 45)) = 1; }'
ENDLESS = 'extern "C" __global__ void endless(volatile float* out) { while (out[0] != 12345.0f) {} }'


def doubled(x, **_):
    out = cp.empty_like(x)
    return (lambda: cp.multiply(x, 2, out=out)), out


def by(source, name):
    def build(x, **_):
        out, kernel = cp.zeros_like(x), cp.RawKernel(source, name)
        return (lambda: kernel((1,), (1,), (out,))), out

    return build


def greedy(x, **_):
    return (lambda: None), cp.empty(2**50, "float32")


STAYS = """
import os, time, cupy
held = cupy.zeros(2**31, "uint8")
cupy.cuda.runtime.deviceSynchronize()
print(os.getpid(), flush=True)
time.sleep(900)
"""


def leaving(x, **_):
    if not Path("LEFT").exists():
        command = [sys.executable, "-c", STAYS]
        stays = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
        Path("LEFT").write_text(stays.stdout.readline())
    return doubled(x)


def declare(build):
    return benchmark(
        variants={"unfused": variant(cuda=doubled), "fused": variant(cuda=build)},
        reference=lambda x, **_: 2 * x,
        axes={"cuda": [{"n": [2**20]}]},
        traffic=lambda n: {"reads": 4 * n, "writes": 4 * n},
    )


def inputs(rng, n):
    return rng.normal((n,), "float32")


@declare(doubled)
def fine(rng, n):
    return inputs(rng, n)


@declare(by(ILLEGAL, "illegal"))
def illegal(rng, n):
    return inputs(rng, n)


@declare(by(ENDLESS, "endless"))
def endless(rng, n):
    return inputs(rng, n)


@declare(greedy)
def starving(rng, n):
    return inputs(rng, n)


@declare(leaving)
def leaves(rng, n):
    return inputs(rng, n)
'''


def job(name: str, round_: int) -> Job:
    case = Case(
        suite="faults",
        benchmark=name,
        key=f"{name}[n={2**20}]",
        backend="cuda",
        params={"n": 2**20},
        variants=("unfused", "fused"),
        traffic=Traffic(read_bytes=2**22, write_bytes=2**22),
        min_effect=0.02,
    )
    return Job(case=case, device_class="any", round=round_)


@pytest.fixture
def ends(repo, tmp_path, monkeypatch):
    """How the jobs of a lease end on the card, by benchmark."""
    repo.commit("base", {"suites/faults.py": SUITE.replace("LEFT", str(tmp_path / "left"))})
    repository = Repository.discover(repo.root)
    (tmp_path / "tars").mkdir()
    archive = repository.export(repository.revision("HEAD"), tmp_path / "tars")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    card = Card(CardSetup(backend="cuda", cores=4, scratch=str(tmp_path), limits=Limits(silence_s=20.0)))
    card.hold_trees({"head": archive}, Path(archive.path).read_bytes())
    uuid = card.identify().report.device.uuid

    def run(*names: str):
        lease = Lease(
            backend="cuda",
            suite_paths=("suites",),
            method=quick_method("cuda"),
            seed=1,
            round=1,
            jobs=tuple(job(name, 1) for name in names),
            device_uuid=uuid,
        )
        found = {}
        for event in card.run(lease):
            match event:
                case Finished(result=result):
                    found[result.case_key.partition("[")[0]] = event
                case Lost(jobs=jobs):
                    found |= {one.case.benchmark: event for one in jobs}
                case _:
                    pass
        return found

    return run


@pytest.fixture
def ended(ends):
    """How a job of this benchmark ends, in a lease with a fine one."""

    def run(name: str):
        found = ends(name, "fine")
        assert isinstance(found["fine"], Finished), found["fine"]
        assert found["fine"].result.status is Status.OK, found["fine"].result.message
        return found[name]

    return run


def test_an_illegal_address_is_the_kernels_and_the_card_is_fine_afterwards(ended):
    event = ended("illegal")
    assert event.result.status is Status.FAILED
    assert event.cuda_error == 700


def test_a_kernel_that_never_ends_is_ended_and_the_card_is_free_afterwards(ended):
    event = ended("endless")
    assert (event.ending.kind, classify(event.ending).party) == ("time-out", Party.KERNEL)


def test_more_memory_than_the_card_has_is_the_variants_and_its_process_goes_on(ended):
    event = ended("starving")
    statuses = {one.variant: one for one in event.result.measurements}
    assert statuses["unfused"].status is Status.OK
    assert statuses["fused"].status is Status.FAILED
    assert "memory" in statuses["fused"].message.lower()


def test_a_process_that_stays_keeps_others_off_the_card_until_it_is_gone(ends, tmp_path):
    """It is in no group of the child's, so that it cannot be ended with it."""
    ends("leaves")
    left = int((tmp_path / "left").read_text())
    try:
        event = ends("fine")["fine"]
        assert isinstance(event, Lost), event
        assert classify(event.ending).party is Party.DEVICE
        assert "is busy" in event.ending.said
    finally:
        os.kill(left, signal.SIGKILL)
    assert ends("fine")["fine"].result.status is Status.OK

"""One end-to-end run: Ray, a Card, and the real measuring child on the CPU."""

import pytest

from perftrack.model import Case, Job, JobResult, Method, Status, Traffic
from perftrack.pool.client import Pool
from perftrack.revision import Repository

pytestmark = pytest.mark.fault

SUITE = """
import os
import resource
import signal
from pathlib import Path

import numpy as np

from perftrack.declare import benchmark


def doubled(x, y):
    def build(a, **params):
        out = np.empty_like(a)

        def launch():
            np.multiply(a, x, out=out)
            if y:
                np.multiply(out, y, out=out)

        return launch, out

    return build


def crash(a, **params):
    os.kill(os.getpid(), signal.SIGSEGV)


def hungry(a, **params):
    # all memory there is, as on a machine with 100 MB left
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + 100 * 2**20, before[1]))
    try:
        np.ones(2**30)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def traffic(n):
    return {"reads": 8 * n, "writes": 8 * n}


def declare(**variants):
    return benchmark(variants=variants, reference=lambda a, **params: a * 2, axes={"n": [4096]}, traffic=traffic)


@declare(unfused=doubled(1.0, 2.0), fused=doubled(2.0, None))
def double(rng, n):
    return rng.normal((n,), "float64")


@declare(unfused=doubled(1.0, 2.0), fused=doubled(3.0, None))
def wrong(rng, n):
    return rng.normal((n,), "float64")


@declare(unfused=doubled(1.0, 2.0), fused=crash)
def crashing(rng, n):
    return rng.normal((n,), "float64")


@declare(unfused=doubled(1.0, 2.0), fused=hungry)
def starving(rng, n):
    return rng.normal((n,), "float64")
"""


@pytest.fixture
def archives(repo, tmp_path):
    repo.commit("base", {"suites/small.py": SUITE})
    repository = Repository.discover(repo.root)
    (tmp_path / "tars").mkdir()
    archive = repository.export(repository.revision("HEAD"), tmp_path / "tars")
    return {"head": archive, "base": archive}


def case(name):
    return Case(
        suite="small",
        benchmark=name,
        key=f"{name}[n=4096]",
        backend="cpu",
        params={"n": 4096},
        variants=("unfused", "fused"),
        traffic=Traffic(read_bytes=32768, write_bytes=32768),
        min_effect=0.02,
    )


def test_measured_wrong_and_crashing_kernels_become_statuses(archives, joined):
    method = Method(
        timer="host",
        blocks=4,
        timed_s=0.02,
        case_s=1.0,
        warmup_s=0.01,
        max_warmup_s=0.1,
        canary_limit=1e9,  # this machine may be as busy as it likes
        max_bad_share=1.0,
    )
    with Pool(
        address=joined,
        want="cpu",
        trees=archives,
        suite_paths=("suites",),
        methods={"cpu": method},
        seed=1,
        case_timeout_s=60,
    ) as pool:
        (report,) = pool.devices()
        assert report.problem == ""
        jobs = [
            Job(case=case(name), device_class=report.device.device_class, round=1, sides=("head", "base"))
            for name in ("double", "wrong", "starving", "crashing")
        ]
        results = [event for event in pool.run(jobs) if isinstance(event, JobResult)]
    by_name = {(r.case_key.split("[")[0], r.attempt): r for r in results}
    double = by_name["double", 1]
    assert double.status is Status.OK, double.message
    assert {(m.side, m.variant, m.status) for m in double.measurements} == {
        (side, variant, Status.OK) for side in ("head", "base") for variant in ("unfused", "fused")
    }
    assert all(m.samples_s for m in double.measurements)
    wrong = {m.variant: m.status for m in by_name["wrong", 1].measurements if m.side == "head"}
    assert wrong == {"unfused": Status.OK, "fused": Status.WRONG}
    starving = {m.variant: m for m in by_name["starving", 1].measurements if m.side == "head"}
    assert {name: one.status for name, one in starving.items()} == {"unfused": Status.OK, "fused": Status.FAILED}
    assert "Unable to allocate 8.00 GiB" in starving["fused"].message
    assert by_name["crashing", 1].status is Status.FAILED
    final = by_name["crashing", 2]
    assert final.status is Status.FAILED
    assert "SIGSEGV" in final.message
    assert "small.py" in final.message, "the last words are the fault handler's"
    assert len(by_name) == 5

"""An A/A measurement's own decisions; the measuring itself is a submission's and is tested there."""

from pathlib import Path

import pytest

from perftrack.errors import IncompleteError, InfrastructureError
from perftrack.measure.collect import Collected
from perftrack.model import Case, Revision, Traffic, TreeArchive
from perftrack.pipeline import noise
from perftrack.pipeline.trees import Trees

SUITE = """
from perftrack.declare import benchmark

def build(x, **_):
    return (lambda: None), x

def traffic(n):
    return {"reads": n, "writes": n}

@benchmark(variants={"unfused": build}, reference=lambda x, **_: x, axes={"n": [8]}, traffic=traffic)
def nothing(rng, n):
    return rng.normal(n)
"""


def case(suite, key, backend):
    traffic = Traffic(read_bytes=1, write_bytes=1)
    return Case(
        suite=suite,
        benchmark=key,
        key=key,
        backend=backend,
        params={},
        variants=("unfused",),
        traffic=traffic,
        min_effect=0.02,
    )


def test_the_first_case_of_each_suite_and_backend_is_on_both_sides():
    head = Revision(sha="a", tree="t", dirty=False, parent=None, position=None, committed_us=1, subject="s")
    cases = [case(suite, key, backend) for suite in "pq" for backend in ("cuda", "cpu") for key in ("first", "second")]
    archive = TreeArchive(path="p", sha256="x", tree="t")
    collected = Collected(cases=cases, problems={"r": "no"}, suites=["p", "q", "r"])
    made = noise.against_itself(Trees(head, None, "note", {"head": archive}, {"head": collected}))
    assert made.base is made.head
    assert made.archives == {"head": archive, "base": archive}
    for side in ("head", "base"):
        chosen = [(one.suite, one.backend, one.key) for one in made.cases(side)]
        assert chosen == [(suite, backend, "first") for suite in "pq" for backend in ("cuda", "cpu")]
        assert made.collected[side].problems == {"r": "no"}


class Silent:
    def say(self, text):
        pass


class CannotRun:
    """An execution that finds no case for the devices there are."""

    def __init__(self, run, trees, store, talk):
        assert run.head == run.base
        assert str(store.label).endswith("noise.db")

    def measure(self, address):
        raise IncompleteError("no selected case can run on cpu-2c")


def test_nothing_that_can_run_is_the_machine_s_lack(repo, monkeypatch):
    repo.commit("first", {"pyproject.toml": '[tool.perftrack]\nsuites = ["bench"]\n', "bench/one.py": SUITE})
    monkeypatch.setattr(noise, "Execution", CannotRun)
    with pytest.raises(InfrastructureError, match="no selected case can run on cpu-2c") as raised:
        noise.measure_noise(noise.Request(start=Path(repo.root)), Silent())
    assert raised.value.exit_code == 3

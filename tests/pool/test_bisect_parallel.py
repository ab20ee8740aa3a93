"""`perftrack bisect --parallel`: the command over real git, store and Ray; only what a card measures is made up."""

import json
from functools import partial

import pytest

from perftrack.cli.app import app
from perftrack.pipeline import execution
from perftrack.pool.client import Pool
from perftrack.store import Store

pytestmark = pytest.mark.fault

SUITE = """
from perftrack.declare import benchmark


def build(x, **_):
    return (lambda: None), x


declare = benchmark(
    variants={"unfused": build, "fused": build},
    reference=lambda x, **_: x,
    axes={},
    traffic=lambda **_: {"reads": 32, "writes": 32},
)


@declare
def told(rng):
    return rng.normal((4,), "float32")


@declare
def told_too(rng):
    return rng.normal((4,), "float32")
"""


def test_every_commit_is_measured_by_both_cards_in_turn_and_the_right_one_is_found(
    repo, joined, fake_child, tmp_path, monkeypatch, capsys
):
    repo.commit("good", {"suites/one.py": SUITE, "pyproject.toml": "[tool.perftrack]\n", "seconds": "0.0010"})
    repo.commit("slower", {"seconds": "0.0012"})
    repo.commit("words", {"README.md": "words"})
    database = tmp_path / "perf.db"
    monkeypatch.chdir(repo.root)
    monkeypatch.setattr(execution, "Pool", partial(Pool, child=fake_child))
    words = f"bisect told HEAD~2..HEAD -d FakeGPU-* --parallel --format json --address {joined} --db {database}"
    app(words.split(), standalone_mode=False)
    report = json.loads(capsys.readouterr().out)
    assert [one["subject"] for one in report["found"]] == ["slower"]
    assert (report["step"]["point"], report["device_class"]) == (pytest.approx(1.2, rel=1e-3), "FakeGPU-1G")
    assert [(one["answer"], one["rounds"]) for one in report["tested"]] == [("bad", 2), ("bad", 5)]
    with Store.open(str(database)) as store:
        for one in report["tested"]:
            jobs = store.jobs(one["run"])
            assert [job.round for job in jobs] == list(range(1, one["rounds"] + 1)), "of the case alone"
            cards = [job.device_uuid for job in jobs]
            assert set(cards[:2]) == {"GPU-0", "GPU-1"}
            assert cards == [cards[number % 2] for number in range(len(cards))]

"""The main line of a real repository: what is told of a store with another branch, at hand and from an older clone."""

import msgspec
import numpy as np
import pytest
from life_builders import ADD, World, finding

from perftrack.pipeline.lines import lines_at
from perftrack.pipeline.replays import replay_of
from perftrack.pipeline.reports import histories_of
from perftrack.report.tables import points
from perftrack.store import Store


@pytest.fixture
def world(repo, tmp_path):
    """A database of its own, since other tests' commits lie at the same places."""
    path = tmp_path / "perf.db"
    with Store.open(str(path)) as store:
        yield World(repo, store, path)


def measured(world, levels, seed):
    """One commit for each level, in microseconds, measured by a run that says nothing of branches."""
    noise = np.exp(0.003 * np.random.default_rng(seed).standard_normal(len(levels)))
    shas = []
    for number, level in enumerate(levels):
        shas.append(world.commit(f"{seed} {number}"))
        one = msgspec.structs.replace(finding(), head_s=1e-6 * level * float(noise[number]), base_s=None)
        world.judge(shas[-1], None, one)
    return shas


def test_the_replay_and_the_history_are_of_the_main_branch_of_the_repository_at_hand(world):
    shas = measured(world, [10] * 12, 1)
    world.repo.git("checkout", "-q", "-b", "side")
    measured(world, [13] * 18, 2)
    world.repo.git("checkout", "-q", "main")
    shas += measured(world, [10] * 4 + [10.8] * 11, 3)
    report = replay_of(world.store, "", device="", since="", start=world.repo.root)
    assert [(one.sha, one.direction) for one in report.told] == [(shas[16], 1)]
    assert report.commits == 27
    lines = lines_at(world.repo.root, world.store)
    (series,) = histories_of(world.store, ADD, device="", variant="", last=100, lines=lines)
    changed = [(series.points[at].revision, direction) for at, direction in series.changes]
    assert changed == [(shas[16][:7], 1)]
    assert [cells[-1] for cells in points(series.points)].count("other branch") == 18


def test_an_older_clone_leaves_to_the_store_what_it_does_not_have(world, tmp_path_factory):
    old = measured(world, [10, 10], 1)
    clone = tmp_path_factory.mktemp("clone") / "repo"
    world.repo.git("clone", "-q", str(world.repo.root), str(clone))
    new = measured(world, [10], 2)
    world.repo.git("reset", "-q", "--hard", old[0])
    measured(world, [10], 3)
    found = lines_at(clone, world.store)
    assert found == {"repo": frozenset({world.base, *old, *new})}, "the other commit at the second place is known less"


def test_outside_a_repository_and_in_a_shallow_clone_the_store_has_to_know(world, tmp_path_factory):
    measured(world, [10, 10, 10], 1)
    clone = tmp_path_factory.mktemp("clone") / "repo"
    assert lines_at(clone.parent, world.store) == {}
    world.repo.git("clone", "-q", "--depth", "1", f"file://{world.repo.root}", str(clone))
    assert lines_at(clone, world.store) == {}

"""A head against its stored history: real git, a real database; only the measuring is left out."""

import msgspec
import numpy as np
import pytest
from life_builders import ADD, CLASS, DRIVER, SUB, World, case, finding, timed

from perftrack.judge.life import State
from perftrack.judge.triage import Triage
from perftrack.judge.value import Summary
from perftrack.model import Environment, Method, Run, RunOptions, Status
from perftrack.pipeline.past import History, Told, moved_devices
from perftrack.store import Store

OTHER_DRIVER = Environment(entries={"driver": "590"})
NAME = ("elementwise", ADD, CLASS, "fused")
BOTH = (ADD, SUB)


def past(world, levels, *, environment=DRIVER, seed=1):
    """One commit for each level, in microseconds; both cases have it, but for half a percent of noise."""
    noise = np.exp(0.005 * np.random.default_rng(seed).standard_normal((len(levels), 2)))
    shas = []
    for number, level in enumerate(levels):
        shas.append(world.commit(f"{seed} {number}"))
        times = [level * one for one in noise[number]]
        findings = [
            msgspec.structs.replace(finding(key=key), head_s=1e-6 * time, base_s=None)
            for key, time in zip(BOTH, times, strict=True)
        ]
        world.judge(shas[-1], None, *findings, environment=environment)
    return shas


def ask(world, head, times, *, environment=DRIVER, card="GPU-a", keys=BOTH):
    """What the history says of these times of the cases at a head."""
    to = world.revision(head)
    run = Run(
        uid="e" * 32, repo="repo", head=to, base=world.revision(to.parent), base_note="", started_us=1,
        options=RunOptions(methods={"cuda": Method()}),
    )  # fmt: skip
    summaries = [
        Summary(
            suite="elementwise", case_key=key, device_class=CLASS, device_uuid=card, variant="fused", side="head",
            environment_digest=environment.digest, status=Status.OK, time_s=1e-6 * time,
        )
        for key, time in zip(keys, times, strict=True)
    ]  # fmt: skip
    cases = {
        ("elementwise", key, CLASS): msgspec.structs.replace(case(key), variants=("unfused", "fused")) for key in keys
    }
    return History(world.store, run, world.git.line).ask(summaries, cases)


def test_a_head_stands_out_of_its_level_both_ways_and_is_compared_with_the_newest_commit_before_it(world):
    shas = past(world, [10] * 12)
    told = ask(world, world.commit("head"), (10.4, 9.6))
    add, sub = told[NAME], told["elementwise", SUB, CLASS, "fused"]
    assert (add.triage.reading, sub.triage.reading) == ("higher", "lower")
    assert (add.stands_out, add.commits) == (True, 12)
    assert add.against is not None
    assert add.against.sha == shas[-1]
    assert add.triage.change == pytest.approx(0.04, abs=0.01)


def test_slow_creep_is_compared_with_a_commit_of_the_best_known_level(world):
    shas = past(world, [10 * 1.006**at for at in range(22)])
    told = ask(world, world.commit("head"), (10 * 1.006**22, 10))
    assert told[NAME].triage.reading == "creeping"
    assert told[NAME].against is not None
    assert shas.index(told[NAME].against.sha) < 10


def test_only_the_head_s_own_line_environment_and_card_count(world):
    shas = past(world, [10] * 8)
    past(world, [20] * 8, environment=OTHER_DRIVER, seed=2)
    world.repo.git("checkout", "-q", "-b", "side", shas[-1])
    past(world, [30] * 4, seed=3)
    world.repo.git("checkout", "-q", "main")
    head = world.commit("head")
    assert ask(world, head, (10.01, 10))[NAME].commits == 8
    assert ask(world, head, (10.01, 10))[NAME].triage.reading == "usual"
    assert ask(world, head, (10.01, 10), environment=OTHER_DRIVER)[NAME].triage.reading == "lower"
    assert ask(world, head, (15, 10), card="GPU-b")[NAME].triage.reading == "unknown", "cards differ"


def test_a_rebased_line_forgets_the_commits_that_it_no_longer_has(world):
    past(world, [10] * 6)
    world.repo.git("reset", "-q", "--hard", world.base)
    assert ask(world, world.commit("head"), (20, 20))[NAME].triage.reading == "unknown"


def test_measuring_a_commit_twice_counts_once(world):
    shas = past(world, [10] * 6)
    world.judge(shas[2], None, msgspec.structs.replace(finding(), head_s=3e-5), uid="f" * 32)
    told = ask(world, world.commit("head"), (10, 10))[NAME]
    assert (told.commits, told.triage.reading) == (6, "usual")


def test_a_remembered_slowdown_begins_a_new_level_however_it_stands(world):
    past(world, [10] * 11)
    world.judge(world.commit("slow"), None, timed(10, 11))
    past(world, [11] * 9, seed=4)
    head = world.commit("head")
    for state in (None, State.ACKNOWLEDGED, State.INVALID):
        if state is not None:
            world.ack("1", state=state)
        told = ask(world, head, (11, 11))
        assert (told[NAME].commits, told[NAME].triage.reading) == (10, "usual"), state
        other = told["elementwise", SUB, CLASS, "fused"]
        assert other.triage.reading == "creeping", "nothing is remembered of this one"


def test_a_slowdown_that_is_fixed_begins_nothing(world):
    past(world, [10] * 6)
    world.judge(world.commit("slow"), None, timed(10, 11))
    world.judge(world.commit("fix"), None, timed(11, 10))
    assert ask(world, world.commit("head"), (10, 10))[NAME].commits == 8


def test_marks_enter_the_changes_of_the_history(repo, tmp_path):
    path = tmp_path / "perf.db"
    with Store.open(str(path)) as store:
        world = World(repo, store, path)
        past(world, [10] * 10)
        slow = world.commit("slow")
        world.judge(slow, None, timed(10, 12))
        past(world, [12] * 10, seed=6)

        def told():
            (track,) = store.tracks(ADD)
            return [(track.revisions[at].revision.sha, direction) for at, direction in track.changes()]

        assert told() == [(slow, 1)]
        world.ack("1", state=State.INVALID)
        assert told() == []
        world.ack("1", state=State.INFRA)
        assert told() == [(slow, 1)]


def head(key, card, device_class=CLASS):
    return Summary(
        suite="elementwise", case_key=key, device_class=device_class, device_uuid=card, variant="fused", side="head",
        environment_digest="", status=Status.OK, time_s=1e-6,
    )  # fmt: skip


def moved(*cases):
    """What is said of (card, reading) of so many cases."""
    summaries = [head(f"add[n={number}]", card) for number, (card, _) in enumerate(cases)]
    told = {
        ("elementwise", one.case_key, CLASS, "fused"): Told(Triage(reading, 0.031, 0.01, 0.001), None, 9)
        for one, (_, reading) in zip(summaries, cases, strict=True)
    }
    return moved_devices(told, summaries)


def test_a_device_whose_cases_moved_together_is_named():
    (said,) = moved(*[("GPU-a", "higher")] * 3, ("GPU-a", "usual"), *[("GPU-b", "usual")] * 2)
    assert said.startswith(f"device GPU-a ({CLASS}): 3 of 4 series with a past are slower than that, by 3.1 % in the")
    (alone,) = moved(*[("GPU-a", "lower")] * 3)
    assert "3 of 3 series with a past are faster than that" in alone


def test_where_all_devices_of_a_class_moved_it_is_no_device():
    assert moved(*[("GPU-a", "higher")] * 3, *[("GPU-b", "higher")] * 3) == []
    assert len(moved(*[("GPU-a", "higher")] * 3, *[("GPU-b", "lower")] * 3)) == 2

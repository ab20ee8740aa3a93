"""Regressions of a case that got another name: what is known of it is known by either name."""

import msgspec
import pytest
from life_builders import ADD, CLASS, World, finding, timed
from test_past import ask, past

from perftrack.judge.life import State
from perftrack.model import Verdict
from perftrack.pipeline.life import rows
from perftrack.pipeline.replays import replay_of
from perftrack.pipeline.reports import report_of
from perftrack.store import Store

PLUS = "plus[n=1]"


@pytest.fixture
def world(repo, tmp_path):
    path = tmp_path / "perf.db"
    with Store.open(str(path)) as store:
        yield World(repo, store, path)


def rename(world, head_us=11):
    """A commit that renames a case and leaves it as slow as it was."""
    new = msgspec.structs.replace(finding(Verdict.NEW, PLUS), head_s=1e-6 * head_us)
    return world.judge(world.commit("rename"), None, finding(Verdict.REMOVED), new)


def test_an_alias_opens_again_what_a_rename_closed(world):
    slow = world.commit("slow")
    before = world.judge(slow, None, timed(10, 11))
    world.ack("1", reason="needed")
    report = rename(world)
    (said,) = report.fixed
    assert said.startswith(f"regression 1 (slower since {slow[:7]} on {CLASS}) is gone in every case; ")
    assert said.endswith("if it was renamed, `perftrack db alias 'add[n=1]' NEW` keeps the regression")
    assert world.states() == {1: "fixed"}
    world.store.rename(ADD, PLUS)
    (row,) = rows(world.store, everything=True)
    assert (row.state, [(one.case, one.reason) for one in row.cases]) == ("acknowledged", [(PLUS, "needed")])
    assert report_of(world.store, report.run).fixed == ()
    shown = report_of(world.store, before.run)
    assert (shown.exit_code, shown.rows[0].case) == (0, ADD), "a run's own report has the names of then"
    assert shown.rows[0].regressions[0].text == "regression 1, acknowledged by Ada: needed"


def test_a_renamed_case_keeps_its_regression_until_it_is_fast_again(world):
    slow = world.commit("slow")
    world.judge(slow, None, timed(10, 11))
    rename(world)
    world.store.rename(ADD, PLUS)
    assert world.judge(world.commit("words"), None, timed(11, 11, PLUS)).fixed == ()
    assert world.states() == {1: "open"}
    worse = world.judge(world.commit("worse"), slow, timed(10, 12, PLUS))
    assert (worse.exit_code, world.states()) == (1, {1: "open", 2: "open"})
    assert [row.id for row in world.ack("add*")] == [1, 2], "a former key finds it too"
    assert world.judge(world.commit("mend"), None, timed(12, 10, PLUS)).fixed != ()
    assert world.states() == {1: "fixed", 2: "fixed"}


def test_a_renamed_case_that_is_removed_has_nothing_wrong_with_it(world):
    world.judge(world.commit("slow"), None, timed(10, 11))
    rename(world)
    world.store.rename(ADD, PLUS)
    world.judge(world.commit("remove"), None, finding(Verdict.REMOVED, PLUS))
    assert world.states() == {1: "fixed"}
    world.store.rename(ADD, ADD)
    assert rows(world.store, everything=True)[0].cases[0].case == ADD


def test_an_old_commit_judged_after_the_rename_is_the_same_regression(world):
    slow = world.commit("slow")
    world.judge(slow, None, timed(10, 11))
    world.ack("1")
    rename(world)
    world.store.rename(ADD, PLUS)
    again = world.judge(slow, None, timed(10, 11.05))
    assert (again.exit_code, world.states()) == (0, {1: "acknowledged"})
    back = world.commit("slower\n\nPerftrack-Accept: add* as it was called")
    assert world.judge(back, world.base, timed(10, 13)).exit_code == 0


def test_the_level_that_a_slowdown_began_is_known_by_the_new_name(world):
    past(world, [10] * 4)
    world.judge(world.commit("slow"), None, timed(10, 11))
    past(world, [11] * 2, seed=4)
    world.judge(world.commit("rename"), None, msgspec.structs.replace(finding(key=PLUS), head_s=1.1e-5))
    world.store.rename(ADD, PLUS)
    told = ask(world, world.commit("head"), (11,), keys=(PLUS,))
    ((name, one),) = told.items()
    assert (name[1], one.commits) == (PLUS, 4), "those before it are another level"


def test_the_replay_knows_a_renamed_case_by_either_name(world, tmp_path):
    past(world, [10] * 9)
    world.judge(world.commit("slow"), None, timed(10, 12))
    past(world, [12] * 4, seed=6)
    world.ack("1", state=State.INVALID)
    world.judge(world.commit("rename"), None, msgspec.structs.replace(finding(key=PLUS), head_s=1.2e-5))
    world.store.rename(ADD, PLUS)
    report = replay_of(world.store, "add*", device="", since="", start=tmp_path)
    assert [(one.case, one.regression, one.state) for one in report.told] == [(PLUS, 1, State.INVALID)]
    assert report.false_alarms == 1

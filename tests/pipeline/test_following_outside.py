"""What is said of a run on a cluster outside while its database comes and goes; the head is only a voice here."""

import pytest
from life_builders import finding

from perftrack.errors import StoreAwayError
from perftrack.pipeline import outside
from perftrack.pipeline.inside import LogTalk

pytestmark = pytest.mark.fault


class Head:
    address, problem = "http://head:8265", ""

    def look(self, _name):
        return "RUNNING", ""


class Sometimes:
    """A store that is away at some of the questions whether somebody carries the run out."""

    def __init__(self, store, away):
        self._store, self._away = store, iter(away)

    def __getattr__(self, name):
        return getattr(self._store, name)

    def owned(self, uid):
        if next(self._away, False):
            raise StoreAwayError("the database cannot be reached: gone")
        return self._store.owned(uid)


@pytest.mark.parametrize(("away", "times"), [([True, True, True], 1), ([], 0)])
def test_a_database_that_is_away_is_said_once_and_waited_for(world, monkeypatch, capsys, away, times):
    monkeypatch.setattr(outside, "_LOOK_S", 0.0)
    head = world.commit("head")
    uid = f"{'ab' * 15}{times:02}"
    world.judge(head, None, finding(), uid=uid)
    store = Sometimes(world.store, away)
    following = outside._Following(Head(), "job", world.store.load_run(uid).run, store, LogTalk())
    following.to_the_end()
    problem = "problem the database cannot be reached: gone; the cluster goes on, trying again"
    assert capsys.readouterr().out.splitlines() == [problem] * times

"""The wall clock may jump, by hours and in either direction: limits and deadlines are not of that clock."""

import itertools
import time

import pytest

from perftrack.model import Method, Status
from perftrack.pool.card import Card, CardSetup
from perftrack.pool.child_process import Limits
from perftrack.pool.lease import Finished, Lease, Lost

pytestmark = pytest.mark.fault


@pytest.fixture
def jumping_clock(monkeypatch):
    """Each look at the wall clock finds it half a day ahead, then half a day behind."""
    real, jumps = time.time_ns, itertools.cycle((43_200 * 10**9, -43_200 * 10**9))
    monkeypatch.setattr(time, "time_ns", lambda: real() + next(jumps))
    monkeypatch.setattr(time, "time", lambda: time.time_ns() / 1e9)


def test_a_jump_of_the_clock_neither_ends_a_job_nor_spares_one_that_hangs(
    jumping_clock, fake_child, make_job, tmp_path
):
    limits = Limits(start_s=20, silence_s=2, case_s=20, exit_s=5, reap_s=10)
    card = Card(CardSetup(backend="cpu", cores=1, scratch=str(tmp_path), child=fake_child, limits=limits))
    jobs = (make_job("slow", seconds=0.2), make_job("hang"), make_job("fine"))
    lease = Lease(backend="cpu", suite_paths=(), method=Method(), seed=0, round=1, jobs=jobs, device_uuid="CPU-0")
    events = list(card.run(lease))
    finished = {event.result.case_key: event.result.status for event in events if isinstance(event, Finished)}
    assert finished == {"slow[seconds=0.2]": Status.OK, "fine[]": Status.OK}
    (lost,) = (event for event in events if isinstance(event, Lost))
    assert (lost.ending.kind, lost.jobs[0].case.benchmark) == ("time-out", "hang")
    assert 0.5 < lost.wall_s < 20

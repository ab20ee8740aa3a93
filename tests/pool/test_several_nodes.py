"""Nodes that are lost, silent, new or different while a pool works: real raylets, real signals."""

import os
import re
import signal
import time
from pathlib import Path
from threading import Thread

import pytest
from several_nodes import several_nodes

from perftrack.model import JobResult, Status
from perftrack.pool.client import Pool
from perftrack.pool.talk import Joined, Note, Progress

pytestmark = [pytest.mark.fault, pytest.mark.xdist_group("nodes"), pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def nodes(cache_home):
    with several_nodes({**os.environ, "XDG_CACHE_HOME": cache_home}, ("a", "b")) as nodes:
        yield nodes


@pytest.fixture
def pool(nodes, fake_child, monkeypatch):
    """Of a cluster that has nodes a and b, whatever an earlier test did to them."""
    for name in ("a", "b"):
        if name not in nodes.joined:
            nodes.add(name)
    for name, value in nodes.environment.items():
        if name.startswith("RAY_"):
            monkeypatch.setenv(name, value)
    with Pool(
        address=nodes.address,
        want="cpu",
        trees={},
        suite_paths=(),
        methods={},
        seed=7,
        case_timeout_s=600,  # a node may take its time to join
        child=fake_child,
    ) as pool:
        yield pool


def run(pool, jobs, when):
    """Everything a run says; `when(event)` may do something to the cluster."""
    events = []
    for event in pool.run(jobs):
        events.append(event)
        when(event)
    return events


def results(events):
    return [event for event in events if isinstance(event, JobResult)]


def attempts(events):
    """(status, device) of each attempt, by job."""
    found = {}
    for one in results(events):
        found.setdefault((one.case_key, one.round), []).append((one.status, one.device_uuid))
    return found


def notes(events):
    return [event.text for event in events if isinstance(event, Note)]


def once(condition, do):
    """Do something at the first event that fits."""
    done = []

    def look(event):
        if not done and condition(event):
            done.append(True)
            do()

    return look


def at_work(event, uuid=""):
    """A device has begun a job: this one or, where there may be more devices than jobs, any."""
    return isinstance(event, Progress) and event.what == "time" and event.device_uuid.endswith(uuid)


def test_a_node_that_is_added_is_used_and_one_that_differs_is_not(nodes, pool, make_job, tmp_path):
    """The nodes there were have no time before the new one has done its job."""
    assert {report.device.uuid for report in pool.devices()} == {"CPU-a", "CPU-b"}

    def add():
        nodes.add("other", NVIDIA_FAKE_CUPY="13.6")
        nodes.add("c")

    path = str(tmp_path / "done")
    jobs = [make_job("until", path=path, i=i) for i in range(2)]
    events = run(pool, [*jobs, make_job("touches", round_=2, path=path)], once(at_work, add))
    nodes.kill("other")
    assert {status for tries in attempts(events).values() for status, _ in tries} == {Status.OK}, notes(events)
    assert sorted(one.device_uuid for one in results(events)) == ["CPU-a", "CPU-b", "CPU-c"]
    assert [event.report.device.uuid for event in events if isinstance(event, Joined)] == ["CPU-c"]
    (left_out,) = notes(events)
    assert left_out.endswith("is left out: its software differs (cupy 13.6 instead of 14.2)")


def test_a_new_node_that_cannot_name_its_device_is_named_itself(nodes, pool, make_job, tmp_path):
    path = str(tmp_path / "said")
    jobs = [make_job("until", path=path, i=i) for i in range(3)]
    joins = once(at_work, lambda: nodes.add("dumb", NVIDIA_FAKE_DUMB="1"))
    says = once(lambda event: isinstance(event, Note) and "cannot name" in event.text, (tmp_path / "said").touch)
    events = run(pool, jobs, lambda event: (joins(event), says(event)))
    nodes.kill("dumb")
    assert {status for tries in attempts(events).values() for status, _ in tries} == {Status.OK}
    (left_out,) = [note for note in notes(events) if "cannot name" in note]
    assert re.fullmatch(r"a cpu device of node \S+ is left out: a worker on .* cannot name its device: .*", left_out)


def test_a_new_node_that_says_nothing_is_not_waited_for_once_all_is_done(nodes, pool, make_job, tmp_path):
    """Until it had been given up, which would be a note."""
    asked, path = tmp_path / "asked", str(tmp_path / "done")
    jobs = [make_job("until", path=path, i=i) for i in range(2)]

    def add():
        nodes.add("mute", NVIDIA_FAKE_HANGS=str(asked))
        while not asked.exists():
            time.sleep(0.05)
        Path(path).touch()

    events = run(pool, jobs, once(at_work, lambda: Thread(target=add).start()))
    nodes.kill("mute")
    assert {status for tries in attempts(events).values() for status, _ in tries} == {Status.OK}
    assert [note for note in notes(events) if note.startswith("a cpu device")] == []


@pytest.mark.parametrize("how", ["killed", "silent"])
def test_a_node_that_is_lost_costs_the_job_at_hand_and_nobody_is_blamed(nodes, pool, make_job, how):
    victim = "a" if how == "killed" else "b"

    def lose():
        if how == "killed":
            nodes.kill(victim)
        else:
            nodes.signal(victim, signal.SIGSTOP)

    jobs = [make_job("slow", seconds=1, i=i) for i in range(8)]
    events = run(pool, jobs, once(lambda event: at_work(event, f"CPU-{victim}"), lose))
    found = attempts(events)
    assert {tries[-1][0] for tries in found.values()} == {Status.OK}, (notes(events), results(events))
    assert len(found) == len(jobs)
    again = [tries for tries in found.values() if len(tries) > 1]
    assert {tries[0] for tries in again} <= {(Status.INFRA, f"CPU-{victim}")}
    assert all(len(tries) == 2 for tries in again)
    assert any("is gone, and with it device" in note for note in notes(events)), notes(events)
    if how == "silent":
        nodes.kill(victim)

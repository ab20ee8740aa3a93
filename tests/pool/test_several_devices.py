"""Two cards of one class in a real Ray cluster: who measures what, and what becomes of a card that is not well."""

import os
import signal
from collections import defaultdict

import msgspec
import pytest
from test_pool import make_pool

from perftrack.errors import PoolError
from perftrack.model import JobResult, Status
from perftrack.pipeline import plan
from perftrack.pipeline.plan import Pair
from perftrack.pool.client import Note

pytestmark = pytest.mark.fault


@pytest.fixture
def pool(joined, fake_child):
    with make_pool(fake_child, address=joined, want="FakeGPU-*") as pool:
        assert {report.device.uuid for report in pool.devices() if not report.problem} == {"GPU-0", "GPU-1"}
        yield pool


@pytest.mark.parametrize("want", ["cpu", "cpu-fake-2c", "CPU-*"])
def test_the_class_of_a_cpu_is_found_beside_gpus(joined, fake_child, want):
    with make_pool(fake_child, address=joined, want=want) as pool:
        assert {report.device.device_class for report in pool.devices()} == {"cpu-fake-2c"}


def run(pool, jobs):
    """Results by benchmark, in order, and the notes."""
    results, notes = defaultdict(list), []
    for event in pool.run(jobs):
        if isinstance(event, JobResult):
            results[event.case_key.split("[")[0]].append(event)
        elif isinstance(event, Note):
            notes.append(event.text)
    return results, notes


def last_attempts(results):
    """Status and device of the attempt that counts, by case and round."""
    return {
        (one.case_key, one.round): (one.status, one.device_uuid) for one in sorted(results, key=lambda one: one.attempt)
    }


def test_both_cards_work_and_each_case_stays_on_one_unless_told_otherwise(pool, make_job):
    devices = defaultdict(list)
    for round_ in (1, 2):
        jobs = [make_job("slow", backend="cuda", seconds=0.2 + i / 1000, round_=round_) for i in range(4)]
        results, _ = run(pool, jobs)
        for one in results["slow"]:
            devices[one.case_key].append(one.device_uuid)
    assert sorted(map(tuple, devices.values())) == [("GPU-0", "GPU-0")] * 2 + [("GPU-1", "GPU-1")] * 2
    longest = [
        msgspec.structs.replace(make_job("fine", backend="cuda", i=i), expected_s=9 if i else 30) for i in range(4)
    ]
    results, _ = run(pool, longest)
    alone = {one.device_uuid for one in results["fine"] if one.case_key == "fine[i=0]"}
    assert alone.isdisjoint(one.device_uuid for one in results["fine"] if one.case_key != "fine[i=0]")
    wanted = [msgspec.structs.replace(job, prefer="GPU-1", round=3) for job in jobs]
    results, _ = run(pool, wanted)
    assert {one.device_uuid for one in results["slow"]} == {"GPU-1"}


def test_cards_of_two_classes_work_at_once_each_on_what_is_meant_for_it(joined, fake_child, make_job, tmp_path):
    """Each waits for the other, in both directions."""
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    asked = {
        "FakeGPU-1G": [("until", first), ("touches", second)],
        "FakeGPU-2G": [("touches", first), ("until", second)],
    }
    jobs = [
        make_job(what, suite=name, backend="cuda", device_class=name, path=path)
        for name, pairs in asked.items()
        for what, path in pairs
    ]
    with make_pool((*fake_child, "two-classes"), address=joined, want="") as pool:
        ended = [event for event in pool.run(jobs) if isinstance(event, JobResult)]
    assert {one.status for one in ended} == {Status.OK}, ended
    found = sorted((one.device_class, one.suite, one.device_uuid) for one in ended)
    assert found == [("FakeGPU-1G", "FakeGPU-1G", "GPU-0")] * 2 + [("FakeGPU-2G", "FakeGPU-2G", "GPU-1")] * 2


def test_a_card_on_which_most_cases_are_disturbed_is_left_and_they_are_measured_on_the_other(pool, make_job):
    jobs = [make_job("disturbed", backend="cuda", i=i) for i in range(8)]
    results, notes = run(pool, jobs)
    assert set(last_attempts(results["disturbed"]).values()) == {(Status.OK, "GPU-1")}
    disturbed = [one for one in results["disturbed"] if one.status is Status.UNSTABLE]
    assert {(one.device_uuid, one.attempt) for one in disturbed} == {("GPU-0", 1)}
    many = len(disturbed)
    (note,) = notes
    assert note.startswith(f"device GPU-0 (FakeGPU-1G) is not used any more: {many} of {many} cases were disturbed")
    assert note.endswith("they are measured again on another one")
    results, _ = run(pool, [make_job("fine", backend="cuda", i=i) for i in range(4)])
    assert {one.device_uuid for one in results["fine"]} == {"GPU-1"}, "it stays left out"


def test_a_card_whose_canary_is_off_its_index_is_left_and_its_cases_are_measured_on_the_other(pool, make_job):
    """The other one has to have done three cases."""

    def jobs(round_, card):
        made = [make_job("copies", backend="cuda", i=i, round_=round_) for i in range(4)]
        return [msgspec.structs.replace(job, prefer=card) for job in made]

    run(pool, jobs(1, "GPU-1"))
    results, notes = run(pool, jobs(2, "GPU-0"))
    assert [one.device_uuid for one in results["copies"]] == ["GPU-0"] * 4 + ["GPU-1"] * 4
    assert last_attempts(results["copies"]) == {
        (one.case_key, 2): (Status.OK, "GPU-1") for one in results["copies"] if one.attempt == 2
    }
    (left,) = notes
    assert left.startswith("device GPU-0 (FakeGPU-1G) is not used any more: 4 of 4 cases were disturbed (")
    assert "canary more than 3 % slower" in left


def test_a_card_that_somebody_else_takes_is_left_and_nothing_is_lost(pool, make_job):
    jobs = [make_job("intruded", backend="cuda", i=i) for i in range(8)]
    results, notes = run(pool, jobs)
    assert set(last_attempts(results["intruded"]).values()) == {(Status.OK, "GPU-1")}
    assert {one.status for one in results["intruded"] if one.device_uuid == "GPU-0"} == {Status.INFRA}
    assert [note.partition(":")[0] for note in notes] == ["device GPU-0 (FakeGPU-1G) is not used any more"]


def test_the_jobs_of_a_card_whose_worker_is_killed_are_done(pool, make_job):
    jobs = [make_job("fine", backend="cuda", i=i, round_=round_) for round_ in (1, 2) for i in range(6)]
    # whether it comes to GPU-0 by itself depends on which card was first to say its name
    jobs.insert(0, msgspec.structs.replace(make_job("kills_one_card", backend="cuda"), prefer="GPU-0"))
    results, notes = run(pool, jobs)
    assert last_attempts(results["kills_one_card"]) == {("kills_one_card[]", 1): (Status.OK, "GPU-1")}
    finals = last_attempts(results["fine"])
    assert len(finals) == 12
    assert {status for status, _ in finals.values()} == {Status.OK}
    assert len(notes) == 1
    assert notes[0].startswith("the worker of device GPU-0 (FakeGPU-1G) was lost (ActorDiedError)")


def card_of(pool, uuid):
    (report,) = [report for report in pool.devices() if report.device.uuid == uuid]
    return report.environment.entries["card"]


def test_a_card_that_is_lost_before_the_first_job_is_left_and_nothing_is_lost(pool, make_job):
    os.kill(card_of(pool, "GPU-0"), signal.SIGKILL)
    results, notes = run(pool, [make_job("fine", backend="cuda", i=i) for i in range(4)])
    assert [(one.status, one.attempt, one.device_uuid) for one in results["fine"]] == [(Status.OK, 1, "GPU-1")] * 4
    (note,) = notes
    assert note.startswith("device GPU-0 (FakeGPU-1G) on ")
    assert note.endswith(" is left out: it was lost while it unpacked the trees (ActorDiedError)")


def test_where_all_cards_are_lost_before_the_first_job_each_is_named(pool, make_job):
    for uuid in ("GPU-0", "GPU-1"):
        os.kill(card_of(pool, uuid), signal.SIGKILL)
    with pytest.raises(PoolError, match=r"^no device can measure: device GPU-\d .* is left out: .*; device GPU-\d .*"):
        run(pool, [make_job("fine", backend="cuda")])


def test_rounds_of_one_case_go_to_all_cards_in_turn(pool, make_job):
    """As `perftrack bisect --parallel` asks."""
    job = make_job("fine", backend="cuda", i=9)
    pair = Pair(job.device_class, job.case, None)
    devices = [report.device for report in pool.devices() if not report.problem]
    turns = plan.other_devices_first([pair], devices, {})
    results, _ = run(pool, plan.jobs([pair], range(1, 5), set(), turns))
    by_round = {one.round: one for one in results["fine"]}
    assert [by_round[number].device_uuid for number in range(1, 5)] == turns[pair.identity] * 2

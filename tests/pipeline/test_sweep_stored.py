"""Sweeps over several device classes: which commits are measured, and what the next sweep does with the rest.

Real git, a real database, real trees; the devices are made up.
"""

import re
import signal

import msgspec
import pytest
from sweep_builders import B200, CPU, H200, SUITE, Cards, Head, Quiet

from perftrack.errors import PoolError, StoreError, UsageError
from perftrack.model import Run, RunOptions, Status, SweepPart
from perftrack.pipeline import execution, inside, outside
from perftrack.pipeline import submit as submissions
from perftrack.pipeline import sweep as sweeps
from perftrack.pipeline.parcel import ENDED, Ended
from perftrack.report.sweep import text

PYPROJECT = """
[tool.perftrack]
rounds = 1
[tool.perftrack.sweeps.nightly]
devices = ["NVIDIA-H200*", "NVIDIA-B200*"]
"""


class World:
    """A repository with a sweep, and what is done in it."""

    def __init__(self, repo, store, url, cards):
        self.repo, self.store, self.url, self.cards = repo, store, url, cards
        repo.write({"suites/one.py": SUITE.replace("NAME", "add"), "suites/two.py": SUITE.replace("NAME", "sub")})
        self.first = repo.commit("first", {"pyproject.toml": PYPROJECT})
        self.talk = Quiet()

    def sweep(self, **more):
        request = sweeps.Request(start=self.repo.root, database=self.url, **more)
        return sweeps.sweep(request, self.talk)

    def submit(self, **more):
        request = submissions.Request(start=self.repo.root, database=self.url, base="none", **more)
        return submissions.submit(request, self.talk)

    def cancel(self):
        """For a card: the run at hand is cancelled; the time until anybody looks is over."""
        (run,) = [one.run for one in self.store.runs(repo=self.repo.root.name) if one.run.state == "running"]
        self.store.interrupt(run.uid, 1)
        return Status.OK

    def runs(self):
        return [entry.run for entry in self.store.runs(repo=self.repo.root.name)]


def outcomes(report):
    return [(one.subject, one.device, one.outcome) for one in report.commits]


@pytest.fixture
def cards(monkeypatch):
    made = Cards()
    monkeypatch.setattr(execution, "Pool", made.pool)
    monkeypatch.setattr(execution, "_ASK_S", 0.0)
    return made


@pytest.fixture
def world(make_repo, request, database, cards, cache_home, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", cache_home)
    store, path = database
    return World(make_repo(request.node.name), store, f"sqlite:///{path}", cards)


@pytest.fixture
def head(tmp_path, world, monkeypatch):
    """A dashboard whose jobs reach the same database."""
    monkeypatch.setenv("PERFTRACK_DB", world.url)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(signal, "signal", lambda *_: None)

    def make(*, at_once):
        made = Head(tmp_path, at_once=at_once)
        for module in (outside, sweeps):
            monkeypatch.setattr(module, "Jobs", lambda _: made)
        return made

    return make


EACH = ("NVIDIA-H200*", "NVIDIA-B200*")


def test_a_class_that_another_run_measured_does_not_stand_for_the_other(world):
    world.submit(head=world.first, device="NVIDIA-H200*")
    report = world.sweep()
    assert outcomes(report) == [("first", EACH[0], "stored"), ("first", EACH[1], "measured")]
    assert world.cards.jobs == [H200, H200, B200, B200]
    assert report.exit_code == 0


def test_what_a_cpu_measured_does_not_stand_for_a_gpu_that_nobody_named(world):
    world.submit(head=world.first, device="cpu")
    world.repo.write({"pyproject.toml": "[tool.perftrack]\nrounds = 1\n"})
    assert outcomes(world.sweep()) == [("first", "", "measured")]
    assert world.cards.jobs == [CPU, CPU, H200, H200, B200, B200]


def test_what_uncommitted_changes_measured_does_not_stand_for_their_commit(world):
    world.repo.write({"suites/one.py": SUITE.replace("NAME", "add") + "\n"})
    for device in EACH:
        world.submit(device=device)
    assert outcomes(world.sweep()) == [("first", device, "measured") for device in EACH]


def test_a_commit_that_is_half_done_is_owed_on_the_other_class(world):
    world.cards.become[B200] = world.cancel
    report = world.sweep()
    assert outcomes(report) == [("first", EACH[0], "measured"), ("first", EACH[1], "stopped")]
    assert report.exit_code == 4
    world.cards.become[B200] = Status.OK
    report = world.sweep()
    assert outcomes(report) == [("first", EACH[0], "stored"), ("first", EACH[1], "measured")]
    assert world.cards.jobs == [H200, H200, B200, B200], "the job that was done before the end is not repeated"
    assert world.sweep().commits == ()


def test_a_commit_that_is_half_done_is_a_gap(world):
    world.sweep(device=EACH[0])
    world.repo.commit("second")
    report = world.sweep(fill_gaps=True)
    assert {one.subject for one in report.commits} == {"first", "second"}
    assert [one.outcome for one in report.commits if one.subject == "first"] == ["stored", "measured"]


def test_a_submission_of_something_else_leaves_a_commit_owed(world):
    second = world.repo.commit("second")
    world.cards.become[H200] = world.cancel
    report = world.sweep(steps=2, device=EACH[0])
    assert [one.outcome for one in report.commits] == ["stopped", "left"]
    world.cards.become[H200] = Status.OK
    world.submit(head=world.first, device="cpu")
    world.submit(head=world.first, device=EACH[0], suites=("one",))
    world.submit(head=world.first, device=EACH[0], quick=True)
    report = world.sweep(device=EACH[0])
    assert outcomes(report) == [("second", EACH[0], "measured"), ("first", EACH[0], "measured")]
    assert {run.head.sha for run in world.runs()} == {world.first, second}


def test_a_submission_of_all_of_it_leaves_nothing_owed(world):
    world.repo.commit("second")
    world.cards.become[H200] = world.cancel
    world.sweep(steps=2, device=EACH[0])
    world.cards.become[H200] = Status.OK
    world.submit(head=world.first, device=H200)
    assert outcomes(world.sweep(device=EACH[0])) == [("second", EACH[0], "measured")]
    assert world.sweep(device=EACH[0], fill_gaps=True).commits == ()


@pytest.mark.parametrize(("busy", "code"), [(None, 4), (PoolError("it is busy"), 3)])
def test_a_class_that_is_not_there_is_left_and_asked_for_once(world, busy, code):
    world.repo.commit("second")
    if busy:
        world.cards.become[H200] = busy
    else:
        del world.cards.become[H200]
    report = world.sweep(steps=2)
    assert outcomes(report) == [
        (subject, device, outcome)
        for subject in ("second", "first")
        for device, outcome in zip(EACH, ("left", "measured"), strict=True)
    ]
    why = "it is busy" if busy else "unknown device class 'NVIDIA-H200*'"
    assert {one.why for one in report.commits if one.outcome == "left"} == {why}
    assert world.cards.asked == [EACH[0], EACH[1], EACH[1]]
    assert (report.exit_code, report.problems) == (code, ("it is busy",) if busy else ())
    assert ("problem it is busy" in text(report)) is bool(busy)
    world.cards.become[H200] = Status.OK
    report = world.sweep()
    assert sorted(one.outcome for one in report.commits) == ["measured", "measured", "stored", "stored"]


def test_a_class_on_which_two_runs_in_a_row_break_off_is_left(world):
    def gone():
        raise PoolError("the head is gone")

    world.cards.become[H200] = gone
    for subject in ("second", "third"):
        world.repo.commit(subject)
    report = world.sweep(steps=3)
    assert [one.outcome for one in report.commits if one.device == EACH[0]] == ["stopped", "stopped", "left"]
    assert [one.outcome for one in report.commits if one.device == EACH[1]] == ["measured"] * 3
    assert world.cards.jobs.count(H200) == 2
    assert report.exit_code == 3


def test_where_no_class_is_there_the_error_is_the_answer(world):
    world.cards.become.clear()
    with pytest.raises(UsageError, match="unknown device class 'NVIDIA-H200"):
        world.sweep()


def test_a_store_that_fails_leaves_the_rest_and_the_table(world):
    def away():
        raise StoreError("the disk is full")

    world.cards.become[B200] = away
    world.repo.commit("second")
    report = world.sweep(steps=2)
    assert [one.outcome for one in report.commits] == ["measured", "left", "left", "left"]
    assert {one.why for one in report.commits[1:]} == {"the disk is full"}
    assert (report.exit_code, report.problems) == (3, ("the disk is full",))


def test_what_the_machine_lost_is_measured_again_and_nothing_else(world):
    lost = iter([Status.OK, Status.INFRA])
    world.cards.become[B200] = lambda: next(lost, Status.OK)
    report = world.sweep()
    assert [one.outcome for one in report.commits] == ["measured", "partial"]
    assert report.exit_code == 4
    assert report.commits[1].lacking == ("two: sub[n=1] infra: lost",)
    report = world.sweep()
    assert [one.outcome for one in report.commits] == ["stored", "measured"]
    assert report.exit_code == 0
    assert world.cards.jobs == [H200, H200, B200, B200, B200]
    assert world.sweep().commits == ()


def test_what_is_lost_each_time_is_tried_three_times(world):
    world.cards.become[H200] = Status.UNSTABLE
    seen = [world.sweep(device=EACH[0]) for _ in range(4)]
    assert [[one.outcome for one in report.commits] for report in seen] == [["partial"], ["partial"], ["measured"], []]
    assert [report.exit_code for report in seen] == [4, 4, 0, 0]


def test_a_run_that_is_stopped_at_the_head_is_not_impossible(world, head):
    head(at_once=True)
    world.repo.commit("second")
    world.cards.become[H200] = world.cancel
    report = world.sweep(steps=2, device=EACH[0], address=Head.address)
    assert [one.outcome for one in report.commits] == ["stopped", "left"]
    assert "was cancelled" in report.commits[0].why
    world.cards.become[H200] = Status.OK
    report = world.sweep(device=EACH[0], address=Head.address)
    assert [one.outcome for one in report.commits] == ["measured", "measured"]
    assert [run.state for run in world.runs()] == ["complete", "complete"]
    assert world.cards.jobs == [H200] * 4


def test_two_sweeps_that_leave_the_same_commits_to_a_cluster_measure_them_once(world, head):
    made = head(at_once=False)
    world.repo.commit("second")
    reports = [world.sweep(steps=2, detach=True, address=Head.address) for _ in range(2)]
    first, second = ([one.run for one in report.commits] for report in reports)
    assert len(set(first)) == 4
    assert first == second
    logs = made.work()
    assert sorted(world.cards.jobs) == [B200] * 4 + [H200] * 4
    assert len(re.findall("^stored ", logs[1], re.MULTILINE)) == 4
    assert {run.uid for run in world.runs()} == set(first)
    assert ended(logs[1]) == Ended(code=0)


@pytest.mark.parametrize(("state", "jobs"), [("interrupted", 2), ("complete", 0)])
def test_a_run_that_another_process_begins_while_a_job_prepares_it_is_that_ones(world, head, monkeypatch, state, jobs):
    """It has its own seed, and the job measures what it left."""
    made, collect = head(at_once=False), inside.collect
    report = world.sweep(device=EACH[0], detach=True, address=Head.address)

    def prepare(head, *trees):
        (planned,) = report.commits
        options = RunOptions(device=EACH[0], rounds=1, seed=5, sweep=SweepPart(name="nightly", commits=(head.sha,)))
        other = Run(
            uid=planned.run,
            repo=world.repo.root.name,
            head=head,
            base=None,
            base_note="",
            options=options,
            started_us=1,
        )
        world.store.begin_run(other)
        world.store.finish_run(other.uid, state=state, finished_us=2, summaries=[], findings=[])
        return collect(head, *trees)

    monkeypatch.setattr(inside, "collect", prepare)
    (log,) = made.work()
    assert ended(log) == Ended(code=0)
    assert len(world.cards.jobs) == jobs
    assert [(run.state, run.options.seed, run.started_us) for run in world.runs()] == [("complete", 5, 1)]


def test_a_job_at_the_head_goes_on_where_another_one_measures_and_where_a_class_is_not_there(world, head):
    made = head(at_once=False)
    world.repo.commit("second")
    report = world.sweep(steps=2, detach=True, address=Head.address)
    del world.cards.become[H200]
    with world.store.own(report.commits[1].run):
        (log,) = made.work()
    assert "is being measured by another process" in log
    assert world.cards.asked == [EACH[0], EACH[1]], "the class that is not there is not asked for again"
    assert world.cards.jobs == [B200, B200]
    assert ended(log) == Ended(code=4, text="2 of 4 runs are left for the next sweep")


def test_a_job_at_the_head_ends_with_a_run_that_is_cancelled(world, head):
    made = head(at_once=False)
    world.repo.commit("second")
    world.sweep(steps=2, detach=True, address=Head.address)
    world.cards.become[H200] = world.cancel
    (log,) = made.work()
    assert world.cards.jobs == [H200]
    assert (ended(log).code, ended(log).stopped) == (4, True)


def test_a_cluster_knows_what_was_measured_since_it_was_sent_its_work(world, head):
    made = head(at_once=False)
    world.sweep(detach=True, address=Head.address)
    world.submit(head=world.first, device=H200, suites=("one",))
    made.work()
    assert sorted(world.cards.jobs) == [B200, B200, H200, H200], "of the first class only what was left"


def ended(log):
    (line,) = [line for line in log.splitlines() if line.startswith(ENDED)]
    return msgspec.json.decode(line.removeprefix(ENDED), type=Ended)

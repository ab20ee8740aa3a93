"""What goes to a cluster from outside, and what is taken up of it from the store: real git, a real database."""

import json
import signal
from importlib.metadata import version

import msgspec
import pytest
from life_builders import ADD, CLASS, case, finding, timed

from perftrack import __version__
from perftrack.errors import UsageError
from perftrack.model import Method, Run, RunOptions
from perftrack.pipeline import inside, parcel
from perftrack.pipeline.execution import Execution
from perftrack.pipeline.inside import LogTalk
from perftrack.pipeline.past import History
from perftrack.pipeline.trees import Trees

NAME = ("elementwise", ADD, CLASS, "fused")


class Declared(msgspec.Struct):
    """Of a tree that declares one case."""

    cases: list
    problems: dict = {}


@pytest.fixture
def job(tmp_path, monkeypatch):
    """Folder in which a job of a cluster without a database begins."""
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PERFTRACK_DB", raising=False)
    yield tmp_path
    signal.signal(signal.SIGTERM, before)


def execution(world, head, base, scratch, **more):
    run = Run(
        uid="e" * 32, repo="repo", head=head, base=base, base_note="parent", started_us=1,
        options=RunOptions(methods={"cuda": Method()}, rounds=2),
    )  # fmt: skip
    declared = Declared([msgspec.structs.replace(case(ADD), variants=("unfused", "fused"))])
    archives = {"head": world.git.export(head, scratch), "base": world.git.export(base, scratch)}
    trees = Trees(head, base, "parent", archives, {"head": declared, "base": declared})
    return Execution(run, trees, world.store, LogTalk(), **more)


def test_a_parcel_has_what_the_cluster_needs_and_cannot_ask_for(world, tmp_path):
    head, base = world.revision(world.commit("head")), world.revision(world.base)
    suspected = [finding(message="why")]
    one = execution(world, head, base, tmp_path, suspected=suspected, alpha=0.005, spread=True)
    one.history = History(world.store, one.run, world.git.line)
    folder = tmp_path / "parcel"
    folder.mkdir()
    parcel.pack(folder, [one], 12.0)
    read = parcel.unpack(folder)
    (item,) = read.items
    assert read.seconds == 12.0
    assert (item.run, item.suspected, item.alpha, item.spread) == (one.run, suspected, 0.005, True)
    assert sorted([head.sha, base.sha]) == item.line
    for side, archive in item.archives.items():
        assert (folder / archive.path).read_bytes() == (tmp_path / one.trees.archives[side].path).read_bytes()


def test_a_run_without_a_history_ships_no_line(world, tmp_path):
    base = world.revision(world.base)
    one = execution(world, base, base, tmp_path)
    parcel.pack(tmp_path, [one], None)
    assert parcel.unpack(tmp_path).items[0].line is None


@pytest.mark.fault
def test_a_parcel_of_another_perftrack_is_refused_whatever_its_fields_are(job, capsys):
    """As the job does it, whose last line is what the other side says."""
    versions = {"perftrack": "0.0.1", "ray": "2.9", "python": "3.11.9"}
    (job / parcel.NAME).write_text(json.dumps({"versions": versions, "items": [{"new": 1}], "more": 2}))
    assert inside.main() == 2
    ended = msgspec.json.decode(capsys.readouterr().out.removeprefix(parcel.ENDED), type=parcel.Ended)
    there = f"{__version__} at the head: install the same version on both"
    assert ended.text == f"perftrack is 0.0.1 where the run was submitted and {there}"


@pytest.mark.fault
def test_a_parcel_of_the_same_version_with_other_fields_is_refused(tmp_path):
    versions = {"perftrack": __version__, "ray": "2.9", "python": "3.11.9"}
    (tmp_path / parcel.NAME).write_text(json.dumps({"versions": versions, "items": [{"new": 1}]}))
    with pytest.raises(UsageError, match=r"is not the one at the head .* install it from the same source on both"):
        parcel.unpack(tmp_path)


@pytest.mark.fault
def test_another_ray_is_said_and_the_run_goes_on(world, job, capsys):
    """It ends here for want of a database."""
    base = world.revision(world.base)
    parcel.pack(job, [execution(world, base, base, job)], None)
    packed = json.loads((job / parcel.NAME).read_text())
    packed["versions"]["ray"] = "2.9"
    (job / parcel.NAME).write_text(json.dumps(packed))
    assert inside.main() == 3
    differs, ended = capsys.readouterr().out.splitlines()
    assert differs == f"differs ray 2.9 here and {version('ray')} at the head"
    assert "the cluster has no PERFTRACK_DB in its environment" in ended


def test_what_the_cluster_stored_is_taken_up_with_what_the_history_says_of_it(world, tmp_path):
    for number in range(8):
        sha = world.commit(f"commit {number}")
        world.judge(sha, None, timed(10 + 0.01 * (number % 3), 10 + 0.01 * (number % 2)))
    head = world.commit("slower")
    found = timed(10, 10.9)
    world.judge(head, None, found, uid="e" * 32)
    made = world.revision(head)
    one = execution(world, made, world.revision(made.parent), tmp_path)
    one.history = History(world.store, one.run, world.git.line)
    one.recall()
    assert one.findings == [found]
    assert [device.device_class for device in one.devices] == [CLASS]
    assert {summary.side for summary in one.summaries} == {"head", "base"}
    assert (one.told[NAME].triage.reading, one.told[NAME].commits) == ("higher", 9), "their base is the ninth"

"""`perftrack demo`: a made-up history that has everything to look at, says that it is one, and keeps to itself."""

import shutil
import subprocess

import pytest

from perftrack.errors import UsageError
from perftrack.judge.life import State
from perftrack.model import Revision, Run, RunOptions, Verdict
from perftrack.pipeline import demo, life, reports
from perftrack.store import Store
from perftrack.web.page import Query
from perftrack.web.publish import publish
from perftrack.web.status import status


@pytest.fixture
def store(demo_db, tmp_path):
    shutil.copy(demo_db, tmp_path / "demo.db")
    with Store.open(str(tmp_path / "demo.db")) as opened:
        yield opened


@pytest.fixture(scope="module")
def told(demo_db):
    """(first-parent position, finding) of what any run says beside `same`."""
    with Store.open(str(demo_db)) as opened:
        return [
            (stored.run.head.position, one)
            for entry in opened.runs()
            for stored in [opened.load_run(entry.run.uid)]
            for one in stored.findings
            if one.verdict is not Verdict.SAME
        ]


def benchmarks(told, verdict):
    return {(position, one.case_key.partition("[")[0]) for position, one in told if one.verdict is verdict}


def test_what_it_planted_is_what_the_rules_find(store, told):
    said = {
        (row.found_subject, one.case.partition("[")[0], row.device_class, row.state)
        for row in life.rows(store, everything=True)
        for one in row.cases
    }
    large, small = "synthetic-large-141G", "synthetic-small-24G"
    assert said == {
        ("softmax: one block a row", "softmax", large, State.FIXED),
        ("adamw: keep the moments in float32", "adamw", large, State.ACKNOWLEDGED),
        ("layer_norm: two rows a block", "layer_norm", large, State.FIXED),
        ("rms_norm: unroll by 8", "residual_rms_norm", small, State.OPEN),
        ("rms_norm: wide tile", "residual_rms_norm", large, State.OPEN),
    }
    assert benchmarks(told, Verdict.FAILED) == {(position, "layer_norm") for position in (45, 46, 47)}
    assert benchmarks(told, Verdict.FASTER) == {(26, "softmax"), (40, "add_mul_relu")}


def test_what_still_fails_is_not_called_good(store):
    shown = status(store, Query({"last": "60"})).data
    words = {(line.head_subject, cell.device_class): cell.word for line in shown.runs for cell in line.cells}
    large = "synthetic-large-141G"
    assert words["layer_norm: two rows a block", large] == "red"
    assert words["synthetic commit 47", large] == words["synthetic commit 48", large] == "failing"
    assert words["revert: layer_norm: two rows a block", large] == "good"


def test_the_creep_is_in_no_verdict_and_in_the_history(store, told):
    case = "layer_norm[cols=4096,dtype=float16,rows=8192]"
    (series,) = reports.histories_of(store, case, device="synthetic-small*", variant="fused", last=200)
    assert 1.08 < series.points[-1].time_s / series.points[0].time_s < 1.14
    assert benchmarks(told, Verdict.SLOWER) == {
        (13, "softmax"), (32, "adamw"), (49, "residual_rms_norm"), (59, "residual_rms_norm")
    }  # fmt: skip


def test_nobody_takes_it_for_measured(store, tmp_path):
    made = reports.report_of(store, store.find_run("latest"))
    assert made.verdict == "RED"
    assert made.exit_code == 1
    assert {device.device_class.split("-")[0] for device in made.devices} == {"synthetic"}
    assert {entry.run.repo for entry in store.runs()} == {"synthetic-demo"}
    assert {use.device.name.split()[0] for use in store.devices()} == {"synthetic"}
    publish(store, tmp_path / "site", runs=1, say=print)
    pages = {path: path.read_text("utf-8") for path in (tmp_path / "site").rglob("*.html")}
    assert {path.parent.name for path, page in pages.items() if "synthetic-" in page} == {
        "site", "case", "commit", "compare", "fusion", "regressions", "roofline", "run", "runs"
    }  # fmt: skip
    assert [path.name for path, page in pages.items() if "µs" in page and "synthetic-" not in page] == []
    cases = [page for path, page in pages.items() if path.parent.name == "case" and path.name.startswith("adamw")]
    assert cases
    assert all("60 of 60 revisions measured." in page for page in cases), "each also as the base of the next"


def test_again_adds_nothing_and_takes_up_what_was_interrupted(store):
    whole = store.load_run(store.find_run("latest"))
    assert demo.fill(store) == 0
    store.finish_run(whole.run.uid, state="interrupted", finished_us=1, summaries=(), findings=())
    assert demo.fill(store) == 1
    assert store.load_run(whole.run.uid) == whole
    assert len(store.regressions()) == 5


def test_a_database_with_anything_else_is_left_alone(tmp_path):
    with Store.open(str(tmp_path / "perf.db")) as store:
        head = Revision(
            sha="a" * 40, tree="b" * 40, dirty=False, parent=None, position=0, committed_us=1, subject="first"
        )
        store.begin_run(
            Run(uid="c" * 32, repo="mine", head=head, base=None, base_note="", options=RunOptions(), started_us=1)
        )
        with pytest.raises(UsageError, match=r"has results of mine \(run cccccccc\).* --db demo\.db"):
            demo.fill(store)
        assert [entry.run.repo for entry in store.runs()] == ["mine"]


@pytest.mark.parametrize(
    "words", [["submit"], ["sweep", "--steps", "1"], ["bisect", "a", "HEAD~1..HEAD"], ["import", "x.json"]]
)
def test_what_is_measured_never_joins_it(command, demo_db, repo, alone, words):
    files = {"pyproject.toml": '[tool.perftrack]\nsuites = ["bench"]\n', "bench/__init__.py": "", "x.json": "{}"}
    repo.commit("first", files)
    repo.commit("second")
    done = subprocess.run(
        [command, *words, "--db", str(demo_db)],
        cwd=repo.root,
        env=alone,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2
    assert "holds the made-up history of `perftrack demo`, which no results join: name another database" in done.stderr


def test_a_database_has_to_be_named(command, tmp_path, alone):
    environment = {key: value for key, value in alone.items() if key != "PERFTRACK_DB"}
    done = subprocess.run(
        [command, "demo"],
        cwd=tmp_path,
        env=environment | {"XDG_DATA_HOME": str(tmp_path / "data")},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "perftrack: the demo needs a database of its own: perftrack demo --db demo.db\n"
    assert not list(tmp_path.rglob("*.db"))

"""`perftrack judge --replay`: what the rules would have told of a stored history, and which of it was false."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from perftrack.cli.app import app
from perftrack.errors import IncompleteError, UsageError
from perftrack.judge.life import CaseId, Kind, Mark, State
from perftrack.judge.sightings import Seen
from perftrack.judge.value import Finding, Interval, Summary
from perftrack.model import (
    Case,
    Device,
    Environment,
    JobResult,
    Measurement,
    Method,
    Revision,
    Run,
    RunOptions,
    Status,
    Traffic,
    Verdict,
)
from perftrack.pipeline.replays import replay_of
from perftrack.report import replay as shown
from perftrack.report.layout import Look
from perftrack.store import Store

CLASS = "NVIDIA-H200-141G"
CARD = Device(uuid="GPU-a", name="H200", backend="cuda", device_class=CLASS, node="n", memory_bytes=1)
DRIVER = Environment(entries={"driver": "580.65"})
STEP, FALSE, QUIET = "step[n=1]", "false[n=1]", "quiet[n=1]"


def revision(number):
    return Revision(
        sha=f"{number:07x}".ljust(40, "a"), tree=f"{number:040x}", dirty=False, parent=None, position=number,
        committed_us=number, subject=f"commit {number}",
    )  # fmt: skip


def case(key):
    return Case(
        suite="elementwise", benchmark=key[:4], key=key, backend="cuda", params={"n": 1},
        variants=("unfused", "fused"), traffic=Traffic(read_bytes=2, write_bytes=1), min_effect=0.02,
    )  # fmt: skip


def commit(store, number, times, findings=()):
    run = Run(
        uid=f"{number:032x}", repo="r", head=revision(number), base=revision(number - 1) if findings else None,
        base_note="", started_us=number, options=RunOptions(methods={"cuda": Method()}),
    )  # fmt: skip
    store.begin_run(run)
    for key in times:
        measured = (Measurement(side="head", variant="fused", status=Status.OK),)
        job = JobResult(
            suite="elementwise", case_key=key, device_class=CLASS, round=1, attempt=1, status=Status.OK,
            device_uuid=CARD.uuid, environment=DRIVER, measurements=measured,
        )  # fmt: skip
        store.add_job(run.uid, case(key), job, CARD)
    summaries = [
        Summary(
            suite="elementwise", case_key=key, device_class=CLASS, device_uuid=CARD.uuid,
            environment_digest=DRIVER.digest, variant="fused", side="head", status=Status.OK, time_s=seconds,
        )
        for key, seconds in times.items()
    ]  # fmt: skip
    store.finish_run(run.uid, state="complete", finished_us=number, summaries=summaries, findings=findings)
    return run.uid


def slower(key):
    return Finding(
        suite="elementwise", case_key=key, device_class=CLASS, variant="fused", verdict=Verdict.SLOWER, confirmed=True,
        change=Interval(1.2, 1.19, 1.21),
    )  # fmt: skip


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Forty commits: one case gets slower at the 20th and faster at the 32nd, one at the 25th, one never.

    Three slowdowns are remembered: the first, which is real; that of the 25th, which somebody called invalid; and one
    of the case that never changed.
    """
    path = tmp_path_factory.mktemp("replay") / "perf.db"
    noise = np.exp(0.003 * np.random.default_rng(3).standard_normal((41, 3)))
    with Store.open(str(path)) as store:
        for number in range(1, 41):
            levels = {STEP: 1.2 if 20 <= number < 32 else 1.0, FALSE: 1.1 if number >= 25 else 1.0, QUIET: 1.0}
            times = {key: 1e-5 * level * noise[number, at] for at, (key, level) in enumerate(levels.items())}
            key = {20: STEP, 24: FALSE, 36: QUIET}.get(number)
            uid = commit(store, number, times, [slower(key)] if key else [])
            if key:
                id_ = CaseId("elementwise", key, "fused")
                store.remember(
                    uid, [Seen(regression_id=None, device_class=CLASS, kind=Kind.SLOWER, case=id_, level=1.2)]
                )
            if key == FALSE:
                (one,) = store.regressions(run_uid=uid)
                store.mark(one.id, [Mark(case=id_, state=State.INVALID, reason="noise", author="Ada", at_us=number)])
    return path


@pytest.fixture
def store(path):
    with Store.open(str(path)) as opened:
        yield opened


def test_each_change_is_told_with_its_delay_and_what_was_remembered_of_it(store, tmp_path):
    report = replay_of(store, "", device="", since="", start=tmp_path)
    told = [(one.case, one.subject, one.direction, one.state) for one in report.told]
    assert told == [
        (STEP, "commit 20", 1, State.OPEN),
        (FALSE, "commit 25", 1, State.INVALID),
        (STEP, "commit 32", -1, None),
    ]
    assert [one.delay for one in report.told] == [3, 2, 7], "a level goes back when eight values show it"
    assert [one.change for one in report.told] == pytest.approx([1.2, 1.1, 1 / 1.2], rel=0.01)
    assert (report.series, report.commits, report.values) == (3, 40, 120)
    assert (report.false_alarms, [one.case for one in report.untold]) == (1, [QUIET])
    text = shown.text(report, Look(width=200))
    assert "1 marked invalid: 8.33 in 1000 values of 120" in text
    assert "regression 3 (open) since 0000024, elementwise: quiet[n=1] fused" in text


def test_since_leaves_out_what_was_told_before_but_not_the_past(store, tmp_path):
    report = replay_of(store, "step*", device="", since="000001c", start=tmp_path)
    assert [one.subject for one in report.told] == ["commit 32"]
    assert (report.first, report.commits, report.series) == ("000001c", 13, 1)


def test_a_minimum_effect_that_is_tried_leaves_out_smaller_changes_and_says_what_that_would_lose(store, tmp_path):
    told, untold = {}, {}
    for limit in (None, 0.05, 0.15, 0.5):
        report = replay_of(store, "", device="", since="", start=tmp_path, min_effect=limit)
        told[limit] = [(one.case, one.direction) for one in report.told]
        untold[limit] = [one.case for one in report.untold]
        assert report.min_effect == limit
    assert told[0.05] == told[None] == [(STEP, 1), (FALSE, 1), (STEP, -1)]
    assert told[0.15] == [(STEP, 1), (STEP, -1)], "a tenth slower"
    assert told[0.5] == []
    assert (untold[0.15], untold[0.5]) == ([QUIET], [QUIET, STEP])
    report = replay_of(store, "", device="", since="", start=tmp_path, min_effect=0.15)
    assert report.false_alarms == 0, "the one that was invalid is not told"
    assert "limit   changes of 15 % and more are told" in shown.text(report, Look(width=200))


@pytest.mark.parametrize("limit", [0.0, 1.0, -0.1, float("nan"), float("inf")])
def test_a_minimum_effect_that_is_no_share_is_refused(store, tmp_path, limit):
    with pytest.raises(UsageError, match=rf"--min-effect is {limit}; give a share between 0 and 1"):
        replay_of(store, "", device="", since="", start=tmp_path, min_effect=limit)


def test_the_rate_of_false_alarms_says_how_much_nobody_has_looked_at(store, tmp_path):
    report = replay_of(store, "", device="", since="", start=tmp_path)
    assert (report.false_alarms, report.not_looked_at) == (1, 1), "an improvement cannot be marked"
    said = (
        "1 marked invalid: 8.33 in 1000 values of 120, or up to 16.67: of 2 slowdowns told nobody has looked at 1 yet"
    )
    assert said in shown.text(report, Look(width=200))
    looked = replay_of(store, "false*", device="", since="", start=tmp_path)
    said = "1 marked invalid: 25.00 in 1000 values of 40; somebody has looked at every slowdown told (1)"
    assert said in shown.text(looked, Look(width=200))
    quiet = replay_of(store, "quiet*", device="", since="", start=tmp_path)
    assert "0 marked invalid: 0.00 in 1000 values of 40; no slowdown told" in shown.text(quiet, Look(width=200))


def test_what_is_not_there_is_told(store, tmp_path):
    with pytest.raises(IncompleteError, match=r"no history of 'softmax\*' on H100"):
        replay_of(store, "softmax*", device="H100", since="", start=tmp_path)
    with pytest.raises(UsageError, match="no results of a revision 'abc'"):
        replay_of(store, "", device="", since="abc", start=tmp_path)


def test_the_command_prints_json_and_asks_for_replay(path):
    asked = ["judge", "--replay", "elementwise", "--db", str(path), "--format", "json"]
    for more, told, false in (([], 3, 1), (["--min-effect", "0.15"], 2, 0)):
        done = CliRunner().invoke(app, [*asked, *more])
        assert done.exit_code == 0, done.output
        answer = json.loads(done.stdout)
        assert (answer["schema"], len(answer["told"]), answer["false_alarms"]) == ("perftrack.replay/1", told, false)
    refused = CliRunner().invoke(app, ["judge", "--db", str(path)])
    assert isinstance(refused.exception, UsageError)

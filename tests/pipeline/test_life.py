"""Regressions over the commits of a real repository in a real database; only the measuring is left out."""

import datetime as dt
import re

import msgspec
import pytest
from life_builders import ADD, CARD, CLASS, SUB, case, finding, timed

import perftrack
from perftrack.errors import UsageError
from perftrack.judge import life
from perftrack.judge.life import State
from perftrack.model import JobResult, Measurement, Method, Run, RunOptions, Status, Verdict
from perftrack.pipeline.life import remember, rows
from perftrack.pipeline.reports import report_of
from perftrack.report import tables, text
from perftrack.report.layout import Look


def test_one_cause_is_one_regression_with_many_cases(world):
    slow = world.commit("slow")
    report = world.judge(slow, None, timed(10, 11), timed(20, 22, SUB), finding(key="mul[n=1]"))
    (row,) = rows(world.store, everything=False)
    assert (row.id, row.state, row.kind, row.device_class, row.found_sha) == (1, "open", "slower", CLASS, slow)
    assert [(one.case, one.size) for one in row.cases] == [(ADD, "10.0 % slower"), (SUB, "10.0 % slower")]
    assert (report.exit_code, [row.regressions[0].text for row in report.rows if row.red]) == (
        1,
        ["regression 1, open"] * 2,
    )
    world.judge(slow, None, finding(Verdict.FAILED, "mul[n=1]", newly=True, message="SIGSEGV"))
    assert [row.kind for row in rows(world.store, everything=False)] == ["slower", "failed"]


def test_judging_or_measuring_again_neither_duplicates_nor_loses_a_mark(world):
    slow = world.commit("slow")
    world.judge(slow, None, timed(10, 11), uid="a" * 32)
    world.ack("1", reason="the sums must be exact", until="2999-12-31")
    for uid in ("a" * 32, "b" * 32, "b" * 32):
        report = world.judge(slow, None, timed(10, 11.1), uid=uid)
        assert (report.verdict, report.exit_code, report.rows[0].red) == ("GREEN", 0, False)
    assert (world.count("regression"), world.count("mark"), world.count("sighting")) == (1, 1, 2)
    (row,) = rows(world.store, everything=True)
    assert row.state == "acknowledged"
    assert row.cases[0].said == "acknowledged by Ada until 2999-12-31: the sums must be exact"


def test_an_acknowledged_slowdown_is_said_and_fails_nothing(world):
    before = world.judge(world.commit("slow"), None, timed(10, 11))
    world.ack(ADD, reason="accepted")
    report = report_of(world.store, before.run)
    assert (report.verdict, report.exit_code) == ("GREEN", 0)
    said = text.render(report, Look())
    assert said.startswith("GREEN  nothing red: 1 acknowledged; 1 slower")
    assert "regression 1, acknowledged by Ada: accepted" in said


def test_without_a_mark_a_known_regression_between_base_and_head_stays_red_and_is_not_found_twice(world):
    slow = world.commit("slow")
    world.judge(slow, None, timed(10, 11))
    later = world.commit("words")
    assert world.judge(later, None, timed(11, 11)).exit_code == 0, "against its parent nothing is slower"
    report = world.judge(later, world.base, timed(10, 11))
    assert (report.exit_code, report.rows[0].regressions[0].since) == (1, slow[:7])
    assert report.rows[0].regressions[0].text == f"regression 1, since {slow[:7]}, open"
    assert world.states() == {1: "open"}
    world.ack("1")
    assert world.judge(later, world.base, timed(10, 11)).exit_code == 0
    assert world.states() == {1: "acknowledged"}


def test_it_is_open_again_where_it_grows_beyond_what_was_acknowledged(world):
    slow = world.commit("slow")
    world.judge(slow, None, timed(10, 11))
    world.ack("1")
    slower = world.commit("slower")
    assert world.judge(slower, world.base, timed(10, 11.2)).exit_code == 0, "within the minimum effect of it"
    report = world.judge(slower, world.base, timed(10, 12.5))
    assert (report.exit_code, world.states()) == (1, {1: "open"})
    words = f"regression 1, since {slow[:7]}, open again: acknowledged up to 10.0 % slower, now 25.0 % slower"
    assert report.rows[0].regressions[0].text == words
    world.ack("1", reason="also needed")
    assert world.judge(slower, world.base, timed(10, 12.5)).exit_code == 0
    assert world.count("mark") == 2


def test_noise_opens_nothing_again(world):
    slow = world.commit("slow")
    world.judge(slow, None, timed(10, 20, spread=1.5))
    world.ack("1")
    assert world.judge(slow, None, timed(10, 29, spread=1.05)).exit_code == 0, "it may have been as much before"
    assert world.judge(slow, None, timed(10, 40, spread=1.5)).exit_code == 0, "it may be as little now"
    report = world.judge(slow, None, timed(10, 40, spread=1.05))
    assert report.exit_code == 1
    assert report.rows[0].regressions[0].text.endswith("acknowledged up to 200.0 % slower, now 300.0 % slower")


def test_a_further_slowdown_of_a_later_commit_is_a_regression_of_its_own(world):
    world.judge(world.commit("slow"), None, timed(10, 11))
    world.ack("1")
    second = world.commit("second")
    report = world.judge(second, None, timed(11, 12.1))
    assert (report.exit_code, world.states()) == (1, {1: "acknowledged", 2: "open"})
    both = world.judge(second, world.base, timed(10, 12.1))
    assert [one.state for one in both.rows[0].regressions] == ["acknowledged", "open"]
    assert (both.exit_code, world.states()) == (1, {1: "acknowledged", 2: "open"}), "1.1 times 1.1: neither has grown"
    world.ack("2")
    assert world.judge(second, world.base, timed(10, 12.1)).exit_code == 0


def test_when_its_day_has_come_a_mark_counts_no_longer(world):
    world.judge(world.commit("slow"), None, timed(10, 11))
    world.ack("1", until="2999-12-31")
    (known,) = world.store.regressions()
    last = int(dt.datetime(2999, 12, 31, tzinfo=dt.UTC).timestamp()) * 1_000_000
    assert [life.state(known, at) for at in (last - 1, last)] == [State.ACKNOWLEDGED, State.OPEN]
    standing = life.standing(known, known.cases()[0], last)
    assert standing.again == "acknowledged until 2999-12-31, which has passed"


def test_a_trailer_of_the_head_acknowledges(world):
    trailers = "Perftrack-Accept: add* needed for\n exact sums\nPerftrack-Accept: nothing* of it"
    slow = world.commit(f"slow\n\nBecause.\n\n{trailers}")
    report = world.judge(slow, None, timed(10, 11), timed(10, 11, SUB))
    known = {row.case: row.regressions[0].text for row in report.rows}
    assert known == {ADD: "regression 1, acknowledged by Ada: needed for exact sums", SUB: "regression 1, open"}
    assert (report.exit_code, world.states()) == (1, {1: "open"}), "one of its cases is"
    world.judge(slow, None, timed(10, 11), timed(10, 11, SUB))
    assert world.count("mark") == 1


def test_a_trailer_without_a_reason_is_refused(world):
    bare = world.revision(world.commit("slow\n\nPerftrack-Accept: add*"))
    with pytest.raises(UsageError, match=r"`Perftrack-Accept: add\*` without a reason"):
        world.git.accepted(bare)
    assert world.git.accepted(world.revision(world.commit("later")), bare) == []
    assert world.git.accepted(world.revision("HEAD"), world.revision(world.base)) == [], "of an earlier commit"


ACCEPT = "Because.\n\nPerftrack-Accept: add* needed"


def test_a_trailer_of_any_commit_of_a_pull_request_acknowledges(world):
    world.repo.git("checkout", "-q", "-b", "topic")
    world.commit(f"slow\n\n{ACCEPT}")
    topic = world.commit("words")
    assert world.judge(topic, world.base, timed(10, 11)).exit_code == 0
    world.repo.git("checkout", "-q", "main")
    world.repo.commit("meanwhile", {"other": "1"})
    main = world.repo.git("rev-parse", "HEAD")
    world.repo.git("merge", "-q", "--no-ff", "-m", "Merge topic into main", "topic")
    merge = world.repo.git("rev-parse", "HEAD")
    (row,) = world.judge(merge, main, timed(10, 11)).rows
    assert [one.text for one in row.regressions] == [f"regression 1, since {topic[:7]}, acknowledged by Ada: needed"]


def test_a_trailer_of_an_earlier_commit_does_not_accept_what_grows_later(world):
    slow = world.commit(f"slow\n\n{ACCEPT}")
    assert world.judge(slow, world.base, timed(10, 11, spread=1.01)).exit_code == 0
    later = world.commit("slower still")
    assert world.judge(later, world.base, timed(10, 13, spread=1.01)).exit_code == 1
    assert world.count("mark") == 1
    again = world.commit(f"slower, and meant\n\n{ACCEPT.replace('needed', 'more of it')}")
    assert world.judge(again, world.base, timed(10, 13, spread=1.01)).exit_code == 0


def test_nor_does_one_of_a_commit_after_that_of_the_slowdown(world):
    """As it mostly is: red first, then a commit that accepts."""
    world.judge(world.commit("slow"), world.base, timed(10, 11, spread=1.01))
    accepting = world.commit(f"words\n\n{ACCEPT}")
    assert world.judge(accepting, world.base, timed(10, 11, spread=1.01)).exit_code == 0
    later = world.commit("slower still")
    assert world.judge(later, world.base, timed(10, 13, spread=1.01)).exit_code == 1
    assert world.count("mark") == 1


def test_a_merge_that_was_only_tried_has_not_used_a_trailer_up(world):
    world.repo.git("checkout", "-q", "-b", "topic")
    world.commit(f"slow\n\n{ACCEPT}")
    world.repo.git("checkout", "-q", "main")
    for subject in ("meanwhile", "later"):
        main = world.repo.commit(subject, {"other": subject})
        world.repo.git("checkout", "-q", "--detach", main)
        world.repo.git("merge", "-q", "--no-ff", "-m", "Merge topic into main", "topic")
        merge = world.repo.git("rev-parse", "HEAD")
        assert world.judge(merge, main, timed(10, 11)).exit_code == 0, subject
        world.repo.git("checkout", "-q", "main")


def test_each_device_class_of_a_run_has_its_own_regression(world):
    other = "NVIDIA-A100-80GB"
    slow = world.commit("slow")
    report = world.judge(slow, None, timed(10, 11), msgspec.structs.replace(timed(10, 12), device_class=other))
    assert report.exit_code == 1
    assert sorted(one.device_class for one in world.store.regressions()) == [other, CLASS]


def test_a_trailer_of_a_rebased_commit_accepts_anew(world):
    world.repo.git("checkout", "-q", "-b", "topic")
    world.commit(f"slow\n\n{ACCEPT}")
    assert world.judge(world.commit("words"), world.base, timed(10, 11)).exit_code == 0
    world.repo.git("checkout", "-q", "main")
    main = world.repo.commit("meanwhile", {"other": "1"})
    world.repo.git("checkout", "-q", "topic")
    world.repo.git("rebase", "-q", "main")
    assert world.judge(world.repo.git("rev-parse", "HEAD"), main, timed(10, 11)).exit_code == 0
    assert world.states() == {1: "acknowledged", 2: "acknowledged"}


def test_amending_the_message_keeps_regression_and_mark(world):
    slow = world.commit("slow")
    world.judge(slow, None, timed(10, 11))
    world.ack("1")
    world.repo.git("commit", "-q", "--amend", "-m", "slow, said better")
    amended = world.repo.git("rev-parse", "HEAD")
    assert world.judge(amended, None, timed(10, 11)).exit_code == 0
    (row,) = rows(world.store, everything=True)
    assert (row.id, row.found_sha, row.state) == (1, amended, "acknowledged")
    assert world.judge(world.commit("words"), world.base, timed(10, 11)).exit_code == 0


def test_uncommitted_changes_begin_no_regression_and_know_those_there_are(world):
    slow = world.commit("slow")
    world.judge(slow, None, timed(10, 11))
    world.ack("1")
    git = world.git
    world.repo.write({"code": "dirty"})
    with git.worktree_revision() as (_, dirty):
        run = Run(
            uid="d" * 32, repo=git.name, head=dirty, base=git.revision(world.base), base_note="",
            options=RunOptions(methods={"cuda": Method()}), started_us=1,
        )  # fmt: skip
        for found, code in ((timed(10, 11), 0), (timed(10, 12.5), 1)):
            world.store.begin_run(run)
            attempt = JobResult(
                suite="elementwise", case_key=ADD, device_class=CLASS, round=1, attempt=1, status=Status.OK,
                device_uuid=CARD.uuid, measurements=(Measurement(side="head", variant="fused", status=Status.OK),),
            )  # fmt: skip
            world.store.add_job(run.uid, case(ADD), attempt, CARD)
            world.store.finish_run(run.uid, state="complete", finished_us=2, summaries=[], findings=[found])
            remember(world.store, run.uid, git, git.accepted(dirty))
            findings = world.store.load_run(run.uid).findings
            assert findings == [found]
            known = [life.stands(one, one.sightings[-1], 3).state for one in world.store.regressions(run_uid=run.uid)]
            sizes = [one.level for one in world.store.regressions()[0].sightings if one.head.dirty]
            assert (len(known), sizes) == (1, [pytest.approx(found.change.point)]), code
    assert world.states() == {1: "acknowledged"}, "what is not committed changes nothing"


def test_marks_that_cannot_be_made_are_refused(world):
    world.judge(world.commit("slow"), None, timed(10, 11))
    for target, more, said in (
        ("7", {}, r"no regression 7 in .*: there are 1 to 1"),
        ("mul*", {}, r"no open regression of repo in .* has a case 'mul\*'"),
        ("1", {"reason": " "}, r"--reason is empty"),
        ("1", {"until": "tomorrow"}, r"--until 'tomorrow' is no date: write it like 2030-12-31"),
        ("1", {"until": "2020-01-01"}, r"--until 2020-01-01 has passed"),
    ):
        with pytest.raises(UsageError, match=said):
            world.ack(target, **more)
    assert world.count("mark") == 0


def test_the_list_says_what_since_when_and_how_it_stands(world):
    slow = world.commit("slow")
    world.judge(slow, None, timed(10, 11, why="spills: local memory 0 -> 48 B"), timed(20, 21, SUB))
    world.ack(SUB, state=State.INFRA, reason="a fan was broken")
    said = tables.regressions(rows(world.store, everything=False), Look(width=200)).splitlines()
    assert re.fullmatch(rf"   1  open slower  2 cases on {CLASS}, since {slow[:7]} \d{{4}}-\d\d-\d\d slow", said[0])
    assert said[1:] == [
        f"      {ADD} fused, 10.0 % slower, spills: local memory 0 -> 48 B",
        f"      {SUB} fused, 5.0 % slower, infra by Ada: a fan was broken",
        "1 open",
    ]
    assert tables.regressions([]) == "no regression"


def test_every_case_is_a_row_of_the_frame(world):
    with perftrack.open(str(world.path)) as database:
        none = database.regressions()
    slow = world.commit("slow")
    world.judge(slow, None, timed(10, 11), timed(20, 21, SUB))
    world.ack(SUB, reason="accepted", until="2999-12-31")
    fix = world.commit("fix")
    world.judge(fix, None, timed(11, 10))
    with perftrack.open(str(world.path)) as database:
        frame = database.regressions()
        assert len(database.regressions(repo="other")) == 0
    plain = [name for name, kind in frame.dtypes.items() if kind != "category"]
    assert frame[plain].dtypes.tolist() == none[plain].dtypes.tolist()
    assert list(frame.columns) == list(none.columns)
    add, sub = frame.iloc[0], frame.iloc[1]
    assert frame["regression_id"].tolist() == [1, 1]
    assert (add["case"], add["state"], add["kind"], add["commit"], add["commit_seq"]) == (
        ADD,
        "fixed",
        "slower",
        slow,
        1,
    )
    assert (add["level"], add["time_us_base"], add["time_us_head"]) == pytest.approx((1.1, 10, 11))
    assert (add["fixed_commit"], add["seen_commit"], add["base"]) == (fix, slow, world.base)
    assert (sub["state"], sub["author"], sub["reason"]) == ("acknowledged", "Ada", "accepted")
    assert sub["until"] == dt.datetime(2999, 12, 31, tzinfo=dt.UTC)
    assert sub["marked_at"].tzinfo is not None
    assert frame["fixed_at"].isna().tolist() == [False, True]

"""When a regression is gone, and when it is not: commits of a real repository, runs in a real database."""

import pytest
from life_builders import CLASS, DRIVER, SUB, finding, timed

from perftrack.errors import UsageError
from perftrack.model import Accuracy, Environment, Verdict
from perftrack.pipeline.life import rows


def test_a_fix_is_noticed_and_coming_back_too(world):
    slow = world.commit("slow")
    world.judge(slow, None, timed(10, 11), timed(20, 22, SUB))
    world.ack("1")
    half = world.judge(world.commit("fix add"), None, timed(11, 10.05), timed(22, 22, SUB))
    assert half.fixed == (f"regression 1 (slower since {slow[:7]} on {CLASS}) is gone in 1 of 2 cases, 1 left",)
    assert world.states() == {1: "acknowledged"}
    whole = world.judge(world.commit("fix sub"), None, timed(22, 19.0, SUB))
    assert whole.fixed == (f"regression 1 (slower since {slow[:7]} on {CLASS}) is gone in every case",)
    assert world.states() == {1: "fixed"}
    with pytest.raises(UsageError, match="regression 1 is fixed"):
        world.ack("1")
    back = world.judge(world.commit("slow again"), world.base, timed(10, 11))
    assert back.rows[0].regressions[0].text == f"regression 1, since {slow[:7]}, open again: it was fixed and came back"
    assert (back.exit_code, world.states()) == (1, {1: "open"})


def test_the_same_step_seen_at_an_earlier_commit_is_the_same_regression_and_moves_there(world):
    first, second = world.commit("slow"), world.commit("words")
    world.judge(second, world.base, timed(10, 11), timed(10, 11, SUB))
    world.ack("1")
    assert world.judge(first, world.base, timed(10, 11.05)).exit_code == 0
    assert [row.found_sha for row in rows(world.store, everything=True)] == [second], "one of two cases is seen"
    assert world.judge(first, world.base, timed(10, 11.05), timed(10, 11, SUB)).exit_code == 0
    (row,) = rows(world.store, everything=True)
    assert (row.id, row.found_sha, row.state) == (1, first, "acknowledged")


def test_judging_the_fix_again_loses_no_mark_that_was_made_since(world):
    slow, fix = world.commit("slow"), world.commit("fix")
    world.judge(slow, None, timed(10, 11))
    world.judge(fix, None, timed(11, 10), uid="c" * 32)
    back = world.commit("slow again")
    world.judge(back, world.base, timed(10, 11))
    world.ack("1")
    world.judge(fix, None, timed(11, 10), uid="c" * 32)
    assert world.states() == {1: "acknowledged"}


def test_measuring_an_old_commit_after_the_fix_opens_nothing(world):
    slow, fix = world.commit("slow"), world.commit("fix")
    world.judge(slow, None, timed(10, 11))
    world.judge(fix, None, timed(11, 10))
    world.judge(slow, world.base, timed(10, 11))
    assert world.states() == {1: "fixed"}


def test_what_does_not_show_a_fix_leaves_it_open(world):
    world.judge(world.commit("slow"), None, timed(10, 11))
    later = world.commit("later")
    for found, environment in (
        (timed(11, 10.6), DRIVER),  # faster, but not back
        (timed(11, 10, verdict=Verdict.AMBIGUOUS), DRIVER),
        (timed(10.1, 10.05), Environment(entries={"driver": "590"})),  # so is the whole machine
        (timed(9.5, 9.2), Environment(entries={"driver": "590"})),
        (timed(11, 10.1, verdict=Verdict.SAME), DRIVER),  # base is still slow
        (finding(Verdict.MISSING), DRIVER),
    ):
        report = world.judge(later, None, found, environment=environment)
        assert (report.fixed, world.states()) == ((), {1: "open"}), found


def test_a_fix_is_told_by_its_own_ratio_whatever_the_machine_became(world):
    """Two commits made it slower; what takes back one step ends the later one, and only that."""
    world.judge(world.commit("slow"), None, timed(10, 11))
    world.judge(world.commit("slow too"), None, timed(11, 12.1))
    new_driver = {"environment": Environment(entries={"driver": "590"})}
    world.judge(world.commit("fix one"), None, timed(6.05, 5.5), **new_driver)
    assert world.states() == {1: "open", 2: "fixed"}
    world.judge(world.commit("fix the other"), None, timed(5.5, 5.0), **new_driver)
    assert world.states() == {1: "fixed", 2: "fixed"}


def test_a_fix_that_was_never_judged_itself_is_seen_later_or_against_the_old_base(world):
    world.judge(world.commit("slow"), None, timed(10, 11))
    world.commit("fix")
    after = world.commit("words")
    assert world.judge(after, None, timed(10.1, 10.05)).fixed, "both sides are back"
    world.judge(world.commit("slow 2"), None, timed(10, 11))
    new_driver = {"environment": Environment(entries={"driver": "590"})}
    world.commit("fix 2")
    assert world.judge(world.commit("words 2"), after, timed(9, 9.05), **new_driver).fixed, "nothing is left of it"
    assert world.states() == {1: "fixed", 2: "fixed"}


def test_what_failed_has_to_run_and_what_lost_accuracy_has_to_regain_it(world):
    broken = finding(Verdict.FAILED, newly=True, message="SIGSEGV")
    lossy = finding(key=SUB, head_s=1e-5, base_s=1e-5, error_head=4e-7, error_base=1e-7, accuracy=Accuracy.LESS)
    report = world.judge(world.commit("both"), None, broken, lossy)
    assert {row.kind: row.cases[0].size for row in rows(world.store, everything=False)} == {
        "failed": "",
        "less-accurate": "4.0 times the error",
    }
    assert (report.exit_code, report.accuracy[0].regressions[0].text) == (1, "regression 2, open")
    still = finding(Verdict.FAILED, message="also fails at base: SIGSEGV")
    assert (
        world.judge(world.commit("words"), None, still, finding(key=SUB, head_s=1e-5, error_head=4e-7)).exit_code != 1
    )
    assert world.states() == {1: "open", 2: "open"}
    world.judge(world.commit("mend"), None, finding(Verdict.NEW, head_s=1e-5), finding(key=SUB, error_head=1.1e-7))
    assert world.states() == {1: "fixed", 2: "fixed"}


def test_a_case_that_is_no_longer_declared_has_nothing_wrong_with_it(world):
    world.judge(world.commit("slow"), None, timed(10, 11))
    world.judge(world.commit("remove"), None, finding(Verdict.REMOVED))
    assert world.states() == {1: "fixed"}


def test_another_branch_neither_inherits_nor_fixes(world):
    slow = world.commit("slow")
    world.judge(slow, None, timed(10, 11))
    world.repo.git("checkout", "-q", "-b", "side", world.base)
    side = world.commit("side")
    world.judge(side, world.base, timed(10, 10))
    assert world.states() == {1: "open"}, "it never was there"
    world.judge(side, world.base, timed(10, 11))
    assert world.states() == {1: "open", 2: "open"}
    world.repo.git("merge", "-q", "-s", "ours", "-m", "merge", "main")
    merged = world.repo.git("rev-parse", "HEAD")
    report = world.judge(merged, world.base, timed(10, 12.1))
    assert len(report.rows[0].regressions) == 2, "both sides brought one"

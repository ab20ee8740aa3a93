"""What a run's findings say of known regressions, and how levels are shared out among them."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perftrack.judge import life
from perftrack.judge.life import CaseId, Kind, Mark, Regression, Sighting, State, kinds, level_of
from perftrack.judge.sightings import Line, attribute, is_gone, look, moved
from perftrack.judge.value import Finding, Interval
from perftrack.model import Accuracy, Revision, Verdict

CASE = CaseId("suite", "case[n=1]", "fused")
CLASS = "NVIDIA-H200-141G"


def commit(number, **more):
    sha = more.pop("sha", f"{number:040x}")
    fields = {"tree": f"t{sha}", "dirty": False, "parent": None, "position": number, "committed_us": number}
    return Revision(sha=sha, subject="", **(fields | more))


def slow(level=1.1, **more):
    return Finding(
        suite=CASE.suite, case_key=CASE.case_key, variant=CASE.variant, device_class=more.pop("device_class", CLASS),
        verdict=Verdict.SLOWER, confirmed=True, change=Interval(level, level, level), base_s=1.0, head_s=level, **more,
    )  # fmt: skip


def regression(number, at, level=1.1, *, base=0, kind=Kind.SLOWER, gone_at=None, finding=None, marks=()):
    seen = [(at, False, level)] + ([(gone_at, True, None)] if gone_at is not None else [])
    return Regression(
        id=number, repo="r", found=commit(at), base=commit(base), device_class=CLASS, kind=kind, found_us=at,
        marks=marks,
        sightings=tuple(
            Sighting(
                run_uid=f"{number}-{place}", head=commit(place), at_us=10 * place, gone=gone, level=size,
                finding=finding or slow(level or 1.0), segment=(1, 1),
            )
            for place, gone, size in seen
        ),
    )  # fmt: skip


def line(base=0):
    """Commit 9 against an earlier one."""
    inside = frozenset(commit(number).sha for number in range(base + 1, 10))
    behind = inside | {commit(number).sha for number in range(base + 1)}
    return Line(head=commit(9), base=commit(base), inside=inside, behind=behind)


def shares(finding, regressions, where=None, kind=Kind.SLOWER):
    return [(one.regression_id, one.level) for one in attribute(finding, kind, regressions, where or line())]


def test_what_is_remembered_of_a_finding():
    assert kinds(slow()) == [Kind.SLOWER]
    assert kinds(msgspec.structs.replace(slow(), confirmed=False)) == []
    assert kinds(msgspec.structs.replace(slow(), accuracy=Accuracy.LESS)) == [Kind.SLOWER, Kind.LESS_ACCURATE]
    failed = msgspec.structs.replace(slow(), verdict=Verdict.FAILED, change=None)
    assert kinds(failed) == []
    assert kinds(msgspec.structs.replace(failed, newly=True)) == [Kind.FAILED]


@pytest.mark.parametrize(
    ("kind", "finding", "level"),
    [
        (Kind.SLOWER, slow(1.25), 1.25),
        (Kind.SLOWER, msgspec.structs.replace(slow(), change=None), None),
        (Kind.LESS_ACCURATE, slow(error_head=4e-7, error_base=1e-7), 4.0),
        (Kind.LESS_ACCURATE, slow(error_head=2**-22, error_base=0.0), 16.0),  # 0 counts as a quarter of 2**-24
        (Kind.LESS_ACCURATE, slow(error_head=2**-22, error_base=1e-12), 16.0),
        (Kind.LESS_ACCURATE, slow(error_head=2**-22), None),
        (Kind.FAILED, slow(), None),
    ],
)
def test_how_large_it_is(kind, finding, level):
    found = level_of(kind, finding)
    assert found == (pytest.approx(level) if level else None)


def test_nothing_known_begins_one_at_the_head_and_uncommitted_changes_begin_none():
    assert shares(slow(), []) == [(None, 1.1)]
    dirty = msgspec.structs.replace(line(), head=commit(9, dirty=True))
    assert shares(slow(), [], dirty) == []
    assert shares(slow(), [regression(1, 3)], dirty) == [(1, 1.1)]


def test_what_is_slower_than_a_commit_that_is_not_behind_it_did_not_begin_there():
    ahead = msgspec.structs.replace(line(), base=commit(12))
    assert shares(slow(), [], ahead) == []
    assert shares(slow(), [], msgspec.structs.replace(line(), base=None)) == [(None, 1.1)]


def test_other_classes_kinds_cases_and_commits_explain_nothing():
    other_case = slow()
    other_case = msgspec.structs.replace(other_case, case_key="other")
    known = [
        regression(1, 3, finding=other_case),
        regression(2, 3, kind=Kind.WRONG),
        msgspec.structs.replace(regression(3, 3), device_class="A100"),
        regression(4, 12),
    ]
    assert shares(slow(), known) == [(None, 1.1)]
    assert shares(slow(), [regression(5, 3)], line(base=3)) == [(None, 1.1)], "the base has it already"


def test_what_the_known_ones_explain_is_theirs_and_what_grew_is_the_newest_ones():
    known = [regression(1, 3, 1.1), regression(2, 5, 1.2)]
    assert shares(slow(1.32), known) == [(1, 1.1), (2, 1.2)]
    assert shares(slow(1.33), known) == [(1, 1.1), (2, 1.2)]
    assert shares(slow(1.1 * 1.5), known) == [(1, 1.1), (2, pytest.approx(1.5))]
    here = regression(3, 9, 1.25)
    assert shares(slow(1.1 * 1.2 * 1.25), [*known, here]) == [(1, 1.1), (2, 1.2), (3, pytest.approx(1.25))]


def test_of_what_failed_every_known_one_is_shown():
    failed = msgspec.structs.replace(slow(), verdict=Verdict.FAILED, newly=True, change=None)
    known = [regression(1, 3, None, kind=Kind.FAILED)]
    assert shares(failed, known, kind=Kind.FAILED) == [(1, None)]
    assert shares(failed, [], kind=Kind.FAILED) == [(None, None)]


@given(st.lists(st.floats(1.02, 3), min_size=1, max_size=4), st.floats(1.02, 10))
def test_the_shares_multiply_to_the_whole_or_to_the_whole_within_the_minimum_effect(levels, whole):
    known = [regression(number, number + 1, level) for number, level in enumerate(levels)]
    product = 1.0
    for _, share in shares(slow(whole), known):
        product *= share
    assert 1 / 1.0201 < product / whole < 1.0201


def gone(known, finding, base, segment=(1, 1), added=None):
    return is_gone(known, finding, line(base=base), segment, added=added or known.level(CASE))


def test_a_fix_is_told_from_what_only_looks_like_one():
    known = regression(1, 3)
    same = msgspec.structs.replace(slow(), verdict=Verdict.SAME, head_s=1.01, base_s=1.01)
    assert gone(known, same, 8)
    assert not gone(known, same, 8, (2, 1)), "another environment"
    assert not gone(known, same, 8, None)
    slow_base = msgspec.structs.replace(same, base_s=1.1)
    assert not gone(known, slow_base, 8)
    assert gone(known, slow_base, 0, None), "side by side with its base"
    assert not gone(regression(2, 3, 1.025), msgspec.structs.replace(same, head_s=1.015), 8), "nearer to slow"


def test_a_ratio_takes_back_what_was_added_after_the_level_before():
    faster = msgspec.structs.replace(slow(), verdict=Verdict.FASTER, change=Interval(0.92, 0.91, 0.93), head_s=5.0)
    assert gone(regression(1, 3), faster, 8, None)
    assert not gone(regression(1, 3), faster, 8, None, added=1.21)
    assert not gone(regression(1, 3), faster, 2, None), "its base never had it"


@pytest.mark.parametrize(
    ("before", "error", "back"),
    [
        (0.0, 0.0, True),
        (0.0, 1e-9, True),  # far below what is news
        (0.0, 2e-8, False),
        (1e-7, 1.4e-7, True),
        (1e-7, 1.6e-7, False),
        (1e-9, 1.4e-8, True),
    ],
)
def test_a_lost_accuracy_is_back_where_it_would_be_no_news_against_the_base(before, error, back):
    lossy = slow(error_head=4e-7, error_base=before, accuracy=Accuracy.LESS)
    known = regression(1, 3, 4.0, kind=Kind.LESS_ACCURATE, finding=lossy)
    after = msgspec.structs.replace(slow(), verdict=Verdict.SAME, error_head=error, error_base=4e-7)
    assert gone(known, after, 8) is back


def test_the_loss_of_an_exact_result_is_open_again_where_it_grows():
    lossy = slow(error_head=2**-22, error_base=0.0, accuracy=Accuracy.LESS)
    mark = Mark(case=CASE, state=State.ACKNOWLEDGED, reason="", author="", at_us=40, level=16.0)
    marked = regression(
        1, 3, level_of(Kind.LESS_ACCURATE, lossy), kind=Kind.LESS_ACCURATE, finding=lossy, marks=(mark,)
    )
    assert life.state(marked, 50) is State.ACKNOWLEDGED
    worse = level_of(Kind.LESS_ACCURATE, slow(error_head=2**-19, error_base=0.0))
    grown = msgspec.structs.replace(marked.sightings[0], level=worse, at_us=45)
    standing = life.standing(msgspec.structs.replace(marked, sightings=(grown,)), CASE, 50)
    assert standing.again == "acknowledged up to 16.0 times the error, now 128.0 times the error"


def wrong(*, right=0):
    """Wrong, but for so many rounds."""
    return msgspec.structs.replace(
        slow(), verdict=Verdict.WRONG, newly=True, change=None, head_s=1.0 if right else None, rounds=right
    )


def test_what_is_right_by_chance_closes_nothing():
    known = regression(1, 3, None, kind=Kind.WRONG, finding=wrong())
    fine = msgspec.structs.replace(slow(), verdict=Verdict.SAME, rounds=3)
    assert gone(known, fine, 8)
    noisy = msgspec.structs.replace(fine, verdict=Verdict.AMBIGUOUS, message="the rounds disagree")
    assert gone(known, noisy, 8), "its answer is right, whatever its time"
    flaky = msgspec.structs.replace(
        noisy, message="flaky: wrong in the first look (off by 3 %), fine in 5 fresh rounds"
    )
    assert flaky.flaky
    assert not gone(known, flaky, 8)
    lossy = slow(error_head=4e-7, error_base=1e-7, accuracy=Accuracy.LESS)
    lost = regression(2, 3, 4.0, kind=Kind.LESS_ACCURATE, finding=lossy)
    assert not gone(lost, msgspec.structs.replace(flaky, error_head=1e-7), 8), "nor a lost accuracy"
    often_right = regression(1, 3, None, kind=Kind.WRONG, finding=wrong(right=5))
    assert not gone(often_right, msgspec.structs.replace(fine, rounds=17), 8), "too few to tell"
    assert gone(often_right, msgspec.structs.replace(fine, rounds=18), 8)


def test_what_comes_and_goes_is_not_the_fault_of_a_commit_whose_base_was_lucky():
    known = regression(1, 3, None, kind=Kind.WRONG, finding=wrong(right=5))
    assert shares(wrong(right=2), [known], line(base=8), Kind.WRONG) == [(1, None)]
    assert shares(wrong(), [known], line(base=8), Kind.WRONG) == [(None, None)], (
        "wrong in every round is something else"
    )
    always = regression(1, 3, None, kind=Kind.WRONG, finding=wrong())
    assert shares(wrong(right=2), [always], line(base=8), Kind.WRONG) == [(None, None)]
    mended = regression(1, 3, None, kind=Kind.WRONG, finding=wrong(right=5), gone_at=7)
    assert shares(wrong(right=2), [mended], line(base=8), Kind.WRONG) == [(None, None)]


def test_a_run_of_an_old_commit_and_one_of_another_branch_say_nothing_of_a_fix():
    back = msgspec.structs.replace(slow(), verdict=Verdict.SAME, head_s=1.0)
    segments = {(CASE, CLASS): (1, 1)}
    assert [one.gone for one in look([back], [regression(1, 3)], line(base=8), segments)] == [True]
    assert look([back], [regression(1, 12)], line(base=8), segments) == []
    assert look([back], [regression(1, 9)], line(base=8), segments) == [], "the very commit"
    assert look([back], [regression(1, 3, gone_at=5)], line(base=8), segments) == [], "known to be gone"


def test_a_commit_that_was_amended_is_the_head_and_a_restored_tree_is_not():
    known = msgspec.structs.replace(regression(1, 3), found=commit(3, sha="f" * 40, tree=commit(9).tree))
    assert shares(slow(), [known]) == [(1, 1.1)]
    assert moved([known], look([slow()], [known], line(), {}), line()) == [1]
    restored = msgspec.structs.replace(regression(1, 3), found=commit(3, tree=commit(9).tree))
    assert not line(base=8).is_at(restored)
    assert shares(slow(), [restored], line(base=8)) == [(None, 1.1)]


def test_a_mark_counts_until_its_day_its_level_or_a_fix():
    mark = Mark(case=CASE, state=State.INVALID, reason="", author="", at_us=40, until_us=1000, level=1.1)
    marked = regression(1, 3, marks=(mark,))
    assert life.state(marked, 999) is State.INVALID
    assert life.state(marked, 1000) is State.OPEN
    grown = msgspec.structs.replace(marked.sightings[0], level=1.13, at_us=31)
    assert life.state(msgspec.structs.replace(marked, sightings=(grown,)), 50) is State.OPEN
    fixed = regression(1, 3, gone_at=5, marks=(mark,))
    assert life.state(fixed, 60) is State.FIXED
    again = msgspec.structs.replace(marked.sightings[0], head=commit(6), at_us=60)
    back = msgspec.structs.replace(fixed, sightings=(*fixed.sightings, again))
    assert life.standing(back, CASE, 70).again == "it was fixed and came back"
    anew = msgspec.structs.replace(mark, at_us=65, state=State.INFRA)
    assert life.state(msgspec.structs.replace(back, marks=(mark, anew)), 70) is State.INFRA


def test_dates_out_of_order_do_not_matter_where_positions_are_known():
    fix = commit(5, committed_us=0)
    known = regression(1, 3, gone_at=5)
    early = msgspec.structs.replace(known.sightings[1], head=fix)
    assert life.state(msgspec.structs.replace(known, sightings=(early, known.sightings[0])), 99) is State.FIXED

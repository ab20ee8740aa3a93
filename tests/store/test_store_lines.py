"""The main line of history, as a store knows it by itself: branches, rebased commits and merged ones."""

import itertools
from typing import Any

import msgspec
import numpy as np
import pytest
import store_builders as build

import perftrack
from perftrack.model import Revision
from perftrack.pipeline.reports import histories_of, newest_histories
from perftrack.report.segments import segments
from perftrack.store import Store, read
from perftrack.store.lines import main_lines

_UIDS = itertools.count(1)


def commit(position: int, line: str = "a", parent: Revision | None = None, **changes: Any) -> Revision:
    """One of the main line, whose commits end in `a`, or of another branch."""
    before = parent.sha if parent else f"{position - 1:07x}".ljust(40, "a")
    sha = f"{position:07x}".ljust(40, line)
    return build.revision(position, sha=sha, parent=before, branch=None, **changes)


def begin(store: Store, head: Revision, base: Revision | None, note: str) -> str:
    run = build.run(next(_UIDS), head=head, base=base, base_note=note)
    store.begin_run(run)
    return run.uid


def push(store: Store, head: Revision) -> str:
    """On the main branch, where the base is the parent."""
    return begin(store, head, commit((head.position or 0) - 1), "parent, 1 commit back")


def pull(store: Store, head: Revision, base: Revision) -> str:
    """On another branch, where the base is the merge-base."""
    return begin(store, head, base, "merge-base with origin/main, 2 commits back")


def line(store: Store) -> set[str]:
    """Position and branch of each commit of it."""
    (ids,) = store.read(lambda each: main_lines(each, read.revisions(each, None, ""))).values()
    return {f"{int(one[:7], 16)}{one[-1]}" for one in ids}


def test_commits_of_an_unmerged_branch_are_not_on_it_whether_beside_it_or_ahead(store: Store) -> None:
    push(store, commit(3))
    push(store, commit(5))
    first = commit(5, "b", commit(4))
    second = commit(6, "b", first)
    for head in (first, second):
        pull(store, head, commit(4))
    assert line(store) == {"2a", "3a", "4a", "5a"}


def test_commits_of_a_branch_that_main_was_moved_to_are_on_it(store: Store) -> None:
    push(store, commit(4))
    first = commit(5, "b", commit(4))
    second = commit(6, "b", first)
    for head in (first, second, commit(6, "c", commit(5, "c"))):
        pull(store, head, commit(4))
    assert line(store) == {"3a", "4a"}
    begin(store, commit(7, "b", second), second, "parent, 1 commit back")
    assert line(store) == {"3a", "4a", "5b", "6b", "7b"}


def test_a_commit_under_uncommitted_changes_is_of_the_branch_that_they_were_made_on(store: Store) -> None:
    pull(store, commit(5, "b", commit(4)), commit(4))
    for line_name, branch in (("c", "feature"), ("a", "main")):
        under = commit(6 if branch == "feature" else 3, line_name)
        changed = build.revision((under.position or 0) + 1, sha=under.sha, parent=under.sha, dirty=True, branch=branch)
        begin(store, changed, under, "the commit under the uncommitted changes")
    assert line(store) == {"3a", "4a"}


def test_a_name_of_a_branch_tells_where_no_base_does(store: Store) -> None:
    push(store, commit(4))
    pull(store, commit(5, "b", commit(4)), commit(4))
    named = commit(6, "d", commit(5, "d"))
    for branch, expected in (("feature", set()), ("main", {"6d"})):
        head = build.revision(6, sha=named.sha, parent=named.parent, branch=branch)
        begin(store, head, commit(2), "--base v1, 4 commits back")
        assert line(store) == {"2a", "3a", "4a"} | expected, branch


def test_commits_of_a_local_main_that_is_ahead_of_its_origin_are_on_it(store: Store) -> None:
    push(store, commit(4))
    head = build.revision(5, branch="main")
    pull(store, head, commit(4))
    assert line(store) == {"3a", "4a", "5a"}


def test_of_two_commits_at_one_place_the_newer_line_s_is_on_it(store: Store) -> None:
    """A rebase of the main branch itself, of which nothing is known but what came later."""
    old = [commit(position, "x") for position in (3, 4)]
    new = [commit(3, "y", commit(2), committed_us=9), commit(4, "y", commit(3, "y"), committed_us=8)]
    for head in (commit(2), *old, *new):
        begin(store, head, None, "")
    last = commit(5, "y", new[1])
    begin(store, last, None, "")
    assert line(store) == {"2a", "3y", "4y", "5y"}


def test_commits_without_a_place_are_kept_but_for_those_of_a_branch(store: Store) -> None:
    parent, head, other = (
        msgspec.structs.replace(one, position=None) for one in (commit(3), commit(4), commit(5, "b"))
    )
    begin(store, head, parent, "parent, 1 commit back")
    begin(store, other, head, "merge-base with main, at least 1 commit back")
    assert line(store) == {"3a", "4a"}


def test_an_unmerged_slower_branch_changes_neither_changes_nor_levels(url: str) -> None:
    noise = np.exp(0.003 * np.random.default_rng(7).standard_normal(60))

    def measured(store: Store, uid: str, number: int, level: float) -> None:
        store.add_job(uid, build.case(), build.job(), build.device())
        summary = build.summary("head", time_s=level * 1e-5 * float(noise[number]))
        store.finish_run(uid, state="complete", finished_us=1, summaries=[summary], findings=[])

    with Store.open(url) as store, perftrack.open(url) as database:
        for number in range(1, 27):
            measured(store, push(store, commit(number)), number, 1.0 if number < 16 else 1.08)
        before = database.change_points()
        assert [(one["commit_seq"], one["direction"]) for one in before.to_dict("records")] == [(16, 1)]
        tip = commit(11)
        for number in range(12, 24):
            tip = commit(number, "b", tip)
            measured(store, pull(store, tip, commit(11)), 20 + number, 1.3)
        after = database.change_points()
        assert after.to_dict("records") == before.to_dict("records")
        (series,) = histories_of(store, build.case().key, device="", variant="", last=100)
        shown = [(one.measured, one.step) for one in segments(series)]
        assert shown == [(15, None), (11, pytest.approx(1.08, rel=0.005))]
        assert len(series.points) == 26 + 12, "all of them are shown"
        names = [one for one in store.series_names() if one.variant == "fused"]
        (newest,) = newest_histories(store, names, runs=100)
        assert [(newest.points[at].revision, direction) for at, direction in newest.changes] == [(commit(16).label, 1)]

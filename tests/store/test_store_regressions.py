"""Regressions, sightings and marks on both engines: what comes back is what was stored, and repeats are harmless."""

import pytest
import store_builders as build

import perftrack
from perftrack.errors import StoreError
from perftrack.judge.life import CaseId, Kind, Mark, State, state
from perftrack.judge.sightings import Seen
from perftrack.store import Store

CASE = CaseId("elementwise", build.case().key, "fused")
CLASS = build.device().device_class


def _seen(number: int | None = None, **changes) -> Seen:
    fields = {"regression_id": number, "device_class": CLASS, "kind": Kind.SLOWER, "case": CASE, "level": 1.1}
    return Seen(**(fields | changes))


def _judged(store: Store, number: int, *seen: Seen, moved=(), **changes) -> str:
    run = build.run(number, **changes)
    store.begin_run(run)
    store.add_job(run.uid, build.case(), build.job(), build.device())
    summaries = [build.summary(), build.summary("base", "fused"), build.summary(variant="unfused")]
    store.finish_run(
        run.uid, state="complete", finished_us=100 + number, summaries=summaries, findings=[build.finding()]
    )
    store.remember(run.uid, list(seen), moved=moved)
    return run.uid


def test_what_was_seen_comes_back(store: Store) -> None:
    uid = _judged(store, 1, _seen(), _seen(kind=Kind.LESS_ACCURATE, level=None))
    slower, lossy = store.regressions()
    assert (slower.kind, slower.device_class, slower.repo, slower.found_us) == ("slower", CLASS, "kernels", 101)
    assert (slower.found.sha, slower.base and slower.base.sha) == (build.revision(7).sha, build.revision(6).sha)
    (one,) = slower.sightings
    assert (one.case, one.gone, one.level, one.run_uid, one.at_us) == (CASE, False, 1.1, uid, build.run(1).started_us)
    assert (one.finding, one.head.position) == (build.finding(), 7)
    assert store.segments(uid) == {(CASE, CLASS): one.segment, (CASE._replace(variant="unfused"), CLASS): one.segment}
    assert (lossy.kind, lossy.sightings[0].level) == ("less-accurate", None)
    assert store.regressions(repo="other") == store.regressions(run_uid="f" * 32) == []


def test_a_run_that_is_judged_again_replaces_what_it_said(store: Store) -> None:
    uid = _judged(store, 1, _seen())
    store.remember(uid, [_seen()])
    store.remember(uid, [_seen(level=1.2)])
    (one,) = store.regressions()
    assert [each.level for each in one.sightings] == [1.2]
    mark = Mark(case=CASE, state=State.INFRA, reason="a fan\0", author="Ada", at_us=500, until_us=900, level=1.2)
    for _ in range(2):
        store.mark(one.id, [mark])
    _judged(store, 1)
    (left,) = store.regressions()
    assert (left.id, left.sightings, state(left, 600)) == (one.id, (), State.INVALID)
    _judged(store, 1, _seen())
    (back,) = store.regressions()
    assert (back.id, back.found_us) == (one.id, 101)
    assert back.marks == (
        Mark(case=CASE, state=State.INFRA, reason="a fan\ufffd", author="Ada", at_us=500, until_us=900, level=1.2),
    )
    assert state(back, 600) is State.INFRA


def test_a_second_run_of_the_commit_adds_to_the_same_regression_and_a_moved_one_follows(store: Store) -> None:
    _judged(store, 1, _seen())
    _judged(store, 2, _seen())
    (one,) = store.regressions()
    assert len(one.sightings) == 2
    _judged(store, 3, _seen(one.id, gone=True, level=None), head=build.revision(9))
    amended = build.revision(7, sha="f" * 40)
    _judged(store, 4, _seen(one.id), moved=[one.id], head=amended)
    (moved,) = store.regressions()
    assert (moved.id, moved.found.sha, len(moved.sightings)) == (one.id, amended.sha, 4)
    assert [each.head.position for each in moved.of(CASE)] == [7, 7, 7, 9]
    assert state(moved, 1000) is State.FIXED


def test_what_has_no_size_is_null_and_a_size_of_nothing_is_refused(store: Store) -> None:
    _judged(store, 1, _seen())
    with pytest.raises(StoreError, match="ck_sighting_level"):
        _judged(store, 1, _seen(level=0.0))
    with pytest.raises(StoreError, match="ck_mark_state"):
        store.mark(1, [Mark(case=CASE, state=State.FIXED, reason="", author="", at_us=1)])


def test_a_full_frame_has_the_dtypes_of_an_empty_one(url: str) -> None:
    with Store.open(url) as store, perftrack.open(url) as database:
        before = database.regressions()
        _judged(store, 1, _seen())
        after = database.regressions()
    assert (len(before), len(after)) == (0, 1)
    kinds = {name: after[name].dtype for name in after if after[name].dtype.name != "category"}
    assert {name: before[name].dtype for name in kinds} == kinds
    row = after.iloc[0]
    assert (row["state"], row["kind"], row["commit_seq"], row["case"]) == ("open", "slower", 7, CASE.case_key)
    assert (row["time_us_base"], row["time_us_head"], row["level"]) == pytest.approx((10, 11, 1.1))
    assert row["why"] == "registers 32 -> 64"

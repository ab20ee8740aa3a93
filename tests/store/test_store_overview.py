"""What lists ask of both engines: counts of many runs, names of series, their newest points."""

import store_builders as build

from perftrack.model import Status, Verdict
from perftrack.store import Store, overview

CLASS = build.device().device_class


def _judged(store: Store, number: int, *, findings, status=Status.OK, **changes) -> str:
    run = build.run(number, **changes)
    store.begin_run(run)
    store.add_job(run.uid, build.case(), build.job(), build.device())
    head = build.summary() if status is Status.OK else build.failed_summary(status=status)
    store.finish_run(
        run.uid, state="complete", finished_us=100 + number,
        summaries=[head, *([build.summary("base")] if run.base else []), build.summary(variant="unfused")],
        findings=findings,
    )  # fmt: skip
    return run.uid


def test_verdicts_are_counted_by_run_and_device_class(store: Store) -> None:
    red = _judged(store, 1, findings=[build.finding(), build.finding("steps", confirmed=False)])
    good = _judged(store, 2, findings=[build.finding(verdict=Verdict.SAME)])
    newly = _judged(store, 3, findings=[build.finding(verdict=Verdict.FAILED, newly=True)])
    alone = _judged(store, 4, findings=[], base=None, base_note="", status=Status.WRONG)
    found = {(one.run_uid, one.verdict, one.red): one.count for one in store.tallies([red, good, newly, alone])}
    assert found == {
        (red, "slower", True): 1,
        (red, "slower", False): 1,
        (good, "same", False): 1,
        (newly, "failed", True): 1,
        (alone, "wrong", True): 1,
    }
    assert {one.device_class for one in store.tallies([red])} == {CLASS}
    flaky = build.finding("steps", verdict=Verdict.AMBIGUOUS, message="flaky: wrong in the first look")
    both = _judged(store, 5, findings=[build.finding(verdict=Verdict.AMBIGUOUS), flaky])
    assert {(one.verdict, one.flaky): one.count for one in store.tallies([both])} == {
        ("ambiguous", True): 1,
        ("ambiguous", False): 1,
    }
    assert store.tallies([]) == []


def test_a_case_is_lost_where_the_machine_spoilt_every_attempt(store: Store) -> None:
    """One attempt that says something of the code is enough, also in another round."""
    run, other = build.run(1), build.run(2)
    away = build.case("add[dtype=float32,n=2]")
    spoilt = {"status": Status.INFRA, "message": "no usable device is left", "measurements": ()}
    for one in (run, other):
        store.begin_run(one)
        store.add_job(one.uid, build.case(), build.job(**spoilt), build.device())
    store.add_job(run.uid, build.case(), build.job(attempt=2), build.device())
    for number in (1, 2):
        store.add_job(run.uid, away, build.job(case_key=away.key, round=number, **spoilt), build.device())
    found = store.read(lambda connection: overview.lost(connection, [run.uid, other.uid]))
    assert {(one.run_uid, one.suite, one.case, one.device_class, one.message) for one in found} == {
        (run.uid, away.suite, away.key, CLASS, "no usable device is left"),
        (other.uid, away.suite, build.case().key, CLASS, "no usable device is left"),
    }
    assert len(found) == 2, "whatever its rounds"
    assert store.read(lambda connection: overview.lost(connection, [])) == []


def test_series_by_name_with_the_points_of_the_newest_runs(store: Store) -> None:
    for number in (1, 2, 3):
        _judged(store, number, findings=[], head=build.revision(number + 10), base=build.revision(number + 9))
    names = store.series_names()
    assert [(one.case, one.device_class, one.variant) for one in names] == [
        (build.case().key, CLASS, "fused"),
        (build.case().key, CLASS, "unfused"),
    ]
    points = store.newest_points(names[:1], runs=2)
    assert [(one.revision.revision.position, one.summary.variant, one.summary.side) for one in points] == [
        (12, "fused", "head"),
        (13, "fused", "head"),
    ]
    assert store.newest_points([], runs=2) == []
    (head,) = {one.revision for one in points if one.revision.revision.position == 13}
    assert [one.run.uid for one in store.runs_of(head)] == [build.run(3).uid]

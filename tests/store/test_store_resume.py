"""Which attempt counts, and which jobs are done."""

import pytest
import store_builders as build

from perftrack.model import JobResult, Status
from perftrack.store import Store

IDENTITY = ("elementwise", "add[dtype=float32,n=1024]", "EPYC-9654-2c", 1)


def _store(store: Store, *attempts: JobResult) -> str:
    run = build.run()
    store.begin_run(run)
    for attempt in attempts:
        assert store.add_job(run.uid, build.case(), attempt, build.device())
    return run.uid


@pytest.mark.parametrize(
    ("attempts", "winner", "is_done"),
    [
        ([build.job()], 1, True),
        ([build.job(status=Status.UNSTABLE)], 1, True),
        ([build.failed()], 1, False),
        ([build.failed(), build.failed(attempt=2)], 2, True),
        ([build.failed(), build.job(attempt=2)], 2, True),
        # it ended in the middle: what it measured before says enough
        ([build.failed(measurements=(build.measurement(),))], 1, True),
        ([build.failed(status=Status.INFRA)], None, False),
        ([build.failed(status=Status.INFRA), build.failed(status=Status.INFRA, attempt=2)], None, False),
        ([build.failed(status=Status.INFRA), build.job(attempt=2)], 2, True),
        # the machine's later failure does not undo what was measured
        ([build.job(), build.failed(status=Status.INFRA, attempt=2)], 1, True),
        # attempts may arrive in any order
        ([build.job(attempt=2), build.failed()], 2, True),
    ],
)
def test_the_last_attempt_that_is_not_the_machines_failure_counts(
    store: Store, attempts: list[JobResult], winner: int | None, is_done: bool
) -> None:
    uid = _store(store, *attempts)
    expected = [attempt for attempt in attempts if attempt.attempt == winner]
    assert store.jobs(uid) == expected
    assert store.done_jobs(uid) == ({IDENTITY} if is_done else set())


def test_rounds_cases_and_device_classes_are_jobs_of_their_own(store: Store) -> None:
    run = build.run()
    store.begin_run(run)
    results = [
        (build.case(), build.job(round=2), build.device()),
        (build.case(), build.job(round=1), build.device()),
        (build.case("add[n=2]"), build.job(case_key="add[n=2]"), build.device()),
        (build.case(), build.job(device_class="other", device_uuid="CPU-2"), build.device(2, device_class="other")),
    ]
    for case, result, device in results:
        store.add_job(run.uid, case, result, device)
    stored = store.jobs(run.uid)
    assert stored == [results[1][1], results[0][1], results[3][1], results[2][1]]
    assert store.done_jobs(run.uid) == {(one.suite, one.case_key, one.device_class, one.round) for one in stored}


def test_runs_do_not_see_each_others_jobs(store: Store) -> None:
    _store(store, build.job())
    other = build.run(2)
    store.begin_run(other)
    assert store.jobs(other.uid) == []
    assert store.done_jobs(other.uid) == set()
    assert store.load_run(other.uid).cases == []


def test_a_case_that_only_ever_met_bad_machines_is_still_of_the_run(store: Store) -> None:
    uid = _store(store, build.failed(status=Status.INFRA))
    assert store.load_run(uid).cases == [build.case()]


def test_expired_samples_leave_the_rest(store: Store) -> None:
    uid = _store(store, build.job())
    store._door.write(lambda connection: connection.exec_driver_sql("DELETE FROM sample"))
    (back,) = store.jobs(uid)
    assert [one.samples_s for one in back.measurements] == [()] * 6
    assert [one.error_l2 for one in back.measurements] == [1e-7] * 6

"""Who carries a run out, on both engines."""

import pytest
import store_builders as build

from perftrack.errors import UsageError
from perftrack.model import Status
from perftrack.store import Store

pytestmark = pytest.mark.fault


@pytest.fixture
def run_uid(store: Store) -> str:
    run = build.run()
    store.begin_run(run)
    return run.uid


def test_one_process_at_a_time_carries_a_run_out(store: Store, url: str, run_uid: str):
    with Store.open(url) as other:
        assert not other.owned(run_uid)
        with store.own(run_uid):
            assert other.owned(run_uid)
            with pytest.raises(UsageError, match="is being measured by another process"), other.own(run_uid):
                pass
            with other.own("f" * 32):
                assert other.owned(run_uid), "another run is another's business"
        with other.own(run_uid):
            assert store.owned(run_uid)


def test_a_run_is_interrupted_once_and_opened_again(store: Store, run_uid: str):
    assert store.interrupt(run_uid, 5)
    assert not store.interrupt(run_uid, 6)
    run = store.load_run(run_uid).run
    assert (run.state, run.finished_us) == ("interrupted", 5)
    store.reopen(run_uid)
    run = store.load_run(run_uid).run
    assert (run.state, run.finished_us) == ("running", None)
    store.finish_run(run_uid, state="complete", finished_us=7, summaries=[], findings=[])
    store.reopen(run_uid)
    assert store.state(run_uid) == "complete"


def test_a_job_that_is_tried_again_gets_the_next_number(store: Store, run_uid: str):
    assert store.last_attempts(run_uid) == {}
    for attempt in (1, 2):
        failed = build.failed(attempt=attempt, status=Status.INFRA)
        store.add_job(run_uid, build.case(), failed, build.device())
    assert list(store.last_attempts(run_uid).values()) == [2]

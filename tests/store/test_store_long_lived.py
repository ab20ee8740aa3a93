"""A store of many years: more rows of each kind than a statement takes values, or a condition has parts."""

import pytest
import store_builders as build
from store_copies import beside, copy_rows, word

from perftrack.store import Store
from perftrack.store.frames import Database


@pytest.fixture
def one_run(store: Store) -> Store:
    run = build.run(head=build.revision(1), base=None)
    store.begin_run(run)
    store.add_job(run.uid, build.case(), build.job(), build.device())
    store.finish_run(run.uid, state="complete", finished_us=1, summaries=[build.summary()], findings=[build.finding()])
    return store


def test_a_thousand_series_that_ended_at_a_commit_each(one_run: Store) -> None:
    count = 1200
    copy_rows(one_run, "revision", count, id=beside, sha=word, tree=word, position=beside)
    copy_rows(one_run, "run", count, id=beside, uid=word, head_id=beside)
    copy_rows(one_run, "run_side", count, id=beside, run_id=beside, revision_id=beside)
    copy_rows(one_run, "kernel_case", count, id=beside, key=word)
    copy_rows(one_run, "series", count, id=beside, case_id=beside)
    copy_rows(one_run, "result", count, series_id=beside, run_side_id=beside, time_s=lambda number: number * 1e-6)
    latest = Database(one_run).latest().droplevel(["suite", "device", "variant"])
    assert len(latest) == count + 1
    assert latest.loc[build.case().key, "median_us"] == 10.0
    for number in (1, 2, 1000, count):
        found = latest.loc[str(number)]
        assert (found["commit"], found["commit_seq"]) == (str(number), 1000 + number)
        assert found["median_us"] == pytest.approx(number)

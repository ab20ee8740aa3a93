"""A store of many years: more rows of each kind than a statement takes values, or a condition has parts."""

from collections.abc import Iterator

import pytest
import store_builders as build
from store_copies import beside, copy_rows, word

from perftrack.judge.life import CaseId
from perftrack.store import Store, regressions
from perftrack.store.frames import Database

MANY = 65_600
"""More than PostgreSQL takes values in one statement; SQLite takes 250,000."""


@pytest.fixture
def one_run(store: Store) -> Store:
    return _filled(store)


@pytest.fixture
def on_server(postgresql_url: str) -> Iterator[Store]:
    with Store.open(postgresql_url) as store:
        yield _filled(store)


def _filled(store: Store) -> Store:
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


def test_more_runs_than_a_statement_takes_values(on_server: Store) -> None:
    copy_rows(on_server, "run", MANY, id=beside, uid=word)
    copy_rows(on_server, "job_attempt", 2, id=beside, run_id=lambda number: (number - 1) * (MANY - 1) + 1001)
    entries = {one.run.uid: one for one in on_server.runs()}
    assert len(entries) == MANY + 1
    assert {uid: one.jobs for uid, one in entries.items() if one.jobs} == {build.run().uid: 1, "1": 1, str(MANY): 1}
    assert [uid for uid, one in entries.items() if one.verdicts] == [build.run().uid]


def test_more_cases_than_a_statement_takes_words(on_server: Store) -> None:
    copy_rows(on_server, "kernel_case", 2, id=beside, key=lambda number: word(number * MANY))
    cases = [CaseId("elementwise", str(number), "fused") for number in range(1, 2 * MANY + 1)]
    numbers = on_server.read(lambda connection: regressions.case_numbers(connection, cases))
    assert numbers == {("elementwise", str(MANY)): 1001, ("elementwise", str(2 * MANY)): 1002}

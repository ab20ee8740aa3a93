"""Looking across runs: names, order, devices."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import store_builders as build

from perftrack.errors import UsageError
from perftrack.model import Status
from perftrack.store import Store, glob


def _measured(store: Store, number: int, **changes: Any) -> str:
    """A finished run of the commit at position `number`."""
    run = build.run(number, **({"head": build.revision(number), "base": None} | changes))
    store.begin_run(run)
    store.add_job(run.uid, build.case(), build.job(), build.device())
    summaries = [build.summary(time_s=1e-5 * number), build.summary(variant="unfused", speedup=None)]
    store.finish_run(run.uid, state="complete", finished_us=1, summaries=summaries, findings=[build.finding()])
    return run.uid


def test_history_is_in_topological_order_whatever_the_dates(store: Store) -> None:
    _measured(store, 3, head=build.revision(3, committed_us=1))
    _measured(store, 1, head=build.revision(1, committed_us=9))
    _measured(store, 8, head=build.revision(8, position=None, committed_us=5))
    _measured(store, 2, head=build.revision(2, committed_us=5))
    points = store.history(build.case().key, variant="fused")
    assert [point.revision.revision.position for point in points] == [1, 2, 3, None]
    assert [point.summary.time_s for point in points] == [1e-5 * number for number in (1, 2, 3, 8)]
    assert {point.baseline for point in points} == {"unfused"}
    assert points[0].revision.revision == build.revision(1, committed_us=9)


def test_history_can_be_narrowed(store: Store) -> None:
    _measured(store, 1)
    key = build.case().key
    assert len(store.history(key)) == 2
    assert len(store.history(key, variant="fused", device="EPYC*")) == 1
    assert store.history(key, device="H200*") == []
    assert store.history(key, suite_name="other") == []
    assert store.history("add*") == []


def test_a_run_is_found_by_its_first_digits(store: Store) -> None:
    first, second = _measured(store, 1), _measured(store, 2)
    assert store.find_run(first[:4]) == first
    assert store.find_run(second) == second
    assert store.find_run("latest") == store.latest_run() == second
    assert store.latest_run("kernels") == second
    assert store.latest_run("elsewhere") is None


def test_latest_is_the_run_that_started_last(store: Store) -> None:
    newest = _measured(store, 5, started_us=9_000_000_000_000_000)
    _measured(store, 6, started_us=5)
    assert store.find_run("latest") == newest


def test_names_of_runs_that_do_not_help_are_answered_in_words(store: Store) -> None:
    with pytest.raises(UsageError, match=r"has no run yet: `perftrack submit` makes one"):
        store.find_run("latest")
    with pytest.raises(UsageError, match=r"has no run 'abc'; it has none yet"):
        store.find_run("abc")
    uids = [_measured(store, number, uid=f"cafe{number:028x}") for number in (1, 2)]
    with pytest.raises(UsageError, match=rf"run 'cafe' is ambiguous: {uids[1]}, {uids[0]}; give more digits"):
        store.find_run("cafe")
    for unknown in ("zzz", "", "caf_", "%"):
        with pytest.raises(UsageError, match=f"the newest are {uids[1][:8]}"):
            store.find_run(unknown)
    with pytest.raises(UsageError, match="has no run deadbeef"):
        store.load_run("deadbeef")


def test_a_revision_is_found_by_its_first_digits(store: Store) -> None:
    _measured(store, 1)
    found = store.find_revision(None, "0000001")
    assert (found.repo, found.revision.sha) == ("kernels", build.revision(1).sha)
    assert store.find_revision("kernels", build.revision(1).sha) == found
    with pytest.raises(UsageError, match="no results of a revision 'beef'"):
        store.find_revision(None, "beef")
    with pytest.raises(UsageError, match="no results"):
        store.find_revision("elsewhere", "0000001")
    _measured(store, 2)
    with pytest.raises(UsageError, match=r"revision '00000' is ambiguous: kernels 0000001 .* kernels 0000002"):
        store.find_revision(None, "00000")


def test_a_clean_commit_goes_before_its_dirty_trees(store: Store) -> None:
    trees = {"clean": build.revision(1)}
    trees["dirty"] = build.revision(1, dirty=True, tree="d" * 40)
    for number, revision in enumerate(trees.values(), 1):
        _measured(store, number, head=revision)
    assert store.find_revision(None, "0000001").revision.dirty is False
    assert store.find_revision(None, "0000001+dirty").revision.tree == "d" * 40
    assert store.find_revision(None, "dddd").revision.dirty is True
    _measured(store, 3, head=build.revision(1, dirty=True, tree="e" * 40))
    with pytest.raises(UsageError, match=r"0000001\+dirty \(tree ddddddd\)"):
        store.find_revision(None, "0000001+dirty")


def test_summaries_of_a_revision(store: Store) -> None:
    uids = [_measured(store, 1), _measured(store, 4, head=build.revision(1))]
    _measured(store, 2)
    points = store.summaries("0000001", device="EPYC-*")
    assert [point.run_uid for point in points] == [uids[0]] * 2 + [uids[1]] * 2
    assert store.summaries(store.find_revision(None, "0000001")) == points
    assert store.summaries("0000001", device="H200") == []
    assert store.summaries("beef") == []


def test_findings_are_those_of_the_newest_run_that_compared_the_two(store: Store) -> None:
    _measured(store, 7, base=build.revision(6))
    base, head = (store.find_revision(None, digits) for digits in ("0000006", "0000007"))
    assert store.findings(base, head) == [build.finding()]
    assert store.findings(head, base) == []


def test_devices_say_how_much_they_were_used(store: Store) -> None:
    run = build.run()
    store.begin_run(run)
    for number in (1, 2):
        result = build.job(round=number, started_us=number)
        store.add_job(run.uid, build.case(), result, build.device())
    store.add_job(run.uid, build.case(), build.failed(round=3, status=Status.INFRA, started_us=9), build.device(2))
    one, two = store.devices()
    assert (one.device, one.jobs, one.last_us, one.environment) == (build.device(1), 2, 2, build.ENVIRONMENT)
    assert (two.device, two.jobs, two.last_us, two.environment) == (build.device(2), 1, 9, None)


def test_runs_are_listed_newest_first(store: Store) -> None:
    uids = [_measured(store, number) for number in (1, 2, 3)]
    entries = store.runs(last=2)
    assert [entry.run.uid for entry in entries] == uids[:0:-1]
    assert (entries[0].jobs, entries[0].verdicts) == (1, {"slower": 1})
    assert store.runs(repo="elsewhere") == []
    assert len(store.runs()) == 3


def test_the_number_of_statements_does_not_grow_with_the_run(store: Store) -> None:
    counts: list[int] = []
    for size in (1, 10):
        run = build.run(size)
        store.begin_run(run)
        for number in range(size):
            key = f"add[n={number}]"
            store.add_job(run.uid, build.case(key), build.job(case_key=key), build.device())
        statements: list[str] = []

        def note(*details: Any, into: list[str] = statements) -> None:
            into.append(details[2])

        sa.event.listen(store._door._reader, "before_cursor_execute", note)
        store.jobs(run.uid)
        store.load_run(run.uid)
        sa.event.remove(store._door._reader, "before_cursor_execute", note)
        counts.append(len(statements))
    assert counts[0] == counts[1]


@pytest.mark.parametrize(
    ("pattern", "matched"),
    [
        ("add[n=1]", ["add[n=1]"]),
        ("add*", ["add[n=1]", "add[n=12]"]),
        ("add[n=1?]", ["add[n=12]"]),
        ("*[n=1]", ["add[n=1]", "mul[n=1]"]),
        ("ADD*", []),
        ("", []),
    ],
)
def test_only_stars_and_question_marks_are_wild(pattern: str, matched: list[str]) -> None:
    assert glob.matching(pattern, ["add[n=1]", "add[n=12]", "mul[n=1]"]) == matched


@pytest.mark.parametrize("question", ["history", "summaries", "load_run", "jobs", "done_jobs", "finish_run"])
def test_no_question_reads_a_whole_table_of_facts(tmp_path: Path, question: str) -> None:
    """SQLite says what it will do; with statistics of a table that is not small."""
    with Store.open(str(tmp_path / "perf.db")) as store:
        uids = [_measured(store, number) for number in range(1, 21)]
        store._door.write(lambda connection: connection.exec_driver_sql("ANALYZE"))
        ask: dict[str, Callable[[], Any]] = {
            "history": lambda: store.history(build.case().key, variant="fused"),
            "summaries": lambda: store.summaries("0000007"),
            "finish_run": lambda: store.finish_run(
                uids[3], state="complete", finished_us=1, summaries=[build.summary()], findings=[]
            ),
        }
        statements: list[tuple[str, Any]] = []

        def note(*details: Any) -> None:
            statements.append((details[2], details[3]))

        for made in (store._door._reader, store._door._writer):
            sa.event.listen(made, "before_cursor_execute", note)
        ask.get(question, lambda: getattr(store, question)(uids[3]))()
        for made in (store._door._reader, store._door._writer):
            sa.event.remove(made, "before_cursor_execute", note)
        plans = [
            step[3]
            for text, values in statements
            if text.startswith(("SELECT", "DELETE", "UPDATE"))
            for step in store.read(
                lambda connection, text=text, values=values: connection.exec_driver_sql(
                    f"EXPLAIN QUERY PLAN {text}", values
                ).fetchall()
            )
        ]
    facts = ("result", "job_attempt", "measurement", "sample", "finding", "run")
    assert len(plans) > 0
    assert [step for step in plans if step.startswith(tuple(f"SCAN {table}" for table in facts))] == []

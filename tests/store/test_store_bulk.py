"""Batches of finished jobs: one transaction each, harmless to repeat, on both engines."""

import msgspec
import pytest
import sqlalchemy as sa
import store_builders as build
from hypothesis import given, settings
from hypothesis import strategies as st
from store_builders import ENVIRONMENT, case, device, run

from perftrack.errors import StoreError
from perftrack.judge.value import Summary
from perftrack.model import JobResult, Measurement, Method, Status
from perftrack.store import FinishedJob, Store, bulk, measured, rows, schema, write
from perftrack.store.inserting import insert

METHOD = Method(name="another tool", timer="host", cache="hot")


def job(key="sum[n=1]", time_s=1e-6, samples_s=(1e-6, 2e-6), **fields):
    of = case(key, baseline="", variants=("time",))
    card = device()
    result = JobResult(
        suite=of.suite,
        case_key=key,
        device_class=card.device_class,
        round=1,
        attempt=1,
        status=Status.OK,
        device_uuid=card.uuid,
        environment=ENVIRONMENT,
        measurements=(
            Measurement(
                side="head", variant="time", status=Status.OK, samples_s=samples_s, blocks=(0,) * len(samples_s)
            ),
        ),
        started_us=5,
    )
    answer = Summary(
        suite=of.suite,
        case_key=key,
        device_class=card.device_class,
        device_uuid=card.uuid,
        environment_digest=ENVIRONMENT.digest,
        variant="time",
        side="head",
        status=Status.OK,
        time_s=time_s,
        samples=len(samples_s),
        rounds=1,
        **fields,
    )
    return FinishedJob(case=of, attempts=((result, card),), answers=((answer, METHOD),))


def test_what_goes_in_comes_out(store):
    new = run(base=None)
    store.begin_run(new)
    jobs = [job(f"sum[n={number}]", (number + 1) * 1e-6) for number in range(3)]
    assert store.add_finished(new.uid, jobs) == 3
    assert store.state(new.uid) == "running"
    store.close_finished(new.uid, finished_us=9, problems=["one record"])
    found = store.load_run(new.uid)
    assert (found.run.state, found.run.finished_us, found.run.problems) == ("complete", 9, ("one record",))
    assert found.summaries == [one.answers[0][0] for one in jobs]
    assert found.cases == [one.case for one in jobs]
    assert store.jobs(new.uid) == [one.attempts[0][0] for one in jobs]
    assert {point.method_digest for point in store.history("sum[n=1]")} == {METHOD.digest}
    assert {point.baseline for point in store.history("sum[n=1]")} == {""}


def test_code_that_no_answer_has_is_stored_too(store):
    new = run(base=None)
    store.begin_run(new)
    one = job()
    ((result, card),) = one.attempts
    (head,) = result.measurements
    first = msgspec.structs.replace(head, side="base", resources=build.RESOURCES)
    attempt = msgspec.structs.replace(result, measurements=(head, first))
    assert store.add_finished(new.uid, [msgspec.structs.replace(one, attempts=((attempt, card),))]) == 1
    (stored,) = store.jobs(new.uid)
    assert {each.side: each.resources for each in stored.measurements} == {
        "head": head.resources,
        "base": build.RESOURCES,
    }


def test_a_repeat_is_a_no_op_and_other_content_an_error(store):
    new = run(base=None)
    store.begin_run(new)
    first, second = job("a"), job("b")
    assert store.add_finished(new.uid, [first]) == 1
    assert store.add_finished(new.uid, [first, second]) == 1
    with pytest.raises(StoreError, match="a on EPYC-9654-2c is stored already with other content"):
        store.add_finished(new.uid, [job("c"), job("a", samples_s=(3e-6,))])
    assert [one.case_key for one in store.load_run(new.uid).summaries] == ["a", "b"]


@pytest.mark.parametrize("bad", [0.0, -1.0, float("inf"), float("nan")])
def test_a_time_that_is_none_is_refused_and_nothing_of_its_batch_stays(store, bad):
    new = run(base=None)
    store.begin_run(new)
    with pytest.raises(StoreError):
        store.add_finished(new.uid, [job("a"), job("b", bad)])
    assert store.load_run(new.uid).summaries == []
    assert store.jobs(new.uid) == []


def test_a_run_that_is_not_there_has_no_state(store):
    assert store.state("0" * 32) is None


@settings(max_examples=6, deadline=None)
@given(number=st.integers(0, 2**40), order=st.lists(st.integers(0, 3), min_size=1, max_size=5))
def test_any_order_and_repetition_of_batches_gives_the_same_table(shared_store, number, order):
    new = msgspec.structs.replace(run(base=None), uid=f"{number:032x}")
    shared_store.begin_run(new)
    jobs = [job(f"case{at}", (at + 1) * 1e-6) for at in range(4)]
    for at in order:
        shared_store.add_finished(new.uid, [jobs[at]])
    shared_store.add_finished(new.uid, jobs)
    assert shared_store.load_run(new.uid).summaries == [one.answers[0][0] for one in jobs]


def test_two_importers_of_one_file_at_once_store_it_once(store, url):
    """The second looks for what is there before the first has written, and writes after it."""
    new = run(base=None)
    store.begin_run(new)
    same, other = [job("a"), job("b"), job("c")], [job("a"), job("b", samples_s=(3e-6,))]
    with Store.open(url) as elsewhere:
        writer = write.Writer(elsewhere._door)
        late = bulk._Batch(elsewhere._door, writer.dimensions, writer.header(new.uid), same)
        at_odds = bulk._Batch(elsewhere._door, writer.dimensions, writer.header(new.uid), other)
        assert store.add_finished(new.uid, same[:2]) == 2
        assert late.write() == 1
        with pytest.raises(StoreError, match="b on EPYC-9654-2c is stored already with other content"):
            at_odds.write()
    assert store.jobs(new.uid) == [one.attempts[0][0] for one in same]


def test_rows_made_together_are_those_made_one_by_one():
    numpy = pytest.importorskip("numpy")
    odd = (
        build.measurement(message="a\0b", host_s=numpy.float64(0.1), clock_mhz=1590.0),
        build.measurement("base", samples_s=(), blocks=(), status=Status.WRONG, error_l2=None),
    )
    attempts = [(7, build.job()), (8, build.failed()), (9, build.job(measurements=odd))]
    numbers = {build.RESOURCES: 5}
    wanted = [
        (number, ordinal, one) for number, attempt in attempts for ordinal, one in enumerate(attempt.measurements)
    ]
    made = [dict(zip(measured.MEASUREMENT, row, strict=True)) for row in measured.measurement_rows(attempts, numbers)]
    assert made == [
        {"job_attempt_id": number, "resources_id": 5, **rows.measurement_row(one, ordinal)}
        for number, ordinal, one in wanted
    ]
    assert {type(value) for row in made for value in row.values()} == {int, float, str, type(None)}
    packed = [dict(zip(measured.SAMPLE, row, strict=True)) for row in measured.sample_rows(attempts)]
    assert packed == [
        {"job_attempt_id": number, **row} for number, _, one in wanted if (row := rows.sample_row(one)) is not None
    ]
    assert measured.measurement_rows([(8, build.failed())], numbers) == []
    columns = rows.job_columns([attempt for _, attempt in attempts])
    together = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    assert together == [rows.job_row(attempt) for _, attempt in attempts]
    assert {type(value) for row in together for value in row.values()} == {int, float, str, bytes}


def test_many_rows_at_once_are_the_same_rows(store):
    """Enough of them that PostgreSQL gets them by way of a temporary table, twice in one transaction."""
    store.begin_run(build.run())
    store.add_job(build.run().uid, build.case(), build.job(), build.device())
    odd = ["a\tb\\N", "", "\N{SNOWMAN} 'x'", "line\nbreak"]
    given = [
        {
            "job_attempt_id": 1,
            "side": "head",
            "variant": f"{odd[at % 4]}{at}",
            "ordinal": at,
            "status": "ok",
            "message": odd[at % 4],
            "calls_per_sample": 2**60 + at,
            "mode": "",
            "error_l2": None if at % 3 else at * 1e-309,
            "host_s": 0.1 * at,
            "resources_id": 1,
        }
        for at in range(600)
    ]
    blob = bytes([7, 0, 92])
    packed = [
        {"side": "head", "variant": row["variant"], "encoding": 1, "samples_s": blob, "blocks": b""} for row in given
    ]

    def work(connection):
        number = connection.scalar(sa.select(schema.job_attempt.c.id))
        used = connection.scalar(sa.select(schema.resources.c.id))
        rows = [row | {"job_attempt_id": number, "resources_id": used} for row in given]
        for some in (rows[:550], rows):
            insert(connection, schema.measurement, some, tail="ON CONFLICT DO NOTHING")
        insert(connection, schema.sample, [row | {"job_attempt_id": number} for row in packed])
        names = ("variant", "ordinal", "message", "calls_per_sample", "error_l2", "host_s")
        question = sa.select(*(schema.measurement.c[name] for name in names)).where(schema.measurement.c.status == "ok")
        there = map(tuple, connection.execute(question.where(schema.measurement.c.calls_per_sample >= 2**60)))
        expected = [tuple(row[name] for name in names) for row in rows]
        assert sorted(there, key=lambda row: row[1]) == expected
        same = (schema.sample.c.samples_s == blob, schema.sample.c.blocks == b"")
        blobs = sa.select(sa.func.count()).where(*same)
        assert connection.scalar(blobs) == 600

    store._door.write(work)

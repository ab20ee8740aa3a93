"""Imported series beside the others: the same commands show them, and nobody invents a speedup for them."""

import pytest
from interop_builders import google_file, google_record, pytest_file, pytest_record

from perftrack import interop
from perftrack.cli import exporting
from perftrack.cli import files as commands
from perftrack.interop import grouping
from perftrack.interop.export import EXPORTS
from perftrack.interop.formats import FORMATS
from perftrack.pipeline.exports import export_run
from perftrack.pipeline.imports import Request, import_files
from perftrack.pipeline.reports import histories_of, report_of
from perftrack.report import render, tables
from perftrack.store.frames import Database


def test_the_commands_know_every_format():
    assert (commands.FORMATS, exporting.EXPORTS) == (FORMATS, EXPORTS)
    assert interop.__doc__


def test_frames_show_them_without_a_speedup(load, store):
    load(pytest_file(pytest_record(data=[1e-6, 2e-6, 3e-6])))
    (row,) = Database(store).results(case="test_sum*").to_dict("records")
    assert (row["median_us"], row["p10_us"], row["variant"], row["baseline"]) == (2.0, pytest.approx(1.2), "time", "")
    for name in ("speedup", "speedup_low", "baseline_us", "fusion_gain", "vectorisation", "gbps", "utilization"):
        assert row[name] != row[name], name
    assert row["cold"] is False
    assert Database(store).rounds()["median_us"].tolist() == [2.0]
    assert len(Database(store).devices()) == 1


def test_history_and_report_show_them(load, store):
    for number, day in ((1, "2024-01-01"), (2, "2024-01-02")):
        record = google_record(real_time=100.0 * number, cpu_time=0)
        load(google_file(record, date=f"{day}T00:00:00+00:00", commit=f"{number}" * 40))
    (history,) = histories_of(store, "BM_Copy/64", device="", variant="", last=10)
    assert [point.time_s for point in history.points] == [1e-7, 2e-7]
    assert {(point.speedup, point.baseline_s) for point in history.points} == {(None, None)}
    assert "100.0 % slower" in tables.history(history)
    report = report_of(store, store.find_run("latest"))
    assert report.exit_code == 0
    assert "BM_Copy/64" in render(report, "text", terminal=False)


def test_results_without_raw_times_are_never_called_slower_or_faster(load, store):
    for number in (1, 2):
        record = google_record(real_time=100.0 * number, cpu_time=0)
        load(google_file(record, date=f"2024-01-0{number}", commit=f"{number}" * 40))
    (row,) = Database(store).compare("1111111", "2222222").to_dict("records")
    assert (row["verdict"], row["paired"]) == ("ambiguous", False)


def test_other_tools_jobs_do_not_say_what_a_job_takes(load, store):
    load(pytest_file(pytest_record()))
    assert store.costs("sums") == {}


def test_readings_sorted_on_disk_are_those_sorted_in_memory(load, stored, monkeypatch):
    records = [
        google_record(f"BM_{at * 7 % 23}", real_time=at + 1.0, cpu_time=0, repetition_index=at // 23)
        for at in range(46)
    ]
    monkeypatch.setattr(grouping, "CHUNK_READINGS", 5)
    report = load(google_file(*records))
    assert report.results == 23
    assert {one.samples for one in stored().values()} == {2}
    for (_, case, _), one in stored().items():
        mine = [record["real_time"] for record in records if record["name"] == case]
        assert one.time_s == pytest.approx(sum(mine) / 2 * 1e-9)


def test_export_of_a_stored_run(load, store):
    load(pytest_file(pytest_record()))
    text = export_run(store, "latest", "openmetrics", device="cpu-*")
    assert 'case="test_sum[10]",variant="time",device_class="cpu-Intel-Core-i7-4771-8c"} 2e-06' in text


@pytest.mark.parametrize(
    ("pattern", "runs", "results"),
    [
        ("pytest-benchmark/*.json", 15, 15),
        ("google-benchmark/*.json", 4, 58),
        ("nvbench/*.json", 1, 302),
        ("asv/*.json", 19, 241),
        ("github-action-benchmark/*", 3, 10),
    ],
)
def test_real_files(real, store, tmp_path, pattern, runs, results):
    request = Request(start=tmp_path, files=tuple(real(pattern)))
    first = import_files(request, store)
    assert sum(len(one.runs) for one in first.files) == runs
    assert sum(one.results for one in first.files) == results
    assert sum(one.notes.bad_count for one in first.files) == 0
    again = import_files(request, store)
    assert sum(one.known for one in again.files) == runs
    assert sum(one.results for one in again.files) == 0
    frame = Database(store).results()
    assert len(frame) == results
    assert frame["speedup"].isna().all()
    assert (frame["median_us"].isna() == (frame["status"] != "ok")).all()

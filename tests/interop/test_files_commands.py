"""`perftrack import` and `perftrack export` as users type them."""

import json
import os

import pytest
from click.testing import CliRunner
from interop_builders import pytest_file, pytest_record

from perftrack.cli.app import app


@pytest.fixture
def run(tmp_path, template, monkeypatch):
    """The command in an empty folder, with a database of its own."""
    (tmp_path / "perf.db").write_bytes(template.read_bytes())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PERFTRACK_DB", str(tmp_path / "perf.db"))

    def made(*args):
        return CliRunner().invoke(app, [str(arg) for arg in args], standalone_mode=False)

    return made


def test_import_says_what_went_in_and_where(run, write):
    path = write(pytest_file(pytest_record("a"), pytest_record("b")))
    done = run("import", path)
    assert done.return_value == 0
    assert done.stdout.startswith(f"{path}: 2 results of 5b78858 on cpu-Intel-Core-i7-4771-8c (pytest-benchmark), run ")
    again = run("import", path)
    assert (again.return_value, again.stdout) == (0, f"{path}: stored before, nothing to do\n")
    shown = run("history", "a", "--format", "json")
    assert json.loads(shown.stdout)[0]["points"][0]["time_s"] == 2e-6


def test_what_cannot_be_read_is_said_on_stderr_and_ends_with_4(run, write):
    done = run("import", write(pytest_file(pytest_record("a"), pytest_record("b", median="x"))))
    assert done.return_value == 4
    assert "record 2, byte " in done.stderr
    assert '`stats.median` is "x", not a number (cannot be read)' in done.stderr
    assert "1 result of" in done.stdout


def test_nothing_to_store_ends_with_4(run, write):
    done = run("import", write([{"name": "memory", "unit": "MB", "value": 1}]))
    assert done.return_value == 4
    assert '"memory" is in "MB", which is no time (left out)' in done.stderr


def test_one_bad_file_among_several_ends_with_2(run, write):
    done = run("import", write(b"hello", "bad.txt"), write(pytest_file(pytest_record("a")), "good.json"))
    assert done.return_value == 2
    assert "bad.txt cannot be told: give --format" in done.stderr
    assert "good.json: 1 result " in done.stdout


def test_a_file_name_that_is_no_utf_8_is_printed(run, write):
    done = run("import", write(pytest_file(pytest_record("a")), os.fsdecode(b"caf\xe9.json")))
    assert done.return_value == 0
    assert "/caf\ufffd.json: 1 result of " in done.stdout


def test_a_format_can_be_named(run, write):
    done = run("import", "--format", "bencher", write({"a": {}}), "--suite", "mine")
    assert done.return_value == 4
    assert "no results" in done.stdout


def test_export_writes_what_was_imported(run, write, tmp_path):
    run("import", write(pytest_file(pytest_record("a"))))
    done = run("export", "--format", "bencher")
    assert json.loads(done.stdout) == {"tests/test_sum.py: a time": {"latency": {"value": 2000}}}
    assert run("export", "--format", "openmetrics", "-o", tmp_path / "out.txt").stdout == ""
    assert (tmp_path / "out.txt").read_text().endswith("# EOF\n")


def test_export_refuses_a_device_that_the_run_has_not(run, write):
    run("import", write(pytest_file(pytest_record("a"))))
    done = run("export", "--format", "bencher", "-d", "H100*")
    assert "has no device 'H100*'; it has cpu-Intel-Core-i7-4771-8c" in str(done.exception)

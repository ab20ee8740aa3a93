"""Sessions of pytest-benchmark as `pytest --perftrack` stores them, and what they are held against."""

import json
import re
import shutil
import tempfile
from pathlib import Path

import pytest
from interop_builders import pytest_file, pytest_record

from perftrack.errors import PerftrackError, UsageError
from perftrack.pipeline.imports import Request, import_files
from perftrack.pipeline.recording import record
from perftrack.store import Store

FAST, SLOW = 1e-6, 2e-6
NO_COMMIT = {"id": "unversioned", "project": "repo"}


def session(time_s, minute, **fields):
    """One case, five times that lie close together."""
    data = [time_s * factor for factor in (0.998, 0.999, 1.0, 1.001, 1.002)]
    made = pytest_record(median=time_s, data=data)
    return pytest_file(made, datetime=f"2026-05-01T10:{minute:02}:00+00:00", **fields)


def against(recorded):
    """The word and the revision that the one case was held against; the word alone where it did not move."""
    found = re.search(r"(slower|faster) than at (\S+)$", "\n".join(recorded.lines), re.MULTILINE)
    return found.groups() if found else re.search(r"1 (\w+)$", recorded.lines[-1])[1]


@pytest.fixture
def url(template, tmp_path):
    return str(shutil.copy(template, tmp_path / "perf.db"))


def test_a_revision_without_a_place_in_history_is_not_the_one_before(repo, url, write):
    first = repo.commit("first", {"a": "1"})
    assert against(record(session(FAST, 1), repo.root, url)) == "new"
    placeless = write(session(SLOW, 2, commit_info=NO_COMMIT))
    with Store.open(url) as store:
        import_files(Request(start=repo.root, files=(placeless,)), store)
    repo.commit("second", {"a": "2"})
    assert against(record(session(SLOW, 3), repo.root, url)) == ("slower", first[:7])


def test_a_longer_branch_is_not_the_one_before(repo, url):
    first = repo.commit("first", {"a": "1"})
    record(session(FAST, 1), repo.root, url)
    repo.git("checkout", "-q", "-b", "side")
    for number in range(3):
        repo.commit(f"side {number}", {"b": str(number)})
    assert against(record(session(SLOW, 2), repo.root, url)) == ("slower", first[:7])
    repo.git("checkout", "-q", "main")
    repo.commit("second", {"a": "2"})
    assert against(record(session(SLOW, 3), repo.root, url)) == ("slower", first[:7])


def test_the_nearest_commit_counts_and_not_the_one_measured_last(repo, url):
    repo.commit("first", {"a": "1"})
    second = repo.commit("second", {"a": "2"})
    record(session(FAST, 1), repo.root, url)
    repo.git("checkout", "-q", "HEAD~")
    record(session(SLOW, 2), repo.root, url)
    repo.git("checkout", "-q", "main")
    third = repo.commit("third", {"a": "3"})
    assert against(record(session(SLOW, 3), repo.root, url)) == ("slower", second[:7])
    repo.write({"a": "not committed"})
    assert against(record(session(FAST, 4), repo.root, url)) == ("faster", third[:7])


def test_where_history_has_none_the_one_measured_last_counts(repo, url, write):
    repo.commit("first", {"a": "1"})
    record(session(SLOW, 1), repo.root, url)
    second = repo.commit("second", {"a": "2"})
    record(session(FAST, 2), repo.root, url)
    placeless = write(session(SLOW, 3, commit_info=NO_COMMIT))
    with Store.open(url) as store:
        import_files(Request(start=repo.root, files=(placeless,)), store)
    repo.git("checkout", "-q", "--orphan", "rebased")
    repo.commit("all of it", {"a": "2"})
    assert against(record(session(SLOW, 4), repo.root, url)) == ("slower", second[:7])


def test_outside_a_repository_the_session_before_counts(tmp_path, url):
    for minute, time_s, expected in ((1, FAST, "new"), (2, SLOW, "slower"), (3, SLOW, "same"), (4, FAST, "faster")):
        found = against(record(session(time_s, minute, commit_info=NO_COMMIT), tmp_path, url))
        assert (found if isinstance(found, str) else found[0]) == expected


def test_what_could_not_be_stored_is_kept_beside_what_was_kept_before(repo, tmp_path):
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"no database" * 99)
    sessions = [session(FAST, minute) for minute in (1, 2, 3)]
    names = ["perftrack-not-stored.json", "perftrack-not-stored-2.json", "perftrack-not-stored-3.json"]
    for document, name in zip(sessions, names, strict=True):
        said = rf"broken\.db.*; the results are in {repo.root / name}: `perftrack import` stores them"
        with pytest.raises(UsageError, match=said):
            record(document, repo.root, str(broken))
    assert [json.loads((repo.root / name).read_text()) for name in names] == sessions


def test_where_the_project_cannot_be_written_it_is_kept_with_the_temporary_files(tmp_path, monkeypatch):
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"no database" * 99)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(UsageError, match=r"broken\.db.*; the results are in ") as caught:
        record(session(FAST, 1), Path("/proc"), str(broken))
    (kept,) = tmp_path.glob("perftrack-not-stored-*.json")
    assert str(kept) in str(caught.value)
    assert json.loads(kept.read_text()) == session(FAST, 1)


def test_where_nothing_can_be_written_both_errors_are_said(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", "/proc")
    with pytest.raises(PerftrackError, match=r"/proc/perftrack-pytest-.*; the results are lost, .*/proc/perftrack-not"):
        record(session(FAST, 1), Path("/proc"), str(tmp_path / "perf.db"))


def test_a_session_of_which_nothing_can_be_stored_is_said_and_refused(repo, url):
    repo.commit("first", {"a": "1"})
    bad = [pytest_record(f"t{number}", median=0.0) for number in range(22)]
    recorded = record(pytest_file(*bad), repo.root, url)
    assert (recorded.run, recorded.refused) == (None, True)
    assert recorded.lines[0] == "NOT STORED: no result could be read"
    assert recorded.lines[1] == (
        "not stored: t0: `stats.median` is 0.0, which is no time: it must be above 0 and finite"
    )
    assert recorded.lines[-1] == "not stored: 2 more"
    some = record(pytest_file(*bad[:1], pytest_record("good")), repo.root, url)
    assert (some.refused, some.lines[1][:14]) == (False, "not stored: t0")

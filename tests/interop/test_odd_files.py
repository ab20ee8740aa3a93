"""What real folders hold: other line ends, marks, blank lines, doubles, odd names, broken and torn files."""

import json
import os

import pytest
from interop_builders import (
    COMMIT,
    action_data,
    action_entry,
    asv_file,
    google_file,
    google_record,
    nvbench_file,
    nvbench_state,
    pytest_file,
    pytest_record,
)

from perftrack.errors import UsageError
from perftrack.interop import fields
from perftrack.model import Status
from perftrack.pipeline.imports import Request, import_files

TEXT = json.dumps(pytest_file(pytest_record("a"), pytest_record("b", median=5e-6)), indent=1)
TIMES = {"a": 2e-6, "b": 5e-6}


@pytest.mark.parametrize(
    "content",
    [
        TEXT.replace("\n", "\r\n").encode(),
        TEXT.encode("utf-8-sig"),
        TEXT.encode("utf-16"),
        ("\n\n \t\r\n" + TEXT.replace(",", "\n\n,") + "\n\n\n").encode(),
        b"\xff\xfe" + TEXT.replace("\n", "\r\n").encode("utf-16-le"),
        b"\xfe\xff" + TEXT.encode("utf-16-be"),
    ],
    ids=["crlf", "bom", "utf-16", "blank-lines", "powershell", "big-endian"],
)
def test_line_ends_marks_and_blank_lines_change_nothing(load, times, content):
    report = load(content)
    assert (report.format, report.notes.bad) == ("pytest-benchmark", [])
    assert times() == TIMES


def test_the_same_file_again_and_with_other_line_ends_doubles_nothing(load, store):
    assert load(TEXT).results == 2
    for content in (TEXT, TEXT.replace("\n", "\r\n"), TEXT.encode("utf-8-sig")):
        report = load(content, "other-name.json")
        assert (report.results, report.known) == (0, 1)
    assert len(store.history("a")) == 1


def test_an_import_that_was_interrupted_is_finished_by_the_next(load, store, times, monkeypatch, tmp_path, write):
    from perftrack.pipeline import imports

    records = [pytest_record(f"t{number}", median=(number + 1) * 1e-6) for number in range(5)]
    path = write(pytest_file(*records))
    monkeypatch.setattr(imports, "BATCH_JOBS", 2)
    add, calls = store.add_finished, []

    def failing(uid, batch):
        calls.append(uid)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return add(uid, batch)

    with monkeypatch.context() as patch:
        patch.setattr(store, "add_finished", failing)
        with pytest.raises(KeyboardInterrupt):
            import_files(Request(start=tmp_path, files=(path,)), store)
    assert len(times()) == 2
    assert store.state(calls[0]) == "running"
    assert load(path).results == 5
    assert times() == {f"t{number}": (number + 1) * 1e-6 for number in range(5)}
    assert [(entry.run.state, entry.jobs) for entry in store.runs()] == [("complete", 5)]


@pytest.mark.parametrize(
    ("stats", "said"),
    [
        ({"median": "fast"}, '`stats.median` is "fast", not a number'),
        ({"median": None}, "`stats.median` is null, not a number"),
        ({"median": True}, "`stats.median` is True, not a number"),
        ({"median": 0}, "`stats.median` is 0, which is no time: it must be above 0 and finite"),
        ({"median": -1e-6}, "`stats.median` is -1e-06, which is no time: it must be above 0 and finite"),
        ({"median": [1]}, "`stats.median` is a list, not a number"),
        ({"median": float("nan")}, "`stats.median` is nan, not a finite number"),
        ({"median": 10**400}, "which is no time"),
    ],
)
def test_a_bad_value_is_reported_with_its_place_and_the_rest_goes_in(load, times, stats, said):
    text = json.dumps(pytest_file(pytest_record("a"), pytest_record("bad", **stats), pytest_record("c")))
    report = load(text)
    (problem,) = report.notes.bad
    at = text.index('{"group": null, "name": "bad"')
    assert problem.place == f"results.json, record 2, byte {at}"
    assert problem.text.startswith("bad: ")
    assert said in problem.text
    assert times() == {"a": 2e-6, "c": 2e-6}


def test_records_of_the_wrong_shape(load, times):
    no_name = pytest_record("x")
    del no_name["fullname"], no_name["name"]
    odd = [
        5,
        None,
        [],
        "text",
        {"fullname": "f::a"},
        {"fullname": "f::a", "stats": 3},
        no_name,
        pytest_record(
            "",
        ),
    ]
    report = load(pytest_file(*odd, pytest_record("good")))
    said = [problem.text for problem in report.notes.bad]
    assert said[:4] == [
        "the record is 5, not an object",
        "the record is null, not an object",
        "the record is a list, not an object",
        'the record is "text", not an object',
    ]
    assert said[4:7] == ["`stats` is null, not an object", "`stats` is 3, not an object", "it has no `name`"]
    assert times()["good"] == 2e-6


def test_a_record_that_is_no_json_is_reported_and_the_rest_goes_in(load, times):
    text = TEXT.replace('"rounds": 5', '"rounds": five', 1)
    report = load(text)
    assert report.notes.bad[0].text.startswith("no JSON: Expecting value")
    assert times() == {"b": 5e-6}


@pytest.mark.parametrize(
    ("document", "record"),
    [
        (pytest_file(*(pytest_record(f"t{number}") for number in range(5))), "t4"),
        (google_file(*(google_record(f"t{number}", cpu_time=0) for number in range(5))), "t4"),
        (asv_file(results={f"time_t{number}": [[0.5]] for number in range(5)}), "time_t4"),
        ({f"t{number}": {"latency": {"value": 5}} for number in range(5)}, "t4"),
        ([{"name": f"t{number}", "unit": "ns", "value": 5} for number in range(5)], "t4"),
        (action_data(*(action_entry({"name": "t", "unit": "ns", "value": 5}, number=at) for at in range(5))), "cc4"),
    ],
    ids=["pytest-benchmark", "google-benchmark", "asv", "bencher", "list", "data.js"],
)
def test_of_a_torn_file_everything_before_the_tear_goes_in(load, store, document, record):
    text = json.dumps(document)
    torn = text[: text.rindex(record) + len(record)]
    report = load(torn)
    (problem,) = report.notes.bad
    assert problem.place == f"results.json, byte {len(torn)}"
    assert "the file ends" in problem.text
    found = [one for entry in store.runs() for one in store.load_run(entry.run.uid).summaries]
    assert len(found) == 4
    assert store.runs()[0].run.problems[-1:] in ((str(problem),), ())


@pytest.mark.parametrize("name", ["results.json", "data.js"])
def test_a_second_document_in_the_file_is_reported_and_the_first_goes_in(load, store, name):
    content = {"results.json": pytest_file(pytest_record("a"), pytest_record("b"))}.get(name)
    content = content or action_data(*(action_entry({"name": x, "unit": "ns", "value": 5}) for x in "ab"))
    text = ("window.BENCHMARK_DATA = " if name == "data.js" else "") + json.dumps(content)
    report = load(f"{text}\n{json.dumps(content)}\n", name)
    (problem,) = report.notes.bad
    assert str(problem) == (
        f"{name}, byte {len(text) + 1}: the document ends before this, and the rest is not read: give a file of its own"
    )
    assert {case.key for entry in store.runs() for case in store.load_run(entry.run.uid).cases} == {"a", "b"}
    assert load(f"{text};\n", name).notes.bad == []


def test_a_torn_number_is_not_a_smaller_number(load, times):
    text = json.dumps(asv_file(1, results={"time_a": 1.5, "time_b": 0.1528}, result_columns=None))
    load(text[: text.index("0.1528") + 4])
    assert times() == {"time_a": 1.5}


def test_names_are_kept_apart_and_made_visible(load, times):
    names = ["é λ 漢字 🚀", "a\nb", "a\tb", "\x1b[31mred\x1b[0m", "nul\0", "<b>&amp;</b>", "a,b=c]", " x ", "x" * 5000]
    names += ["\udce9 alone", "x" * 4999 + "y"]
    load(google_file(*(google_record(name, cpu_time=0, real_time=at + 1) for at, name in enumerate(names))))
    found = {round(time * 1e9): case for case, time in times().items()}
    assert len(found) == len(names)
    assert [found[at + 1] for at in range(8)] == [
        "é λ 漢字 🚀",
        "a\\nb",
        "a\\tb",
        "\\x1b[31mred\\x1b[0m",
        "nul\\x00",
        "<b>&amp;</b>",
        "a,b=c]",
        " x ",
    ]
    assert all(name.isprintable() and len(name.encode()) <= fields.MAX_NAME_BYTES for name in found.values())


def test_bytes_that_are_no_utf_8_are_spelled(load, times):
    content = json.dumps(google_file(google_record("caf?", cpu_time=0))).encode().replace(b"?", b"\xe9")
    load(content)
    assert list(times()) == ["caf\\udce9"]


def test_one_bad_time_of_a_record_keeps_no_other_from_going_in(load, stored):
    asv = asv_file(results={"b.time_it": [[0.1, 0.2, 0.0, 0.4], [["1", "2"], ["x", "y"]]]})
    google = google_file(google_record("g1", cpu_time=-1), google_record("g2", real_time="x"))
    bencher = {
        "u": {"build-time": {"value": 0}, "latency": {"value": 5}},
        "v": {"latency": 5, "build-time": {"value": 2}},
    }
    nvbench = nvbench_file(nvbench_state(cold_time_gpu_mean=0, cold_time_cpu_mean=2e-3, batch_time_gpu_mean=1e-3))
    said = [[one.text for one in load(content).notes.bad] for content in (asv, google, bencher, nvbench)]
    no_time = "is {}, which is no time: it must be above 0 and finite".format
    assert said == [
        [f"time_it[param1=2,param2=x]: `result` {no_time('0.0')}"],
        [f"g1: `cpu_time` {no_time('-1')}", 'g2: `real_time` is "x", not a number'],
        [f"u: `build-time.value` {no_time('0')}", "v: `latency` is 5, not an object"],
        [f"copy[N=1024,T=F32]: `nv/cold/time/gpu/mean` {no_time('0')}"],
    ]
    assert {(case, variant): one.time_s for (_, case, variant), one in stored().items()} == {
        ("time_it[param1=1,param2=x]", "time"): 0.1,
        ("time_it[param1=1,param2=y]", "time"): 0.2,
        ("time_it[param1=2,param2=y]", "time"): 0.4,
        ("g1", "real_time"): 2.15e-7,
        ("g2", "cpu_time"): 2.135e-7,
        ("u", "latency"): 5e-9,
        ("v", "build-time"): 2.0,
        ("copy[N=1024,T=F32]", "cpu"): 2e-3,
        ("copy[N=1024,T=F32]", "batch"): 1e-3,
    }


def test_the_same_name_again_is_a_repetition(load, stored):
    same = [{"name": "a", "unit": "ns", "value": value} for value in (10, 30, 20)]
    load(action_data(action_entry(*same)))
    (one,) = stored().values()
    assert (one.time_s, one.samples) == (2e-8, 3)


def test_one_failed_repetition_is_a_failure(load, stored):
    broken = google_record(repetition_index=1, error_occurred=True, error_message="boom")
    load(google_file(google_record(), broken))
    (one,) = [one for (_, _, variant), one in stored().items() if variant == "real_time"]
    assert (one.status, one.message, one.time_s) == (Status.FAILED, "boom", None)


def test_a_device_that_the_file_does_not_list(load):
    report = load(nvbench_file(nvbench_state(7, cold_time_gpu_mean=1e-3)))
    assert [one.text for one in report.notes.bad] == ["`device` is 7, which the file's `devices` do not list"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"\xef\xbb\xbf \r\n", "is empty"),
        (b"hello", "the format of .* cannot be told: give --format, one of pytest-benchmark, google-benchmark"),
        (b'{"a": 1}', "cannot be told"),
        (b"\x89PNG\r\n\x1a\n", "cannot be told"),
    ],
)
def test_what_is_no_file_of_results_is_refused_in_a_sentence(load, content, said):
    with pytest.raises(UsageError, match=said):
        load(content)


def test_a_folder_and_a_missing_file_are_refused(load, tmp_path):
    with pytest.raises(UsageError, match="is a folder; name the files in it"):
        load(tmp_path)
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        load(tmp_path / "nosuch.json")


def test_too_large_a_file_is_refused_before_it_is_read(load, tmp_path):
    path = tmp_path / "huge.json"
    with path.open("wb") as file:
        file.truncate(5 * 2**30)
    with pytest.raises(UsageError, match=r"has 5\.0 GiB; at most 4 GiB"):
        load(path)


def test_a_file_name_that_is_no_utf_8_is_spelled(store, write, tmp_path):
    bare, bad = {"t": {"latency": {"value": 5}}}, pytest_file(pytest_record("a"), 5)
    odd = [write(content, os.fsdecode(name)) for content, name in ((bare, b"caf\xe9.json"), (bad, b"\xff\n.json"))]
    report = import_files(Request(start=tmp_path, files=(*odd, write(TEXT, "last.json"))), store)
    assert [one.error for one in report.files] == ["", "", ""]
    assert report.exit_code == 4
    runs = [store.load_run(one.runs[0]).run for one in report.files]
    assert runs[0].head.subject == r"caf\udce9.json names no commit"
    assert [run.base_note for run in runs] == [
        r"imported from caf\udce9.json (bencher)",
        r"imported from \udcff\n.json (pytest-benchmark)",
        "imported from last.json (pytest-benchmark)",
    ]
    (problem,) = runs[1].problems
    assert problem.startswith(r"\udcff\n.json, record 2, byte ")


def test_a_file_that_cannot_be_read_keeps_no_other_from_being_read(store, write, tmp_path, times):
    files = (write(b"hello", "a.json"), write(TEXT, "b.json"))
    report = import_files(Request(start=tmp_path, files=files), store)
    assert "cannot be told" in report.files[0].error
    assert times() == TIMES
    assert report.exit_code == 2


def test_the_first_problems_are_kept_and_all_are_counted(load):
    report = load(pytest_file(*range(50)))
    assert (len(report.notes.bad), report.notes.bad_count) == (20, 50)


def test_what_the_user_says_is_for_files_that_do_not_say_it(load, store, repo, write):
    sha = repo.commit("first", {"a": "1"})
    bare = write({"t": {"latency": {"value": 5}}})
    asked = {"repo": "mine", "suite": "nightly", "device": "ci-runner", "revision": "HEAD"}
    import_files(Request(start=repo.root, files=(bare,), **asked), store)
    (point,) = store.history("t")
    assert (point.revision.repo, point.revision.revision.sha, point.revision.revision.position) == ("mine", sha, 0)
    assert (point.summary.suite, point.summary.device_class) == ("nightly", "ci-runner")
    full = write(pytest_file(pytest_record("u")), "full.json")
    import_files(Request(start=repo.root, files=(full,), **asked), store)
    (point,) = store.history("u")
    assert (point.revision.repo, point.revision.revision.sha) == ("sums", COMMIT)
    assert point.summary.device_class == "cpu-Intel-Core-i7-4771-8c"


def test_the_same_figures_of_another_revision_are_another_run(store, repo, write):
    path = write({"t": {"latency": {"value": 5}}})
    for number in range(2):
        repo.commit(f"commit {number}", {"a": str(number)})
        for _ in range(2):
            import_files(Request(start=repo.root, files=(path,), revision="HEAD"), store)
    assert [point.revision.revision.position for point in store.history("t")] == [0, 1]


def test_a_commit_that_git_knows_here_is_placed_in_its_history(store, repo, write):
    repo.commit("first", {"a": "1"})
    sha = repo.commit("second", {"a": "2"})
    commit = {"id": sha, "dirty": False, "project": "repo", "time": None}
    path = write(pytest_file(pytest_record(), commit_info=commit))
    import_files(Request(start=repo.root, files=(path,)), store)
    (point,) = store.history("test_sum[10]")
    found = point.revision.revision
    assert (found.position, found.subject, found.tree) == (1, "second", repo.git("rev-parse", "HEAD^{tree}"))


def test_outside_a_repository_a_revision_is_a_whole_commit_id(load, store):
    content = {"t": {"latency": {"value": 5}}}
    assert load(content, revision=COMMIT).revisions == ["5b78858"]
    with pytest.raises(UsageError, match=r"--revision main: .* is in no git repository; give all 40 digits"):
        load(content, revision="main")
    assert store.history("t")[0].revision.revision.sha == COMMIT

"""Each format in each of its versions: what is read, in seconds, and where it is put."""

from array import array

import pytest
from interop_builders import (
    COMMIT,
    action_data,
    action_entry,
    asv_file,
    google_file,
    google_record,
    nvbench_device,
    nvbench_file,
    nvbench_state,
    pytest_file,
    pytest_record,
)

from perftrack.errors import UsageError
from perftrack.model import Status


def only(store):
    (entry,) = store.runs()
    return store.load_run(entry.run.uid)


def cases(stored):
    return {(suite, case): one for (suite, case, _), one in stored().items()}


class TestPytestBenchmark:
    def test_a_result_with_its_revision_device_and_environment(self, load, store):
        report = load(pytest_file(pytest_record(data=[1e-6, 2e-6, 2e-6, 3e-6, 9e-6])))
        assert (report.format, report.results, report.notes.bad) == ("pytest-benchmark", 1, [])
        found = only(store)
        run, (one,), (device,) = found.run, found.summaries, found.devices
        assert (run.repo, run.head.sha, run.head.dirty, run.head.branch) == ("sums", COMMIT, False, "main")
        assert run.head.committed_us == 1_573_873_830_000_000
        assert run.started_us == 1_573_880_400_500_000
        assert (device.device_class, device.node, device.backend) == ("cpu-Intel-Core-i7-4771-8c", "box", "cpu")
        assert (one.suite, one.case_key, one.variant) == ("tests/test_sum.py", "test_sum[10]", "time")
        assert (one.time_s, one.q10_s, one.q90_s, one.samples) == (2e-6, 1.4e-6, pytest.approx(6.6e-6), 5)
        assert (one.speedup, one.baseline_s, one.fusion_gain, one.bandwidth_bytes_per_s) == (None, None, None, None)
        assert found.cases[0].params == {"n": 10}
        (attempt,) = store.jobs(run.uid)
        assert attempt.environment.entries["python"] == "3.12.1"
        assert attempt.environment.entries["pytest-benchmark"] == "5.1.0"
        assert attempt.measurements[0].samples_s == (1e-6, 2e-6, 2e-6, 3e-6, 9e-6)
        assert attempt.measurements[0].calls_per_sample == 7

    def test_the_first_version_has_neither_raw_times_nor_a_cpu_and_any_order(self, load, store):
        record = pytest_record()
        del record["params"]
        report = load(
            {
                "benchmarks": [record],
                "datetime": "2015-08-15T00:01:46.250433",
                "commit_info": {"dirty": True, "id": COMMIT},
                "machine_info": {"node": "minibox", "processor": "x86_64", "python_version": "2.7.3"},
                "version": "2.5.0",
            }
        )
        assert (report.revisions, report.devices) == (["5b78858+dirty"], ["cpu-minibox"])
        (one,) = only(store).summaries
        assert (one.time_s, one.q10_s, one.samples) == (2e-6, None, 5)

    def test_raw_times_that_are_not_all_times_are_not_taken(self, load, store):
        load(pytest_file(pytest_record(data=[1e-6, "... omitted"])))
        (attempt,) = store.jobs(only(store).run.uid)
        assert attempt.measurements[0].samples_s == ()

    def test_each_timer_is_a_method_of_its_own(self, load, store):
        other = pytest_record("test_other")
        other["options"] = {"timer": "process_time"}
        load(pytest_file(pytest_record(), other))
        assert len({point.method_digest for point in store.summaries(COMMIT)}) == 2

    def test_without_a_commit_it_is_a_revision_that_no_commit_can_be_taken_for(self, load):
        report = load(pytest_file(pytest_record(), commit_info={"id": "unversioned", "dirty": False}))
        assert report.revisions[0].startswith("none-")


class TestGoogleBenchmark:
    def test_both_clocks_are_series_of_their_own(self, load, store):
        load(google_file(google_record(real_time=1.5, time_unit="us")))
        found = {one.variant: one for one in only(store).summaries}
        assert {name: one.time_s for name, one in found.items()} == {"real_time": 1.5e-6, "cpu_time": 213.5e-6}
        assert {(one.suite, one.case_key, one.device_class) for one in found.values()} == {
            ("copy_bench", "BM_Copy/64", "cpu-box-4c")
        }
        assert {one.speedup for one in found.values()} == {None}
        assert only(store).run.started_us == 1_575_059_219_000_000

    def test_repetitions_are_one_result_and_their_statistics_none(self, load, stored):
        times = (10.0, 30.0, 20.0)
        repeated = [google_record(real_time=time, repetition_index=at) for at, time in enumerate(times)]
        statistics = [
            google_record(
                f"BM_Copy/64_{name}", run_name="BM_Copy/64", run_type="aggregate", aggregate_name=name, real_time=1.0
            )
            for name in ("mean", "median", "stddev", "cv")
        ]
        load(google_file(*repeated, *statistics))
        assert set(stored()) == {("copy_bench", "BM_Copy/64", name) for name in ("real_time", "cpu_time")}
        one = stored()["copy_bench", "BM_Copy/64", "real_time"]
        assert (one.time_s, one.samples, one.q10_s) == (2e-8, 3, pytest.approx(1.2e-8))

    def test_where_there_are_only_statistics_the_median_counts_and_else_the_mean(self, load, times):
        def aggregate(case, name, time):
            fields = {"run_name": case, "run_type": "aggregate", "aggregate_name": name, "cpu_time": 0}
            return google_record(f"{case}_{name}", real_time=time, **fields)

        report = load(
            google_file(
                *(aggregate("a", name, time) for name, time in (("mean", 3), ("median", 2), ("stddev", 1))),
                aggregate("b", "mean", 3),
                aggregate("c", "cv", 0.1),
            )
        )
        assert times() == {"a": 2e-9, "b": 3e-9}
        assert [str(one) for one in report.notes.left_out] == [
            "results.json, record 5: 'c' has statistics only, and neither mean nor median"
        ]

    def test_statistics_of_versions_without_run_type_are_told_by_their_names(self, load, times):
        def record(name, time):
            return {"name": name, "iterations": 1, "real_time": time, "cpu_time": 0, "time_unit": "ns"}

        names = ("a", "a", "a_mean", "a_stddev", "b_mean", "b_median", "b_stddev", "geometric_mean")
        load(
            google_file(
                *(record(name, time) for time, name in enumerate(names, 10)),
                {"name": "a_BigO", "cpu_coefficient": 1, "real_coefficient": 1, "big_o": "N", "time_unit": "ns"},
                {"name": "a_RMS", "rms": 0.1},
                date="2016-08-02 17:44:46",
            )
        )
        assert times() == {"a": pytest.approx(10.5e-9), "b": 15e-9, "geometric_mean": 17e-9}

    def test_failed_and_skipped_are_statuses(self, load, stored):
        load(
            google_file(
                google_record("broken", error_occurred=True, error_message="no\x07 device", real_time=0.0),
                google_record("absent", skipped=True, skip_message="needs AVX"),
            )
        )
        found = {case: (one.status, one.message, one.time_s) for (_, case), one in cases(stored).items()}
        assert found == {
            "broken": (Status.FAILED, "no\\x07 device", None),
            "absent": (Status.SKIPPED, "needs AVX", None),
        }

    def test_what_the_user_adds_to_the_context_may_be_the_commit(self, load):
        assert load(google_file(google_record(), git_sha=COMMIT)).revisions == ["5b78858"]


class TestNvbench:
    def test_gpu_time_is_by_events_and_on_the_class_that_perftrack_gives_the_card(self, load, store):
        state = nvbench_state(cold_time_gpu_mean=1e-3, cold_time_cpu_mean=2e-3, batch_time_gpu_mean=9e-4)
        state["summaries"].append({"tag": "nv/cold/sample_size", "data": [{"type": "int64", "value": "499"}]})
        state["summaries"][-1]["data"][0]["name"] = "value"
        load(nvbench_file(state))
        found = {one.variant: one for one in only(store).summaries}
        assert {name: one.time_s for name, one in found.items()} == {"gpu": 1e-3, "cpu": 2e-3, "batch": 9e-4}
        assert found["gpu"].samples == 499
        assert {(one.suite, one.case_key) for one in found.values()} == {("copy.bench", "copy[N=1024,T=F32]")}
        (device,) = only(store).devices
        assert (device.device_class, device.backend, device.compute_capability) == ("NVIDIA-H200-140G", "cuda", "9.0")
        assert device.peak_bytes_per_s == 4.8e12

    def test_the_median_of_newer_versions_goes_before_the_mean_as_another_method(self, load, store):
        load(nvbench_file(nvbench_state(cold_time_gpu_mean=2e-3, cold_time_gpu_median=1e-3)))
        load(nvbench_file(nvbench_state(cold_time_gpu_mean=1e-3)))
        points = store.history("copy[N=1024,T=F32]")
        assert [point.summary.time_s for point in points] == [1e-3, 1e-3]
        assert len({point.method_digest for point in points}) == 2

    def test_two_cards_of_one_class_are_two_rounds(self, load, store):
        states = [nvbench_state(number, cold_time_gpu_mean=time) for number, time in ((0, 1e-3), (1, 3e-3))]
        load(nvbench_file(*states, devices=[nvbench_device(0), nvbench_device(1)]))
        (one,) = only(store).summaries
        assert (one.time_s, one.rounds, one.samples) == (2e-3, 2, 2)
        assert [attempt.round for attempt in store.jobs(only(store).run.uid)] == [1, 2]

    def test_skipped_states(self, load, store):
        state = nvbench_state() | {"is_skipped": True, "skip_reason": "too small"}
        load(nvbench_file(state))
        (one,) = only(store).summaries
        assert (one.status, one.message) == (Status.SKIPPED, "too small")

    def test_raw_times_lie_in_a_file_beside_it_and_nowhere_else(self, load, store, write):
        raw = (1e-3, 2e-3, 4e-3)
        path = write(b"", "run.json-bin/0.bin")
        path.write_bytes(array("f", raw).tobytes())
        secret = write(array("f", raw).tobytes(), "../secret.bin")
        summary = {"tag": "nv/json/bin:nv/cold/sample_times", "data": [{"name": "filename", "type": "string"}]}
        for name, expected in (("run.json-bin/0.bin", 3), ("elsewhere/run.json-bin/0.bin", 3), (str(secret), 0)):
            state = nvbench_state(cold_time_gpu_mean=2e-3)
            state["summaries"].append(summary | {"data": [summary["data"][0] | {"value": name}]})
            (uid,) = load(nvbench_file(state)).runs
            (attempt,) = store.jobs(uid)
            assert len(attempt.measurements[0].samples_s) == expected, name

    def test_the_versions_before_1_0(self, load, store):
        number = {"type": "float64", "value": 0.001}
        states = {
            "T=F32": {
                "device": 0,
                "axis_values": {"T": {"type": "string", "value": "F32"}},
                "summaries": {
                    "nv/cold/time/gpu/mean": {"hint": {"type": "string", "value": "duration"}, "value": number}
                },
                "is_skipped": False,
            },
            "T=F64": {
                "device": 0,
                "axis_values": [{"name": "T", "type": "string", "value": "F64"}],
                "summaries": {"Average GPU Time (Cold)": {"values": [{"name": "value", **number}]}},
                "is_skipped": False,
            },
        }
        benchmark = {"index": 0, "name": "copy", "devices": [0], "axes": {}, "states": states}
        load({"devices": [nvbench_device()], "benchmarks": [benchmark]}, suite="mine")
        assert {(one.suite, one.case_key, one.time_s) for one in only(store).summaries} == {
            ("mine", "copy[T=F32]", 1e-3),
            ("mine", "copy[T=F64]", 1e-3),
        }

    def test_a_newer_version_is_refused_by_name(self, load):
        with pytest.raises(UsageError, match="version 2 of NVBench's JSON; perftrack reads version 1"):
            load(nvbench_file(meta={"version": {"json": {"major": 2}}}))


class TestAsv:
    def test_version_2_with_parameters_raw_times_failures_and_skips(self, load, store, stored, write):
        write({"bench.Suite.time_it": {"param_names": ["n", "k"], "unit": "seconds"}}, "benchmarks.json")
        row = [
            [0.5, None, "NaN", 2.0],
            [["1", "2"], ["'a'", "'b'"]],
            "v1",
            1_700_000_123_000,
            1.0,
            [2, None, None, None],
            [[0.4, 0.6], None, None, None],
        ]
        text = asv_file(results={"bench.Suite.time_it": row, "bench.mem_it": [[100]]})
        report = load(__import__("json").dumps(text).replace('"NaN"', "NaN"), "c-env.json")
        found = cases(stored)
        assert {case: (one.status, one.time_s) for (_, case), one in found.items()} == {
            "time_it[k='a',n=1]": (Status.OK, 0.5),
            "time_it[k='b',n=1]": (Status.FAILED, None),
            "time_it[k='a',n=2]": (Status.SKIPPED, None),
            "time_it[k='b',n=2]": (Status.OK, 2.0),
        }
        assert found["bench.Suite", "time_it[k='a',n=1]"].samples == 2
        run = only(store).run
        assert (run.head.sha, run.started_us, run.head.committed_us) == (
            COMMIT,
            1_700_000_123_000_000,
            1_700_000_000_000_000,
        )
        assert report.devices == ["cpu-AMD-EPYC-7763-4c"]
        assert only(store).run.uid in report.runs
        assert store.jobs(run.uid)[0].environment.entries == {
            "python": "3.11",
            "system": "Linux",
            "env_name": "virtualenv-py3.11-numpy",
            "numpy": "2.1",
            "OMP_NUM_THREADS": "1",
        }
        assert [one.text for one in report.notes.left_out] == ['"bench.mem_it" measures no time']

    def test_version_1_has_plain_values_and_objects(self, load, stored):
        results = {
            "time_units.time_plain": 1.5e-5,
            "time_units.time_failed": None,
            "time_units.track_size": 42,
            "time_other.time_param": {"params": [["1", "2"]], "result": [1, 4]},
            "time_ci": {"result": 3, "stats": [{"ci_99": [3.1, 3.9], "q_25": 3, "q_75": 3}]},
        }
        load(asv_file(1, results=results, result_columns=None))
        assert {key: one.time_s for key, one in cases(stored).items()} == {
            ("time_units", "time_plain"): 1.5e-5,
            ("time_units", "time_failed"): None,
            ("time_other", "time_param[param1=1]"): 1.0,
            ("time_other", "time_param[param1=2]"): 4.0,
            ("asv", "time_ci"): 3.0,
        }

    def test_the_unit_of_benchmarks_json_counts(self, load, write, times):
        write({"b.track_it": {"unit": "ms"}, "b.time_it": {"unit": "bytes"}}, "benchmarks.json")
        load(asv_file(results={"b.track_it": [[5]], "b.time_it": [[5]]}), "machine/c-env.json".rpartition("/")[2])
        assert times() == {"track_it": 5e-3}

    def test_files_without_results_are_named_and_no_error(self, load):
        report = load({"a.time_it": {"code": "", "param_names": [], "timeout": 60}, "version": 2}, "benchmarks.json")
        assert (report.runs, report.notes.bad_count) == ([], 0)
        assert "describes asv's benchmarks" in report.notes.left_out[0].text
        report = load({"arch": "x", "cpu": "y", "machine": "z", "version": 1}, "machine.json")
        assert "describes asv's machine" in report.notes.left_out[0].text

    def test_another_version_is_refused_by_name(self, load):
        with pytest.raises(UsageError, match="version 3 of asv's results; perftrack reads 1 and 2"):
            load(asv_file(3))


class TestGithubAction:
    def test_every_entry_of_data_js_is_a_run_of_its_commit(self, load, store):
        bench = {"name": "fib_10", "range": "± 20", "unit": "ns/iter", "value": 100}
        data = action_data(action_entry(bench, number=1), action_entry(bench | {"value": 1234}, number=2))
        text = "window.BENCHMARK_DATA = " + __import__("json").dumps(data)
        report = load(text, "data.js", device="ubuntu-latest")
        assert (report.format, len(report.runs), report.results) == ("github-action-benchmark", 2, 2)
        points = store.history("fib_10", suite_name="Rust Benchmark")
        assert [point.summary.time_s for point in points] == [1e-7, 1.234e-6]
        first = points[0].revision
        assert (first.repo, first.revision.sha, first.revision.subject) == ("repo", "c" * 39 + "1", "Make it faster")
        assert first.revision.committed_us == 1_577_930_645_000_000
        assert points[0].measured_us == 1_577_934_300_001_000
        assert points[0].summary.device_class == "ubuntu-latest"

    def test_only_new_entries_of_a_grown_file_are_new(self, load, store):
        entries = [action_entry({"name": "a", "unit": "ns", "value": at}, number=at) for at in (1, 2, 3)]
        load(action_data(*entries[:2]))
        report = load(action_data(*entries, lastUpdate=1))
        assert (len(report.runs), report.known) == (1, 2)
        assert len(store.history("a")) == 3

    def test_rates_are_times_where_the_tool_runs_one_loop(self, load, times):
        benches = [
            {"name": "a", "unit": "iter/sec", "value": 4},
            {"name": "b", "unit": "req/s", "value": 4},
        ]
        report = load(action_data(action_entry(*benches, tool="pytest")))
        assert times() == {"a": 0.25}
        assert [one.text for one in report.notes.left_out] == ['"b" is in "req/s", which is no time']

    def test_the_list_of_custom_tools(self, load, times):
        report = load(
            [
                {"name": "logging", "unit": "ns", "value": 90.9439, "range": 0.5},
                {"name": "memory", "unit": "Megabytes", "value": 150, "extra": "x"},
            ]
        )
        assert report.format == "github-action-benchmark"
        assert times() == {"logging": 90.9439e-9}


def test_bencher_metric_format(load, stored):
    report = load(
        {
            "tests::a": {"latency": {"value": 3247.0, "lower_value": 1044.0, "upper_value": 1044.0}},
            "./build.sh": {"build-time": {"value": 87}, "File Size": {"value": 42}},
            "both": {"Latency": {"value": 1}, "throughput": {"value": 5.5}},
        },
        suite="mine",
    )
    assert {key: one.time_s for key, one in stored().items()} == {
        ("mine", "tests::a", "latency"): 3.247e-6,
        ("mine", "./build.sh", "build-time"): 87.0,
        ("mine", "both", "latency"): 1e-9,
    }
    assert [one.text for one in report.notes.left_out] == [
        '"File Size" of "./build.sh" is no time',
        '"throughput" of "both" is no time',
    ]


def test_the_text_of_go_test(load, stored):
    text = """goos: linux
pkg: example.org/cache
cpu: AMD EPYC 7763 64-Core Processor
BenchmarkGet-4   \t21228057\t   55.76 ns/op\t2833.37 MB/s\t       0 B/op
BenchmarkGet-4   \t21228057\t   57.76 ns/op
BenchmarkSet/big \t       1\t   2.5 ms/op
PASS
pkg: example.org/other
BenchmarkGet-4   \t  6855655\t   174.0 ns/op
ok  \texample.org/other\t2.649s
"""
    report = load(text, "bench.txt")
    assert (report.format, report.devices) == ("go", ["cpu-AMD-EPYC-7763"])
    found = cases(stored)
    assert {key: one.time_s for key, one in found.items()} == {
        ("example.org/cache", "BenchmarkGet"): pytest.approx(56.76e-9),
        ("example.org/cache", "BenchmarkSet/big"): 2.5e-3,
        ("example.org/other", "BenchmarkGet"): 174e-9,
    }
    assert found["example.org/cache", "BenchmarkGet"].samples == 2

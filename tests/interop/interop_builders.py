"""Small whole files of each tool, to be varied by keyword."""

from typing import Any

COMMIT = "5b78858eb718649a31fb93d8dc96ca2cee41a4cd"


def pytest_record(name: str = "test_sum[10]", **stats: Any) -> dict[str, Any]:
    return {
        "group": None,
        "name": name,
        "fullname": f"tests/test_sum.py::{name}",
        "params": {"n": 10},
        "options": {"timer": "perf_counter", "min_rounds": 5, "disable_gc": False},
        "stats": {"min": 1e-6, "mean": 3e-6, "median": 2e-6, "rounds": 5, "iterations": 7} | stats,
    }


def pytest_file(*records: Any, **fields: Any) -> dict[str, Any]:
    return {
        "machine_info": {
            "node": "box",
            "machine": "x86_64",
            "python_version": "3.12.1",
            "python_implementation": "CPython",
            "system": "Linux",
            "release": "6.1",
            "cpu": {"brand_raw": "Intel(R) Core(TM) i7-4771 CPU @ 3.50GHz", "count": 8},
        },
        "commit_info": {
            "id": COMMIT,
            "time": "2019-11-16T12:10:30+09:00",
            "dirty": False,
            "project": "sums",
            "branch": "main",
        },
        "benchmarks": list(records),
        "datetime": "2019-11-16T05:00:00.5+00:00",
        "version": "5.1.0",
    } | fields


def google_record(name: str = "BM_Copy/64", **fields: Any) -> dict[str, Any]:
    return {
        "name": name,
        "run_name": name,
        "run_type": "iteration",
        "repetitions": 1,
        "repetition_index": 0,
        "threads": 1,
        "iterations": 1000,
        "real_time": 215.0,
        "cpu_time": 213.5,
        "time_unit": "ns",
    } | fields


def google_file(*records: Any, **context: Any) -> dict[str, Any]:
    known = {
        "date": "2019-11-29T21:26:59+01:00",
        "host_name": "box",
        "executable": "./build/copy_bench",
        "num_cpus": 4,
        "mhz_per_cpu": 2700,
        "library_build_type": "release",
        "load_avg": [1.0],
    }
    return {"context": known | context, "benchmarks": list(records)}


def value(name: str, number: float) -> dict[str, Any]:
    return {"name": name, "type": "float64", "value": repr(number)}


def nvbench_state(device: int = 0, **summaries: float) -> dict[str, Any]:
    """`summaries` by the last parts of their tags, `cold_time_gpu_mean=1e-3`."""
    return {
        "name": f"Device={device} T=F32 N=2^10",
        "device": device,
        "axis_values": [
            {"name": "T", "type": "string", "value": "F32"},
            {"name": "N", "type": "int64", "value": "1024"},
        ],
        "summaries": [
            {"tag": f"nv/{tag.replace('_', '/')}", "name": tag, "data": [value("value", number)]}
            for tag, number in summaries.items()
        ],
        "is_skipped": False,
    }


def nvbench_device(number: int = 0) -> dict[str, Any]:
    return {
        "id": number,
        "name": "NVIDIA H200",
        "sm_version": 900,
        "number_of_sms": 132,
        "global_memory_size": 150_000_000_000,
        "global_memory_bus_bandwidth": 4_800_000_000_000,
        "l2_cache_size": 62_914_560,
    }


def nvbench_file(*states: Any, **fields: Any) -> dict[str, Any]:
    return {
        "meta": {
            "argv": ["bin/copy.bench", "--json", "out.json"],
            "version": {"json": {"major": 1, "string": "1.0.0"}, "nvbench": {"string": "0.1.0"}},
        },
        "devices": [nvbench_device()],
        "benchmarks": [{"name": "copy", "index": 0, "devices": [0], "axes": [], "states": list(states)}],
    } | fields


def asv_file(version: int = 2, **fields: Any) -> dict[str, Any]:
    return {
        "commit_hash": COMMIT,
        "env_name": "virtualenv-py3.11-numpy",
        "date": 1_700_000_000_000,
        "params": {
            "arch": "x86_64",
            "cpu": "AMD EPYC 7763",
            "machine": "ci",
            "num_cpu": "4",
            "os": "Linux",
            "ram": "8",
        },
        "python": "3.11",
        "requirements": {"numpy": "2.1"},
        "env_vars": {"OMP_NUM_THREADS": "1"},
        "result_columns": ["result", "params", "version", "started_at", "duration", "stats_repeat", "samples"],
        "results": {},
        "durations": {},
        "version": version,
    } | fields


def action_entry(*benches: Any, number: int = 1, **fields: Any) -> dict[str, Any]:
    return {
        "commit": {
            "id": f"{number:x}".rjust(40, "c"),
            "message": "Make it faster\n\nBy a lot.",
            "timestamp": "2020-01-02T03:04:05+01:00",
            "url": "https://github.com/user/repo/commit/1",
        },
        "date": 1_577_934_300_000 + number,
        "tool": "cargo",
        "benches": list(benches),
    } | fields


def action_data(*entries: Any, **fields: Any) -> dict[str, Any]:
    return {
        "lastUpdate": 1_577_934_300_000,
        "repoUrl": "https://github.com/user/repo",
        "entries": {"Rust Benchmark": list(entries)},
    } | fields

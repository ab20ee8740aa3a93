"""A store as the runs of thousands of commits leave it, in a few minutes: whole rows, by the drivers themselves.

4 device classes × 10 suites × 34 cases × 3 variants, each measured once a commit with every number that a GPU gives.
Rows come commit by commit, as runs bring them, and with the keys in place: what is read later lies as it would lie.
"""

import itertools
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "store"))
import store_builders as build

from perftrack.model import Method, Resources
from perftrack.store import Store, schema
from perftrack.store.dimensions import Dimensions, insert

CLASSES, SUITES, CASES = 4, 10, 34
VARIANTS = ("unfused", "steps", "fused")
SERIES = CLASSES * SUITES * CASES * len(VARIANTS)
COLUMNS = [column.name for column in schema.result.columns]
SECOND_US = 1_000_000

_TIMES = ("time_s", "q10_s", "q90_s", "baseline_s")
_RATIOS = ("speedup", "speedup_low", "speedup_high")
_GAINS = ("fusion_gain", "fusion_gain_low", "fusion_gain_high", "expected_gain", "fusion_efficiency")
_EVERY = (
    *("bandwidth_bytes_per_s", "utilization", "peak_utilization", "flops_per_s"),
    *("error_l2", "error_max", "host_s", "clock_mhz", "build_first_s", "build_s"),
)
MEASURED = {
    "unfused": {*_TIMES, *_EVERY},
    "steps": {*_TIMES, *_EVERY, *_RATIOS},
    "fused": {*_TIMES, *_EVERY, *_RATIOS, *_GAINS},
}
"""Variant → its columns that are not NULL, as `judge.summarize` fills them."""
_DOUBLES = [*_TIMES, *_RATIOS, *_GAINS, *_EVERY]


def class_name(number: int) -> str:
    """Of one of the device classes."""
    return f"NVIDIA-H{number}00-80GB"


def suite_name(number: int) -> str:
    """Of one of the suites."""
    return f"suite{number}"


def case_key(number: int) -> str:
    """Of one of the cases of every suite."""
    return f"operation{number}[cols=4096,dtype=float16,rows={1024 * (number + 1)}]"


def dimensions(store: Store, commits: int) -> dict[str, list[int]]:
    """Make all that rows of `result` refer to; row numbers of series (in the order of their rows), revisions …"""
    made = Dimensions(store._door)
    devices = [made.device(build.device(number, device_class=class_name(number))) for number in range(CLASSES)]
    cases = [
        build.case(case_key(number), suite=suite_name(of), backend="cuda")
        for of, number in itertools.product(range(SUITES), range(CASES))
    ]
    declared = made.declarations(cases)
    numbers = [declared[one.digest] for one in cases]
    method = made.method(Method())
    keys = [
        {"case_id": case_id, "device_class_id": of, "variant": variant, "baseline": "unfused", "method_id": method}
        for (of, _), (case_id, _), variant in itertools.product(devices, numbers, VARIANTS)
    ]
    found = made.series(keys)
    series = [found[tuple(key.values())] for key in keys]
    used = [Resources(registers=32 + at % 64, launches=1, code_digest=f"{at:064x}") for at in range(SERIES)]
    resources = made.resources(used)
    if commits:
        _revisions(store, commits)
    return {
        "series_id": series,
        "declaration_id": [declaration for _, (_, declaration), _ in itertools.product(devices, numbers, VARIANTS)],
        "device_id": [device for (_, device), _, _ in itertools.product(devices, numbers, VARIANTS)],
        "environment_id": [made.environment(build.ENVIRONMENT) or 0] * SERIES,
        "resources_id": [resources[one] for one in used],
    }


def _revisions(store: Store, commits: int) -> None:
    """Commit number n, and the run that measured it, are the rows n."""
    from perftrack.store import rows

    revisions = [
        {"id": number, "repo": "kernels", **rows.revision_row(build.revision(number, sha=f"{number:040x}"))}
        for number in range(1, commits + 1)
    ]
    runs = [
        rows.run_row(build.run(number, base=None, started_us=number * SECOND_US, state="complete"))
        | {"id": number, "uid": f"{number:032x}", "head_id": number, "base_id": None, "finished_us": number * SECOND_US}
        for number in range(1, commits + 1)
    ]

    def work(connection: Any) -> None:
        insert(connection, schema.revision, revisions)
        insert(connection, schema.run, runs)

    store._door.write(work)


class Commits:
    """The rows of one commit after the other."""

    def __init__(self, of: dict[str, list[int]], seed: int = 20_260_801) -> None:
        order = np.argsort(np.array(of["series_id"]))
        self._of = {name: np.array(numbers, "i8")[order] for name, numbers in of.items()}
        self._variant = order % len(VARIANTS)
        self._random = np.random.default_rng(seed)
        self._level = np.exp(self._random.uniform(np.log(2e-6), np.log(2e-3), SERIES))

    def arrays(self, commit: int) -> dict[str, Any]:
        """Column → values of all series, in the order of the key; what is one value for all of them is a scalar."""
        noise = self._random.normal(1.0, 0.003, (24, SERIES))
        time_s = self._level * noise[0]
        baseline_s = self._level * 1.7 * noise[1]
        speedup, gain = baseline_s / time_s, 1.3 * noise[2]
        values: dict[str, Any] = {
            **self._of,
            "revision_id": commit,
            "run_id": commit,
            "side": "head",
            "status": "ok",
            "message": "",
            "mode": "graph",
            "samples": 150,
            "rounds": 3,
            "bad_blocks": 0,
            "cached": 0,
            **dict(zip(_TIMES, (time_s, time_s * 0.998, time_s * 1.004, baseline_s), strict=True)),
            **dict(zip(_RATIOS, (speedup, speedup * 0.997, speedup * 1.003), strict=True)),
            **dict(zip(_GAINS, (gain, gain * 0.997, gain * 1.003, noise[3] * 0 + 1.5, gain / 1.5), strict=True)),
        }
        return values | {name: noise[4 + at] for at, name in enumerate(_EVERY)}

    def rows(self, commit: int) -> list[tuple[Any, ...]]:
        """As tuples in the order of the table's columns, sorted by key."""
        values = self.arrays(commit)
        lists: list[Sequence[Any]] = []
        for name in COLUMNS:
            value = values[name]
            if not isinstance(value, np.ndarray):
                lists.append([value] * SERIES)
            elif name in _DOUBLES:
                there = np.isin(self._variant, [at for at, of in enumerate(VARIANTS) if name in MEASURED[of]])
                lists.append(value.tolist() if there.all() else np.where(there, value, None).tolist())
            else:
                lists.append(value.tolist())
        return list(zip(*lists, strict=True))

    def binary(self, commit: int) -> Iterator[bytes]:
        """As PostgreSQL's COPY reads them in binary, a part for each variant."""
        values = self.arrays(commit)
        for at, variant in enumerate(VARIANTS):
            yield _binary(values, self._variant == at, MEASURED[variant])


def _binary(values: dict[str, Any], chosen: Any, measured: set[str]) -> bytes:
    kinds = {"side": "S4", "status": "S2", "message": "S0", "mode": "S5"}
    fields: list[tuple[str, str]] = [("fields", ">i2")]
    for name in COLUMNS:
        fields.append((f"{name} length", ">i4"))
        if name in _DOUBLES and name not in measured:
            continue
        if kinds.get(name) != "S0":
            fields.append((name, kinds.get(name) or (">f8" if name in _DOUBLES else _whole(name))))
    table = np.zeros(int(chosen.sum()), dtype=np.dtype(fields))
    table["fields"] = len(COLUMNS)
    for name in COLUMNS:
        if name in table.dtype.names:
            value = values[name]
            table[name] = value[chosen] if isinstance(value, np.ndarray) else value
            table[f"{name} length"] = table.dtype[name].itemsize
        else:
            table[f"{name} length"] = 0 if name == "message" else -1
    return table.tobytes()


def _whole(name: str) -> str:
    return ">i2" if schema.result.c[name].type is schema.result.c["cached"].type else ">i8"


BLOCK = 250
"""Commits that are made in Python for a file; all later ones are copies of them at later revisions, made in SQL."""


def fill_sqlite(path: Path, source: Commits, commits: int) -> None:
    """Into the file, without a log: it is of no use before it is whole."""
    connection = sqlite3.connect(path, isolation_level=None)
    for setting in ("journal_mode=OFF", "synchronous=OFF", "cache_size=-6000000", "temp_store=MEMORY"):
        connection.execute(f"PRAGMA {setting}")
    connection.execute("CREATE TEMP TABLE block AS SELECT * FROM result LIMIT 0")
    marks, first = ", ".join("?" * len(COLUMNS)), min(BLOCK, commits)
    for commit in range(1, first + 1):
        connection.executemany(f"INSERT INTO block VALUES ({marks})", source.rows(commit))  # noqa: S608
    shifted = ", ".join(f"{name} + ?1" if name in {"revision_id", "run_id"} else name for name in COLUMNS)
    for start in range(0, commits, BLOCK):
        # the temporary table is read in the order in which its rows came: commit by commit
        copy = f"INSERT INTO result SELECT {shifted} FROM block WHERE revision_id + ?1 <= ?2 ORDER BY rowid"  # noqa: S608
        connection.execute(copy, (start, commits))
    connection.execute("DROP TABLE block")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("ANALYZE")
    connection.close()


def fill_postgresql(address: str, source: Commits, commits: int) -> None:
    """Into the server, without asking the foreign keys row by row."""
    import psycopg

    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        with connection.cursor() as cursor:
            for start in range(1, commits + 1, 100):
                with cursor.copy(f"COPY result ({', '.join(COLUMNS)}) FROM STDIN (FORMAT binary)") as copy:
                    copy.write(b"PGCOPY\n\xff\r\n\0" + bytes(8))
                    for commit in range(start, min(start + 100, commits + 1)):
                        for part in source.binary(commit):
                            copy.write(part)
                    copy.write(b"\xff\xff")
        connection.execute("VACUUM (ANALYZE) result")
        connection.execute("ANALYZE")

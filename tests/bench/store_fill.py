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
import sqlalchemy as sa

sys.path.insert(0, str(Path(__file__).parents[1] / "store"))
import store_builders as build

from perftrack.model import Method, Resources
from perftrack.store import Store, schema
from perftrack.store.dimensions import Dimensions, SeriesKey
from perftrack.store.inserting import insert

CLASSES, SUITES, CASES = 4, 10, 34
VARIANTS = ("unfused", "steps", "fused")
SERIES = CLASSES * SUITES * CASES * len(VARIANTS)
COLUMNS = [column.name for column in schema.result.columns]
SECOND_US = 1_000_000

_RATIOS = ("speedup", "speedup_low", "speedup_high")
_GAINS = ("fusion_gain", "fusion_gain_low", "fusion_gain_high")
ABSENT = {"unfused": {*_RATIOS, *_GAINS, "fault"}, "steps": {*_GAINS, "fault"}, "fused": {"fault"}}
"""Variant → its columns that are NULL, as `judge.summarize` leaves them."""
_KINDS = {
    column.name: ">f8"
    if isinstance(column.type, sa.Double)
    else ">i2"
    if isinstance(column.type, sa.SmallInteger)
    else ">i4"
    for column in schema.result.columns
}


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
    devices = [
        made.device(build.device(number, device_class=class_name(number), peak_bytes_per_s=4.8e12))
        for number in range(CLASSES)
    ]
    cases = [
        build.case(case_key(number), suite=suite_name(of), backend="cuda")
        for of, number in itertools.product(range(SUITES), range(CASES))
    ]
    numbers = made.declarations(cases)
    method = made.method(Method())
    keys = [
        SeriesKey(case_id, of, variant, "unfused", method)
        for (of, _), (case_id, _), variant in itertools.product(devices, numbers, VARIANTS)
    ]
    found = made.series(keys)
    series = [found[key] for key in keys]
    used = [Resources(registers=32 + at % 64, launches=1, code_digest=f"{at:064x}") for at in range(SERIES)]
    resources = made.resources(used)
    places = itertools.product(devices, numbers, VARIANTS)
    environment, gain = made.environment(build.ENVIRONMENT), {"unfused": None, "steps": None, "fused": 1.5}
    settings = [
        (declaration, device, environment, resources[of], "graph", 0, gain[variant], 12288, 2048, 4.8e12)
        for ((_, device), (_, declaration), variant), of in zip(places, used, strict=True)
    ]
    if commits:
        _revisions(store, commits)
    return {
        "series_id": series,
        "setting_id": made.settings(settings),
        "extent_id": made.extents([(150 - bad, 3, bad) for bad in range(8)]),
    }


def _revisions(store: Store, commits: int) -> None:
    """Commit number n, the run that measured it, and its only side are the rows n."""
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
        sides = [{"id": n, "run_id": n, "revision_id": n, "side": "head"} for n in range(1, commits + 1)]
        insert(connection, schema.run_side, sides)

    store._door.write(work)


class Commits:
    """The rows of one commit after the other."""

    def __init__(self, of: dict[str, list[int]], seed: int = 20_260_801) -> None:
        order = np.argsort(np.array(of["series_id"]))
        self._of = {name: np.array(of[name], "i8")[order] for name in ("series_id", "setting_id")}
        self._extents = np.array(of["extent_id"], "i8")
        self._variant = order % len(VARIANTS)
        self._random = np.random.default_rng(seed)
        self._level = np.exp(self._random.uniform(np.log(2e-6), np.log(2e-3), SERIES))

    def arrays(self, commit: int) -> dict[str, Any]:
        """Column → values of all series, in the order of the key; what is one value for all of them is a scalar."""
        noise = self._random.normal(1.0, 0.003, (14, SERIES))
        time_s, gain = self._level * noise[0], 1.3 * noise[2]
        speedup = 1.7 * noise[1]
        disturbed = np.where(self._random.random(SERIES) < 0.1, self._random.integers(1, 8, SERIES), 0)
        return {
            **self._of,
            "run_side_id": commit,
            "extent_id": self._extents[disturbed],
            "fault": None,
            **dict(zip(("time_s", "q10_s", "q90_s"), (time_s, time_s * 0.998, time_s * 1.004), strict=True)),
            **dict(zip(_RATIOS, (speedup, speedup * 0.997, speedup * 1.003), strict=True)),
            **dict(zip(_GAINS, (gain, gain * 0.997, gain * 1.003), strict=True)),
            "utilization": 0.9 * noise[3],
            "host_ns": np.rint(4_000 * noise[4] ** 30).astype("i8"),
            "build_first_us": np.rint(2_000_000 * noise[5] ** 60).astype("i8"),
            "build_us": np.rint(300_000 * noise[6] ** 60).astype("i8"),
            "clock_mhz": np.rint(1_965 * noise[7]).astype("i8"),
            "error_l2_digits": 9_000 + np.rint(437 * noise[8] ** 10).astype("i8"),
            "error_max_digits": 8_000 + np.rint(512 * noise[9] ** 10).astype("i8"),
        }

    def rows(self, commit: int) -> list[tuple[Any, ...]]:
        """As tuples in the order of the table's columns, sorted by key."""
        values = self.arrays(commit)
        lists: list[Sequence[Any]] = []
        for name in COLUMNS:
            value = values[name]
            if not isinstance(value, np.ndarray):
                lists.append([value] * SERIES)
                continue
            absent = np.isin(self._variant, [at for at, of in enumerate(VARIANTS) if name in ABSENT[of]])
            lists.append(np.where(absent, None, value).tolist() if absent.any() else value.tolist())
        return list(zip(*lists, strict=True))

    def binary(self, commit: int) -> Iterator[bytes]:
        """As PostgreSQL's COPY reads them in binary, a part for each variant."""
        values = self.arrays(commit)
        for at, variant in enumerate(VARIANTS):
            yield _binary(values, self._variant == at, ABSENT[variant])


def _binary(values: dict[str, Any], chosen: Any, absent: set[str]) -> bytes:
    fields: list[tuple[str, str]] = [("fields", ">i2")]
    for name in COLUMNS:
        fields.append((f"{name} length", ">i4"))
        if name not in absent:
            fields.append((name, _KINDS[name]))
    table = np.zeros(int(chosen.sum()), dtype=np.dtype(fields))
    table["fields"] = len(COLUMNS)
    for name in COLUMNS:
        if name in absent:
            table[f"{name} length"] = -1
            continue
        value = values[name]
        table[name] = value[chosen] if isinstance(value, np.ndarray) else value
        table[f"{name} length"] = table.dtype[name].itemsize
    return table.tobytes()


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
    shifted = ", ".join(f"{name} + ?1" if name == "run_side_id" else name for name in COLUMNS)
    for start in range(0, commits, BLOCK):
        # the temporary table is read in the order in which its rows came: commit by commit
        copy = f"INSERT INTO result SELECT {shifted} FROM block WHERE run_side_id + ?1 <= ?2 ORDER BY rowid"  # noqa: S608
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

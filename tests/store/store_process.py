"""What the tests run in processes of their own: `python store_process.py fill|overflow|killed_copy …`."""

import json
import os
import resource
import signal
import sqlite3
import sys
from pathlib import Path
from typing import Any

import store_builders as build

from perftrack.errors import StoreError
from perftrack.store import Spool, Store, engine


def fill(path: str) -> None:
    """Deliver jobs until the file may not grow any more; say how many were stored and what the error says."""
    sys.dont_write_bytecode = True  # Python itself would leave a truncated file behind
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # writing beyond the limit is an error then, as on a full disk
    with Store.open(path) as store:
        store.begin_run(build.run())
        resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, resource.RLIM_INFINITY))
        for number in range(1, 10_000):
            try:
                store.add_job(build.run().uid, build.case(), build.job(round=number), build.device())
            except StoreError as error:
                sys.stdout.write(json.dumps({"stored": number - 1, "error": str(error)}))
                return


def overflow(path: str, folder: str) -> None:
    """Deliver jobs until the file may not grow any more and two are kept, then let it grow and replay."""
    sys.dont_write_bytecode = True
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with Store.open(path) as store:
        store.begin_run(build.run())
        spool = Spool(store, build.run().uid, Path(folder), goes_on="the same command")
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))
        kept = number = 0
        while kept < 2:
            number += 1
            kept += not spool.add(build.case(), build.job(round=number), build.device())
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        said = {"problem": spool.problem, "last": number, "kept": spool.replay()}
    sys.stdout.write(json.dumps(said))


def killed_copy(path: str, suffix: str) -> None:
    """Begin to copy a file aside, and be killed when a page of it is there."""

    class Killed(sqlite3.Connection):
        def backup(self, target: sqlite3.Connection, **_: Any) -> None:
            super().backup(target, pages=1, progress=lambda *_: os.kill(os.getpid(), signal.SIGKILL))

    connect = sqlite3.connect
    sqlite3.connect = lambda *given, **named: connect(*given, **(named | {"factory": Killed}))
    engine.copy_aside(Path(path), suffix)


if __name__ == "__main__":
    {"fill": fill, "overflow": overflow, "killed_copy": killed_copy}[sys.argv[1]](*sys.argv[2:])

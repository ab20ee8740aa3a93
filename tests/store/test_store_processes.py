"""Several processes, and one that meets a full disk."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import store_builders as build
import store_process

from perftrack.store import Store

SCRIPT = [sys.executable, store_process.__file__]


def test_four_processes_start_at_once_and_deliver_the_same_jobs(empty_url: str, tmp_path: Path) -> None:
    """One makes the tables; each job is stored once, by whoever came first; nobody fails."""
    gate = tmp_path / "gate"
    workers = [
        subprocess.Popen([*SCRIPT, "deliver", empty_url, str(seed), str(gate)], stdout=subprocess.PIPE, text=True)
        for seed in range(4)
    ]
    gate.touch()
    new = [json.loads(worker.communicate(timeout=120)[0]) for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * 4
    assert sum(new) == store_process.JOBS
    with Store.open(empty_url, create=False) as store:
        assert len(store.jobs(build.run().uid)) == store_process.JOBS
        assert len(store.devices()) == len(store.runs()) == 1


def test_a_full_disk_loses_nothing_that_was_stored(tmp_path: Path) -> None:
    path = str(tmp_path / "perf.db")
    done = subprocess.run([*SCRIPT, "fill", path], capture_output=True, text=True, timeout=120, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    assert "perf.db cannot grow, the disk is full; what is stored is safe" in answer["error"]
    assert "--resume" in answer["error"]
    assert answer["stored"] > 0
    with Store.open(path) as store:  # there is room again
        uid = build.run().uid
        assert len(store.done_jobs(uid)) == answer["stored"]
        assert store.add_job(uid, build.case(), build.job(round=answer["stored"] + 1), build.device())
        assert store.jobs(uid)[0] == build.job()

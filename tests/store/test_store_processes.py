"""A process of its own that meets a full disk."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import store_builders as build
import store_process

from perftrack.store import Store

pytestmark = pytest.mark.fault

SCRIPT = [sys.executable, store_process.__file__]


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

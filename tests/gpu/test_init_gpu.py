"""The suite that `perftrack init` writes, on a real GPU."""

import json
import os
import subprocess
import sys

import pytest

from perftrack.measure.nvml import gpu_names

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not gpu_names(), reason="no NVIDIA GPU"), pytest.mark.timeout(550)]


def test_the_example_is_right_on_a_gpu(repo, tmp_path):
    repo.commit("theirs")
    database = f"sqlite:///{tmp_path}/perf.db"
    environment = {**os.environ, "PERFTRACK_DB": database, "PYTHONPATH": os.pathsep.join(sys.path)}
    for args in (["init"], ["submit", "--quick", "--base", "none", "--format", "json"]):
        done = subprocess.run(
            [sys.executable, "-m", "perftrack", *args],
            cwd=repo.root,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert [row["verdict"] for row in rows] == ["new"] * 3
    assert max(row["speedup_head"] for row in rows) > 1.5

"""`perftrack submit` and `sweep` through the Jobs API: a real head with its dashboard, a runner that is no node of it.

The job's own environment has the database's address; what Ray keeps of the job is searched for it.
"""

import json
import os
import re
import secrets
import socket
import sys
import time

import pytest
import requests

pytest.importorskip("aiohttp_cors", reason="ray[default], which has the dashboard, is not installed")

SECRET = "not-for-everybody"  # noqa: S105 - looked for where it must not be


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@pytest.fixture(scope="module")
def head(head_of, alone, tmp_path_factory):
    """Address of a dashboard, what its cluster has as environment, and the database that both sides use."""
    folder = tmp_path_factory.mktemp(f"outside-{SECRET}")
    door = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    database = f"sqlite:///{folder / 'perf.db'}"
    inside = {**alone, **door, "RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0", "PERFTRACK_DB": database}
    inside["PERFTRACK_PYTHON"] = sys.executable
    port = free_port()
    agent = f"--dashboard-agent-listen-port={free_port()}"  # the port that it has by itself may be another cluster's
    options = ("--include-dashboard=true", "--dashboard-host=127.0.0.1", f"--dashboard-port={port}", agent)
    with head_of(free_port(), inside, f"--num-cpus={len(os.sched_getaffinity(0))}", "--num-gpus=0", *options):
        yield f"http://127.0.0.1:{port}", {**door, "PERFTRACK_DB": database}


def test_a_run_and_a_sweep_from_outside(repo, files, run_alone, head):
    address, outside = head
    env = {**outside, "RAY_ADDRESS": address}
    repo.commit("base", files)
    repo.commit("words", {"README.md": "words"})
    done = run_alone("submit", "flat", "-d", "cpu", "--quick", "--rounds", "1", "--format", "json", env=env)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert [row["verdict"] for row in report["rows"] if row["variant"] == "fused"] == ["same"]
    (name,) = re.findall(r"^job     (\S+) at", done.stderr, re.MULTILINE)
    assert "head    device  cpu" in done.stderr
    assert "measure 1/1 done" in done.stderr

    kept = requests.get(f"{address}/api/jobs/{name}", headers=authorization(outside), timeout=20).text
    log = requests.get(f"{address}/api/jobs/{name}/logs", headers=authorization(outside), timeout=20).text
    assert "perftrack.pipeline.inside" in kept
    assert "device  cpu" in log
    assert SECRET not in kept + log
    assert requests.get(f"{address}/api/jobs/{name}", timeout=20).status_code == 401

    swept = run_alone("sweep", "-d", "cpu", "--detach", "--format", "json", env=env)
    assert swept.returncode == 0, swept.stderr
    (commit,) = json.loads(swept.stdout)["commits"]
    assert commit["outcome"] == "submitted"
    deadline = time.monotonic() + 120
    while (watched := run_alone("watch", commit["run"], env=env)).returncode == 2:
        assert "has no run" in watched.stderr, "it has not begun yet"
        assert time.monotonic() < deadline
        time.sleep(1)
    assert watched.returncode == 0, watched.stderr


def test_an_error_inside_is_the_commands_own(repo, files, run_alone, head):
    address, outside = head
    repo.commit("base", files)
    done = run_alone("submit", "-d", "NVIDIA-*", "--base", "none", env={**outside, "RAY_ADDRESS": address})
    assert done.returncode == 2, done.stderr
    assert done.stderr.splitlines()[-1] == (
        "perftrack: at the head: no GPU in the pool, so no device matches 'NVIDIA-*'; use -d cpu"
    )


def test_a_head_that_does_not_answer_is_said_with_the_remedy(repo, files, run_alone, head):
    _, outside = head
    repo.commit("base", files)
    done = run_alone("submit", "-d", "cpu", env={**outside, "RAY_ADDRESS": "http://127.0.0.1:1"})
    assert done.returncode == 3
    assert "no head answers at http://127.0.0.1:1" in done.stderr.splitlines()[-1]


def authorization(outside):
    return {"Authorization": f"Bearer {outside['RAY_AUTH_TOKEN']}"}


def test_what_the_two_sides_have_is_compared():
    from perftrack.pipeline.parcel import Versions

    here, there = (
        Versions(perftrack="1.2", ray="2.60.0", python="3.11.9"),
        Versions(perftrack="1.2", ray="2.54.0", python="3.11.9"),
    )
    assert here.difference(there) == "ray 2.60.0 here and 2.54.0 at the head"
    assert here.difference(here) == ""

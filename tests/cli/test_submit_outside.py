"""`perftrack submit` and `sweep` through the Jobs API: a real head with its dashboard, a runner that is no node of it.

The job's own environment has the database's address; what Ray keeps of the job is searched for it.
"""

import json
import os
import re
import secrets
import shlex
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
import requests
from ports import free_port
from tcp_proxy import Proxy

pytest.importorskip("aiohttp_cors", reason="ray[default], which has the dashboard, is not installed")

pytestmark = pytest.mark.xdist_group("outside")  # its cluster is its own

SECRET = "not-for-everybody"  # noqa: S105 - looked for where it must not be


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


SLEEPS = """
import time

import numpy as np

from perftrack.declare import benchmark


def variant(seconds):
    def build(x, **_):
        out = np.empty_like(x)

        def launch():
            time.sleep(seconds)
            np.copyto(out, x)

        return launch, out

    return build


@benchmark(
    variants={"unfused": variant(0.02), "fused": variant(0.01)},
    reference=lambda x, **_: x,
    axes={"n": [100]},
    traffic=lambda n: {"reads": 8 * n, "writes": 8 * n},
    min_effect=0.1,
)
def copy(rng, n):
    return rng.normal((n,), "float64")
"""


@pytest.fixture
def proxy(head):
    with Proxy(int(head[0].rpartition(":")[2])) as proxy:
        yield proxy


@pytest.fixture
def follow(repo, alone, head, proxy):
    """Start a command that reaches the head by way of the proxy."""

    def start(*command):
        env = {**alone, **head[1], "RAY_ADDRESS": f"http://127.0.0.1:{proxy.port}", "COLUMNS": "300"}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(command, cwd=repo.root, env=env, **pipes)

    return start


def until(process, words):
    """Read what it says up to a line with these words, which is returned."""
    said = []
    for line in process.stderr:
        said.append(line)
        if words in line:
            return line
    pytest.fail(f"it never said {words!r}: {''.join(said)}")


def stored(outside):
    """How many jobs are in the database."""
    with closing(sqlite3.connect(outside["PERFTRACK_DB"].removeprefix("sqlite:///"), timeout=20)) as connection:
        return connection.execute("select count(*) from job_attempt").fetchone()[0]


@pytest.mark.fault
def test_a_connection_that_is_cut_for_a_while_costs_nothing(repo, command, head, proxy, follow):
    repo.commit("base", {"suites/sleeps.py": SLEEPS, "pyproject.toml": "[tool.perftrack]\n"})
    process = follow(command, "submit", "-d", "cpu", "--quick", "--base", "none", "--rounds", "6", "--format", "json")
    until(process, "measure 6 jobs")
    proxy.cut()
    assert "the job goes on, trying again" in until(process, "does not answer")
    before, deadline = stored(head[1]), time.monotonic() + 60
    while stored(head[1]) <= before:
        assert time.monotonic() < deadline, "the job does not go on"
        time.sleep(0.05)
    proxy.open()
    until(process, "answers again")
    out, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert "measure 6/6 done" in said
    (row,) = json.loads(out)["rows"]
    assert (row["variant"], row["verdict"], row["rounds"]) == ("fused", "new", 6)
    assert row["speedup_head"] == pytest.approx(2, rel=0.2)


@pytest.mark.fault
def test_a_command_that_is_terminated_stops_its_job(repo, command, run_alone, head, follow):
    """As a CI host does that cancels."""
    repo.commit("base", {"suites/sleeps.py": SLEEPS, "pyproject.toml": "[tool.perftrack]\n"})
    process = follow(command, "submit", "-d", "cpu", "--quick", "--base", "none", "--rounds", "200")
    (name,) = re.findall(r"^job     (\S+) at", until(process, "job     "))
    until(process, "measure 200 jobs")
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 143
    deadline = time.monotonic() + 60
    while (state := job_state(head, name)) == "RUNNING" and time.monotonic() < deadline:
        time.sleep(0.5)
    assert state != "RUNNING"
    watched = run_alone("watch", "latest", env=head[1])
    assert watched.returncode == 4
    assert "was broken off with" in watched.stderr


@pytest.mark.fault
def test_a_bisection_from_outside_whose_head_is_never_heard_of_again(repo, command, run_alone, head, proxy, follow):
    good = repo.commit("good", {"suites/sleeps.py": SLEEPS, "pyproject.toml": "[tool.perftrack]\n"})
    repo.commit("slow", {"suites/sleeps.py": SLEEPS.replace("variant(0.01)", "variant(0.02)")})
    args = ("bisect", "copy[n=100]", f"{good[:12]}..HEAD", "-d", "cpu", "--quick", "--rounds", "4", "--format", "json")
    process = follow(sys.executable, str(Path(__file__).with_name("impatient.py")), *args)
    (name,) = re.findall(r"^job     (\S+) at", until(process, "job     "))
    proxy.cut()
    _, said = process.communicate(timeout=120)
    assert process.returncode == 3, said
    (uid,) = re.findall(
        r"^perftrack: .* is out of reach .* its job .* may go on: `perftrack watch (\w+)` shows", said, re.MULTILINE
    )
    assert name.startswith(f"perftrack-{uid}")

    env = {**head[1], "RAY_ADDRESS": head[0]}
    deadline = time.monotonic() + 120
    while (watched := run_alone("watch", uid, env=env)).returncode == 2:
        assert "has no run" in watched.stderr, "it has not begun yet"
        assert time.monotonic() < deadline
        time.sleep(1)
    assert "copy[n=100]" in watched.stdout, watched.stderr
    done = run_alone(*args, env=env)
    assert done.returncode == 0, done.stderr
    assert "stored  " in done.stderr, "by the job that nobody followed"
    report = json.loads(done.stdout)
    assert [one["subject"] for one in report["found"]] == ["slow"]
    assert report["step"]["point"] > 1.5


def test_ray_job_submit_as_the_docs_have_it(repo, command, alone, run_alone, head, tmp_path):
    """Who starts it has Ray alone; repository, perftrack and the database's address are at the head."""
    address, outside = head
    sweep = '[tool.perftrack.sweeps.nightly]\ndevices = ["cpu"]\nrounds = 1\nquick = true\n'
    repo.commit("base", {"suites/sleeps.py": SLEEPS, "pyproject.toml": sweep})
    repo.git("clone", "-q", str(repo.root), str(tmp_path / "clone"))
    page = (Path(__file__).parents[2] / "docs" / "sweeps.md").read_text()
    (line,) = re.findall(r"^ray job submit .*$", page, re.MULTILINE)
    for there, here in (
        ("http://127.0.0.1:8265", address),
        ("/srv/perftrack/kernels", tmp_path / "clone"),
        ("/srv/perftrack/venv/bin/perftrack", command),
    ):
        assert there in line
        line = line.replace(there, str(here))
    env = {**alone, **{name: value for name, value in outside.items() if name.startswith("RAY_")}}
    name, *args = shlex.split(line)
    ray = [str(Path(sys.executable).parent / name), *args[:2], "--submission-id=nightly", *args[2:]]
    done = subprocess.run(ray, cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "measure 1/1 done" in done.stdout + done.stderr
    kept = requests.get(f"{address}/api/jobs/nightly", headers=authorization(outside), timeout=20).text
    assert "git fetch -q" in kept
    assert SECRET not in kept
    report = json.loads(run_alone("report", "latest", "--format", "json", env=outside).stdout)
    assert {row["suite"] for row in report["rows"]} == {"sleeps"}


@pytest.mark.fault
def test_a_head_that_knows_another_token_is_said(repo, files, run_alone, head):
    address, outside = head
    repo.commit("base", files)
    done = run_alone("submit", "-d", "cpu", env={**outside, "RAY_ADDRESS": address, "RAY_AUTH_TOKEN": "0" * 64})
    assert done.returncode == 3
    assert done.stderr.splitlines()[-1].startswith(f"perftrack: no head answers at {address}: ")
    assert done.stderr.splitlines()[-1].endswith("is its token in RAY_AUTH_TOKEN here?")


@pytest.mark.fault
def test_an_error_inside_is_the_commands_own(repo, files, run_alone, head):
    address, outside = head
    repo.commit("base", files)
    done = run_alone("submit", "-d", "NVIDIA-*", "--base", "none", env={**outside, "RAY_ADDRESS": address})
    assert done.returncode == 2, done.stderr
    assert done.stderr.splitlines()[-1] == (
        "perftrack: at the head: no GPU in the pool, so no device matches 'NVIDIA-*'; use -d cpu"
    )


@pytest.mark.fault
def test_a_head_that_does_not_answer_is_said_with_the_remedy(repo, files, run_alone, head):
    _, outside = head
    repo.commit("base", files)
    done = run_alone("submit", "-d", "cpu", env={**outside, "RAY_ADDRESS": "http://127.0.0.1:1"})
    assert done.returncode == 3
    assert "no head answers at http://127.0.0.1:1" in done.stderr.splitlines()[-1]


def job_state(head, name):
    address, outside = head
    answer = requests.get(f"{address}/api/jobs/{name}", headers=authorization(outside), timeout=20)
    return answer.json()["status"]


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

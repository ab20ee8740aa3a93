"""The real command, ended in the middle of a run by what befalls it or its cluster, and resumed."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from several_nodes import several_nodes

from perftrack.model import Status
from perftrack.store import Store

pytestmark = [pytest.mark.fault, pytest.mark.xdist_group("nodes"), pytest.mark.timeout(600)]

DRIVER = Path(__file__).parents[1] / "soak" / "driver.py"
CASES, ROUNDS = 24, 3

SUITE = """
import numpy as np

from perftrack.declare import benchmark


def variant(x, **_):
    out = np.empty_like(x)
    return (lambda: np.copyto(out, x)), out


@benchmark(
    variants={"unfused": variant, "fused": variant},
    reference=lambda x, **_: x,
    axes={"n": list(range(1, 25))},
    traffic=lambda n: {"reads": 8 * n, "writes": 8 * n},
)
def good(rng, n):
    return rng.normal((n,), "float64")
"""


class Run:
    """`perftrack submit` on a cluster, again and again."""

    def __init__(self, folder, nodes, repository):
        self._database = folder / "perf.db"
        self._places = {
            "cwd": repository,
            "env": {
                **nodes.environment,
                "RAY_ADDRESS": nodes.address,
                "PERFTRACK_DB": f"sqlite:///{self._database}",
                "COLUMNS": "200",
            },
        }

    def start(self, *args, **environment):
        command = [sys.executable, str(DRIVER), "submit", *args]
        places = {**self._places, "env": {**self._places["env"], **environment}}
        return subprocess.Popen(command, **places, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def attempts(self):
        with Store.open(str(self._database)) as store:
            return [one for one, _ in store.attempts(store.latest_run())]

    def stored(self):
        """How many attempts; without the store, whose opening costs more than what it is asked."""
        if not self._database.exists():
            return 0
        with closing(sqlite3.connect(f"file:{self._database}?mode=ro", uri=True, timeout=10)) as connection:
            try:
                return connection.execute("select count(*) from job_attempt").fetchone()[0]
            except sqlite3.OperationalError:
                return 0

    def wait_for_more(self, process, count=3):
        wanted = self.stored() + count
        end = time.monotonic() + 180
        while self.stored() < wanted:
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() < end, "nothing is measured"
            time.sleep(0.1)


@pytest.fixture
def nodes(cache_home):
    environment = {**os.environ, "XDG_CACHE_HOME": cache_home, "NVIDIA_FAKE_SECONDS": "0.25"}
    # as Ray comes, it waits a minute for a head that is gone
    with several_nodes(environment, ("a",), RAY_gcs_rpc_server_reconnect_timeout_s="5") as nodes:
        yield nodes


def test_a_killed_driver_and_a_lost_head_cost_the_jobs_at_hand_only(nodes, repo, tmp_path):
    repo.commit("good", {"suites/good.py": SUITE, "pyproject.toml": "[tool.perftrack]\n"})
    run = Run(tmp_path, nodes, repo.root)

    process = run.start("-d", "cpu", "--base", "none", "--rounds", str(ROUNDS))
    run.wait_for_more(process)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()

    process = run.start("--resume", "latest")
    run.wait_for_more(process)
    host = host_of(process)
    os.kill(host, signal.SIGSTOP)  # it shall not give the head up before there is one again
    nodes.kill("head")
    nodes.add_head(cpus=1)
    os.kill(host, signal.SIGCONT)
    assert_head_blamed(process, nodes, "has been restarted and does not know this run")

    process = run.start("--resume", "latest")
    run.wait_for_more(process)
    nodes.kill("head")
    assert_head_blamed(process, nodes, "does not answer")

    nodes.add_head(cpus=1)
    process = run.start("--resume", "latest")
    _, said = process.communicate(timeout=180)
    assert process.returncode == 0, said
    attempts = run.attempts()
    fine = Counter((one.case_key, one.round) for one in attempts if one.status is Status.OK)
    assert fine == {(f"good[n={n}]", number): 1 for n in range(1, CASES + 1) for number in range(1, ROUNDS + 1)}
    assert {one.status for one in attempts} <= {Status.OK, Status.INFRA}


def host_of(process):
    """The pool host of a command."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    (host,) = [pid for pid in children if b"pool.host" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    return int(host)


def assert_head_blamed(process, nodes, how):
    _, said = process.communicate(timeout=180)
    assert process.returncode == 3, said
    (line,) = [line for line in said.splitlines() if line.startswith("perftrack: ")]
    assert line.startswith(
        f"perftrack: the head of the Ray cluster at {nodes.address} {how}; "
        "what was measured is kept: `perftrack submit --resume "
    )
    assert said.rstrip().endswith(line)

"""The pool over a real embedded Ray: results, faults, devices, and nothing left afterwards."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from perftrack.errors import PoolError, UsageError
from perftrack.model import JobResult, Status
from perftrack.pool.client import Pool, resolve_address
from perftrack.pool.talk import Note, Progress
from perftrack.revision import Repository

pytestmark = pytest.mark.fault


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    root = tmp_path_factory.mktemp("repo")
    (root / "suites").mkdir()
    (root / "suites/one.py").write_text("ONE = 1\n")
    git = ["git", "-C", str(root), "-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "one"]):
        subprocess.run([*git, *command], check=True)
    repository = Repository.discover(root)
    archive = repository.export(repository.revision("HEAD"), tmp_path_factory.mktemp("tars"))
    return {"head": archive, "base": archive}


def make_pool(fake_child, *, address="local", want="", trees=None):
    return Pool(
        address=address,
        want=want,
        trees=trees or {},
        suite_paths=("suites",),
        methods={},
        seed=7,
        case_timeout_s=60,
        child=fake_child,
    )


@pytest.fixture(scope="module")
def pool(fake_child, trees):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PERFTRACK_DB", "postgresql://user:secret@host/db")
        with make_pool(fake_child, trees=trees) as pool:
            yield pool


def run(pool, *jobs):
    """All attempts of each benchmark, in order."""
    attempts = {}
    for event in pool.run(jobs):
        if isinstance(event, JobResult):
            attempts.setdefault(event.case_key.split("[")[0], []).append(event)
    return attempts


def statuses(results):
    return [(result.attempt, result.status) for result in results]


def test_without_a_gpu_the_cpu_is_the_device(pool):
    (report,) = pool.devices()
    assert report.device.device_class == "cpu-fake-2c"


def test_jobs_of_several_rounds_give_results_and_progress(pool, make_job):
    jobs = [make_job("fine", i=i, round_=round_) for round_ in (1, 2) for i in range(5)]
    events = list(pool.run(jobs))
    results = [event for event in events if isinstance(event, JobResult)]
    assert {(r.case_key, r.round) for r in results} == {(job.case.key, job.round) for job in jobs}
    assert {(r.status, r.message) for r in results} == {(Status.OK, "{'base': ['suites'], 'head': ['suites']}")}
    children = {(r.round, r.environment.entries["pid"]) for r in results}
    assert len(children) == 2, "one fresh child a round"
    progress = [event for event in events if isinstance(event, Progress)]
    assert {(p.device_class, p.device_uuid, p.what) for p in progress} == {("cpu-fake-2c", "CPU-0", "time")}


def test_no_jobs_no_results(pool):
    assert run(pool) == {}


def test_a_crash_has_a_second_attempt_alone_and_the_rest_goes_on(pool, make_job):
    attempts = run(pool, *(make_job(name) for name in ("segv", "fine", "once", "more")))
    assert statuses(attempts["segv"]) == [(1, Status.FAILED), (2, Status.FAILED)]
    assert statuses(attempts["once"]) == [(1, Status.FAILED), (2, Status.OK)]
    assert statuses(attempts["fine"]) == statuses(attempts["more"]) == [(1, Status.OK)]
    final = attempts["segv"][-1]
    assert "signal 11 (SIGSEGV) during time" in final.message
    assert final.device_uuid == "CPU-0"
    assert final.environment is not None
    assert final.started_us > 0


def test_a_sticky_error_and_a_failed_result_are_tried_twice(pool, make_job):
    attempts = run(pool, make_job("sticky"), make_job("raises"), make_job("fine"))
    assert statuses(attempts["sticky"]) == statuses(attempts["raises"]) == [(1, Status.FAILED), (2, Status.FAILED)]
    assert statuses(attempts["fine"]) == [(1, Status.OK)]


def test_a_kill_from_outside_is_repeated_and_never_a_failure(pool, make_job):
    attempts = run(pool, make_job("killed"), make_job("fine"))
    assert statuses(attempts["killed"]) == [(n, Status.INFRA) for n in range(1, 7)]
    assert statuses(attempts["fine"]) == [(1, Status.OK)]


def test_imports_that_follow_each_other_are_signs_of_life(pool, make_job):
    """A Card of which nothing is heard is ended, and each of them may take as long as a start."""
    events = list(pool.run([make_job("fine", suite="import_twice")]))
    told = [(event.what, event.case_key) for event in events if isinstance(event, Progress)]
    assert told == [("import", "import_twice"), ("time", "fine[]")]
    (result,) = [event for event in events if isinstance(event, JobResult)]
    assert (result.status, result.attempt) == (Status.OK, 1)


def test_a_suite_that_cannot_be_imported_fails_alone(pool, make_job):
    jobs = [make_job("a", suite="import_exits"), make_job("b", suite="import_exits"), make_job("c")]
    attempts = run(pool, *jobs)
    assert statuses(attempts["a"]) == statuses(attempts["b"]) == [(1, Status.FAILED), (2, Status.FAILED)]
    assert "exit code 5 and no result during import" in attempts["a"][-1].message
    assert statuses(attempts["c"]) == [(1, Status.OK)]


def test_a_job_that_kills_its_card_is_found_out_and_the_others_are_done(pool, make_job):
    attempts = run(pool, make_job("kills_card"), make_job("fine"))
    *before, final = [result.status for result in attempts["kills_card"]]
    assert final is Status.FAILED
    assert set(before) == {Status.INFRA}
    assert "ActorDiedError" in attempts["kills_card"][-1].message
    *before, final = [result.status for result in attempts["fine"]]
    assert final is Status.OK
    assert set(before) <= {Status.INFRA}


def test_a_driver_that_is_cut_off_for_a_while_loses_nothing_and_blames_nobody(pool, make_job):
    """To Ray a process that is stopped is one whose network is gone."""
    events = []
    for event in pool.run([make_job("slow", seconds=0.2, i=i) for i in range(8)]):
        if not events:
            os.kill(pool._host.pid, signal.SIGSTOP)
            threading.Timer(3.0, os.kill, (pool._host.pid, signal.SIGCONT)).start()
        events.append(event)
    results = [event for event in events if isinstance(event, JobResult)]
    assert sorted(one.case_key for one in results) == sorted(f"slow[i={i},seconds=0.2]" for i in range(8))
    assert {(one.status, one.attempt) for one in results} == {(Status.OK, 1)}
    assert [event for event in events if isinstance(event, Note)] == []


def test_a_class_without_a_card_is_infra(pool, make_job):
    (result,) = run(pool, make_job("fine", device_class="Other-1G"))["fine"]
    assert (result.status, result.message) == (Status.INFRA, "no usable device of class Other-1G is left")


def test_a_child_under_ray_has_no_secrets_all_threads_and_normal_niceness(pool, make_job):
    (result,) = run(pool, make_job("fine", i="environment"))["fine"]
    entries = result.environment.entries
    seen = dict(line.split("=", 1) for line in str(entries["environment"]).splitlines())
    assert not [name for name in seen if name.startswith(("RAY_", "PERFTRACK"))]
    assert seen["OMP_NUM_THREADS"] == str(len(os.sched_getaffinity(0)))
    assert seen["CUDA_VISIBLE_DEVICES"] == ""
    assert entries["nice"] == os.nice(0)


def test_an_early_stop_ends_the_pool_and_leaves_nothing(pool, make_job):
    """The last test of the module's pool."""
    folder, host = pool._folder, pool._host.pid
    assert len(session_of(host)) > 1
    events = pool.run([make_job("fine"), make_job("stubborn")])
    first = next(event for event in events if isinstance(event, JobResult))
    assert first.status is Status.OK
    events.close()
    assert session_of(host) == []
    assert not folder.exists()
    with pytest.raises(PoolError, match="the pool is closed"):
        next(pool.run([make_job("fine")]))


CLIENT = """
import sys
from perftrack.pool.client import Pool
with Pool(address="local", want="cpu", trees={}, suite_paths=(), methods={}, seed=0, case_timeout_s=60,
          child=sys.argv[1:]) as pool:
    pool.devices()
    print(pool._host.pid, pool._folder, flush=True)
    from time import sleep
    sleep(1000)
"""


def test_a_client_that_is_gone_leaves_nothing(fake_child):
    """One that is killed; tests/cli has one that is interrupted."""
    command = [sys.executable, "-c", CLIENT, *fake_child]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as client:
        host, folder = client.stdout.readline().split()
        assert session_of(int(host))
        client.kill()
    wait_until(lambda: session_of(int(host)) == [])
    assert not Path(folder).exists()


def test_a_host_that_dies_is_an_error_and_leaves_nothing(fake_child):
    with make_pool(fake_child, want="cpu") as pool:
        folder, host = pool._folder, pool._host.pid
        os.kill(host, signal.SIGKILL)
        with pytest.raises(PoolError, match=r"the pool host ended by itself \(signal 9\)"):
            pool.devices()
    wait_until(lambda: session_of(host) == [])
    assert not folder.exists()


@pytest.mark.parametrize("address", ["ray://head:10001", "http://head:8265", "auto", "head", "head:port"])
def test_other_kinds_of_addresses_are_refused(address, monkeypatch):
    with pytest.raises(UsageError, match=r"host:port"):
        resolve_address(address)
    monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(UsageError, match=r"host:port"):
        resolve_address(None)


@pytest.mark.parametrize("address", ["https://ada:word@head:8265", "ray://ada:word@head:1", "ada:word@head:6379"])
def test_no_credentials_of_an_address_are_said(address):
    with pytest.raises(UsageError, match=r"host:port") as refused:
        resolve_address(address)
    assert "head" in str(refused.value)
    assert "ada" not in str(refused.value)


def test_the_address_is_explicit(monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert resolve_address(None) == "local"
    monkeypatch.setenv("RAY_ADDRESS", "head:6379")
    assert resolve_address(None) == "head:6379"
    assert resolve_address("local") == "local"


def test_a_cluster_that_does_not_answer_is_an_error_at_once(fake_child):
    with (
        make_pool(fake_child, address="127.0.0.1:1") as pool,
        pytest.raises(PoolError, match=r"no Ray cluster answers at 127\.0\.0\.1:1"),
    ):
        pool.devices()


def test_an_existing_cluster_through_ray_address(joined, fake_child, trees, make_job, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", joined)
    with make_pool(fake_child, address=None, want="fakegpu-*", trees=trees) as pool:
        reports = {report.device.uuid: report.problem for report in pool.devices()}
        assert reports == {"GPU-0": "", "GPU-1": "", "GPU-2": "it is busy"}
        jobs = [make_job("slow", backend="cuda", seconds=0.3 + i / 1000) for i in range(4)]
        devices = {result.device_uuid for result in run(pool, *jobs)["slow"]}
        assert devices == {"GPU-0", "GPU-1"}, "both free cards work, the busy one is left alone"
        crash = run(pool, make_job("segv", backend="cuda"))["segv"]
        assert {result.device_uuid for result in crash} == {"GPU-0", "GPU-1"}, "the second look is on the other card"
        ecc = run(pool, make_job("ecc", backend="cuda"), make_job("ok", backend="cuda"))
        assert {result.status for result in ecc["ecc"]} <= {Status.FAILED, Status.INFRA}
        assert ecc["ok"][-1].status is Status.OK


def test_an_unknown_class_names_those_that_are_there(joined, fake_child):
    with (
        make_pool(fake_child, address=joined, want="NVIDIA-B200*") as pool,
        pytest.raises(UsageError, match=r"unknown device class 'NVIDIA-B200\*': the pool has FakeGPU-1G and cpu"),
    ):
        pool.devices()


def session_of(leader):
    """Commands of the living processes of a session."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        fields = text.rpartition(")")[2].split()
        if int(fields[3]) == leader and fields[0] != "Z":
            found.append(text.partition("(")[2].rpartition(")")[0])
    return found


def wait_until(condition, seconds=90):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)

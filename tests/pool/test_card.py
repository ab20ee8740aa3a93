"""A Card and its children without Ray: every way to end is told apart, and the rest of the work goes on."""

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from perftrack.errors import PoolError
from perftrack.measure.wire import Order
from perftrack.model import Method, Status
from perftrack.pool.blame import Party, classify, describe
from perftrack.pool.card import Card, CardSetup
from perftrack.pool.child_process import Child, Limits
from perftrack.pool.host_memory import HostMemory, here
from perftrack.pool.lease import Doing, Finished, Lease, Lost, decode

pytestmark = pytest.mark.fault

LIMITS = Limits(start_s=20, silence_s=20, case_s=20, exit_s=5, reap_s=10)
SHORT = Limits(start_s=20, silence_s=2, case_s=3, exit_s=1, reap_s=10)

BRIEF = Limits(start_s=4)
"""Enough for a child to start on a busy machine."""


@pytest.fixture
def lease(make_job):
    def make(*benchmarks, suite="suite", uuid="CPU-0"):
        jobs = tuple(
            name if not isinstance(name, str) else make_job(name, suite=suite, i=i) for i, name in enumerate(benchmarks)
        )
        return Lease(
            backend="cpu", suite_paths=("suites",), method=Method(), seed=0, round=1, jobs=jobs, device_uuid=uuid
        )

    return make


@pytest.fixture
def card(fake_child, tmp_path):
    def make(limits=LIMITS, child=fake_child, memory=None):
        return Card(CardSetup(backend="cpu", cores=2, scratch=str(tmp_path), child=child, limits=limits), memory)

    return make


def run(card, lease):
    """What ended how: benchmark → result or ending."""
    ends = {}
    for event in card.run(lease):
        match event:
            case Finished(result=result):
                ends[result.case_key.split("[")[0]] = result
            case Lost(jobs=jobs, ending=ending):
                ends |= {job.case.benchmark: ending for job in jobs}
            case Doing():
                pass
    return ends


@pytest.mark.parametrize(
    ("kernel", "kind", "code"),
    [
        ("segv", "signal", signal.SIGSEGV),
        ("abort", "signal", signal.SIGABRT),
        ("exit0", "exit", 0),
        ("half", "exit", 3),
    ],
)
def test_a_crash_is_told_exactly_and_the_rest_goes_on(card, lease, kernel, kind, code):
    ends = run(card(), lease("ok", kernel, "fine"))
    assert {"ok", "fine"} == {name for name, end in ends.items() if getattr(end, "status", None) is Status.OK}
    ending = ends[kernel]
    assert (ending.kind, ending.code, ending.phase) == (kind, code, "time")
    assert classify(ending).party is Party.KERNEL


def test_a_result_is_told_before_what_follows_it_has_taken_long(card, lease, make_job):
    jobs = [make_job("fine"), make_job("a", suite="import_hangs")]
    told = [decode(data) for data in card(BRIEF).tell(lease(*jobs))]
    assert [type(event) for events in told for event in events] == [Doing, Finished, Lost]
    assert told[-1][0] == told[-1][-1], "the result had been told when the import was ended"
    assert told[-1][0].ending.kind == "time-out"


def test_last_words_are_kept(card, lease):
    assert run(card(), lease("half"))["half"].said == "half a line"


def test_a_sticky_cuda_error_is_a_failed_result_and_the_rest_gets_a_fresh_child(card, lease):
    ends = run(card(), lease("sticky", "fine"))
    assert ends["sticky"].status is Status.FAILED
    assert ends["fine"].status is Status.OK


@pytest.mark.parametrize("kernel", ["hang", "stubborn", "stopped"])
def test_a_silent_child_is_killed_at_its_limit(card, lease, kernel):
    ends = run(card(SHORT), lease(kernel, "fine"))
    assert (ends[kernel].kind, ends[kernel].seconds) == ("time-out", SHORT.silence_s)
    assert ends["fine"].status is Status.OK


def test_a_talking_child_is_killed_at_the_limit_of_its_case(card, lease):
    ending = run(card(SHORT), lease("busy"))["busy"]
    assert (ending.kind, ending.seconds) == ("time-out", SHORT.case_s)


def test_a_kill_from_outside_is_not_the_kernels_fault(card, lease):
    ending = run(card(), lease("killed"))["killed"]
    assert (ending.kind, ending.code, ending.shortage) == ("signal", signal.SIGKILL, None)
    assert classify(ending).party is Party.INFRASTRUCTURE


@pytest.mark.parametrize(("mb", "party"), [(300, Party.KERNEL), (0, Party.INFRASTRUCTURE)])
def test_who_used_the_memory_is_to_blame_where_the_system_had_none_left(card, lease, make_job, tmp_path, mb, party):
    counter = tmp_path / "memory.events"
    counter.write_text("oom 0\noom_kill 0\n")
    # the system counts what this process held when it began the child as the child's
    own_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    mb += own_mb if mb else 0
    memory = HostMemory(counter=str(counter), total_bytes=2 * (own_mb + 200) << 20)
    ends = run(card(memory=memory), lease(make_job("starved", mb=mb, counter=str(counter)), "fine", "killed"))
    assert ends["fine"].status is Status.OK
    assert (ends["starved"].kind, ends["starved"].code) == ("signal", signal.SIGKILL)
    assert ends["starved"].shortage.peak_bytes > mb << 20
    assert classify(ends["starved"]).party is party
    held, of = (size / 2**30 for size in (ends["starved"].shortage.peak_bytes, memory.total_bytes))
    said = f"the system ran out of memory and ended the process (it held at most {held:.1f} of {of:.1f} GiB"
    assert describe(ends["starved"]).startswith(said)
    assert ends["killed"].shortage is None, "the system has not counted this one"


def test_prints_go_nowhere_and_do_no_harm(card, lease):
    ends = run(card(), lease("prints", "fine"))
    assert {end.status for end in ends.values()} == {Status.OK}


@pytest.mark.parametrize("kernel", ["huge", "garbage"])
def test_what_is_too_large_or_unreadable_is_refused(card, lease, kernel):
    ends = run(card(), lease(kernel, "fine"))
    assert ends[kernel].kind == "protocol"
    assert ends["fine"].status is Status.OK


@pytest.mark.parametrize(
    ("suite", "kind", "limits"),
    [
        ("import_hangs", "time-out", BRIEF),
        ("import_prints", "time-out", BRIEF),
        ("import_exits", "exit", LIMITS),
    ],
)
def test_an_import_that_ends_its_process_takes_its_suite_only(card, lease, make_job, suite, kind, limits):
    ends = run(card(limits), lease(make_job("a", suite=suite), make_job("b"), make_job("c", suite=suite)))
    assert ends["b"].status is Status.OK
    assert ends["a"] == ends["c"]
    assert ends["a"].kind == kind
    assert len(ends["a"].said) <= 2000
    assert classify(ends["a"]).party is Party.SUITE


def test_a_grandchild_that_keeps_the_pipes_open_neither_delays_nor_survives(card, lease):
    ends = run(card(), lease("forks", "fine"))
    assert ends["fine"].status is Status.OK
    wait_until(lambda: not alive(int(ends["forks"].message)))


def test_a_child_that_cannot_start_is_the_nodes_fault(card, lease):
    ending = run(card(child=("-c", "import no_such_module_anywhere")), lease("fine"))["fine"]
    assert (ending.kind, ending.code) == ("exit", 1)
    assert "no_such_module_anywhere" in ending.said
    assert classify(ending).party is Party.NODE


def test_another_device_than_expected_is_refused(card, lease):
    ends = run(card(), lease("fine", "ok", uuid="CPU-1"))
    assert {classify(ending).party for ending in ends.values()} == {Party.DEVICE}
    assert "not CPU-1" in ends["fine"].said


def test_a_device_that_is_busy_for_a_moment_is_waited_for(card, lease, monkeypatch, tmp_path):
    monkeypatch.setenv("NVIDIA_FAKE_BUSY_ONCE", str(tmp_path / "seen"))
    assert run(card(), lease("fine"))["fine"].status is Status.OK
    assert (tmp_path / "seen").exists()


def test_a_broken_device_ends_the_lease(card, lease):
    ends = run(card(), lease("ecc", "fine"))
    assert ends["ecc"].status is Status.FAILED
    assert classify(ends["fine"]).party is Party.DEVICE


def test_identify_says_which_device_or_why_not(card):
    assert card().identify().report.device.uuid == "CPU-0"
    with pytest.raises(PoolError, match="exit code 7"):
        card(child=("-c", "raise SystemExit(7)")).identify()


def test_a_card_in_the_place_of_another_asks_for_the_device_only_where_it_may_be_another_one(card, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    before = card().identify()
    mute = card(child=("-c", "raise SystemExit(7)"))
    assert mute.take_over({}, before) == before
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4")
    with pytest.raises(PoolError, match="exit code 7"):
        mute.take_over({}, before)


def test_exit_codes_are_right_where_sigchld_was_ignored(card, lease):
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert run(card(), lease("segv"))["segv"].code == signal.SIGSEGV
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_a_child_sees_the_allow_list_only(card, monkeypatch):
    for name in ("RAY_AUTH_TOKEN", "PERFTRACK_DB", "AWS_SECRET_ACCESS_KEY", "TORCH_HOME", "OMP_NUM_THREADS"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "0")
    entries = card().identify().report.environment.entries
    seen = dict(line.split("=", 1) for line in str(entries["environment"]).splitlines())
    assert not [name for name in seen if name.startswith(("RAY_", "PERFTRACK", "AWS", "TORCH_"))]
    assert seen["NVIDIA_TF32_OVERRIDE"] == "0"
    assert {seen[f"{name}_NUM_THREADS"] for name in ("OMP", "MKL", "OPENBLAS", "NUMBA")} == {"2"}
    assert seen["HOME"] != os.environ["HOME"]
    assert seen["CUDA_VISIBLE_DEVICES"] == ""
    assert entries["files"] == ""
    assert str(entries["cwd"]) not in str(entries["path"]).splitlines()


def test_nothing_of_a_child_is_left_in_its_folder(card, lease, tmp_path):
    run(card(), lease("segv", "ok"))
    assert list(tmp_path.glob("perftrack-child-*")) == []


def test_a_child_dies_with_its_parent(fake_child, make_job, tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(
        "import sys, os, pathlib, msgspec\n"
        "from perftrack.measure.wire import Order, Phase\n"
        "from perftrack.pool.child_process import Child, Limits\n"
        "from perftrack.pool.host_memory import here\n"
        "order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)\n"
        f"with Child([sys.executable, *{fake_child!r}], order, dict(os.environ, CUDA_VISIBLE_DEVICES=''), "
        "pathlib.Path('.'), Limits(), here()) as child:\n"
        "    for message in child.messages():\n"
        "        if isinstance(message, Phase) and message.what == 'time':\n"
        "            print(child.pid, flush=True)\n"
    )
    import msgspec

    order = Order(backend="cpu", jobs=(make_job("stubborn"),))
    with subprocess.Popen(
        [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        parent.stdin.write(msgspec.json.encode(order).decode())
        parent.stdin.close()
        pid = int(parent.stdout.readline())
        assert alive(pid)
        parent.kill()
    wait_until(lambda: not alive(pid))


def test_leaving_a_child_early_ends_it(fake_child, make_job, tmp_path):
    order = Order(backend="cpu", jobs=(make_job("stubborn"),))
    environment = dict(os.environ, CUDA_VISIBLE_DEVICES="")
    with Child([sys.executable, *fake_child], order, environment, tmp_path, LIMITS, here()) as child:
        next(child.messages())
        assert alive(child.pid)
    assert not alive(child.pid)


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)

"""The blame table, row by row, and what follows from it."""

import signal

import pytest

from perftrack.model import Status
from perftrack.pool.blame import MAX_FAULTS, MAX_LOSSES, Decision, Ending, History, Party, classify, decide, describe
from perftrack.pool.host_memory import Shortage

pytestmark = pytest.mark.fault

OWN, OTHERS = Shortage(peak_bytes=13 << 30, total_bytes=24 << 30), Shortage(peak_bytes=9 << 30, total_bytes=24 << 30)
KERNEL, SUITE, DEVICE, NODE, INFRA = Party.KERNEL, Party.SUITE, Party.DEVICE, Party.NODE, Party.INFRASTRUCTURE

TABLE = [
    *[(Ending(kind="exit", code=86, cuda_error=code, phase="time"), KERNEL) for code in (700, 702, 710, 714, 719)],
    *[
        (Ending(kind="signal", code=number, phase="time"), KERNEL)
        for number in (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)
    ],
    (Ending(kind="exit", code=0, phase="verify"), KERNEL),
    (Ending(kind="exit", code=3, phase="build"), KERNEL),
    (Ending(kind="time-out", seconds=60, phase="time"), KERNEL),
    (Ending(kind="protocol", said="garbage", phase="time"), KERNEL),
    (Ending(kind="result", said="ValueError", phase="time"), KERNEL),
    (Ending(kind="result", cuda_error=2, phase="build"), KERNEL),
    (Ending(kind="exit", code=5, phase="import"), SUITE),
    (Ending(kind="signal", code=signal.SIGSEGV, phase="import"), SUITE),
    (Ending(kind="time-out", seconds=120, phase="import"), SUITE),
    (Ending(kind="signal", code=signal.SIGKILL, phase="time"), INFRA),
    (Ending(kind="signal", code=signal.SIGKILL, phase="import"), INFRA),
    (Ending(kind="signal", code=signal.SIGTERM, phase="time"), INFRA),
    (Ending(kind="signal", code=signal.SIGKILL, phase="time", shortage=OWN), KERNEL),
    (Ending(kind="signal", code=signal.SIGKILL, phase="import", shortage=OWN), SUITE),
    (Ending(kind="signal", code=signal.SIGKILL, phase="time", shortage=OTHERS), INFRA),
    (Ending(kind="machine", said="the clock is stuck", phase="time"), INFRA),
    *[(Ending(kind="exit", code=86, cuda_error=code, phase="time"), DEVICE) for code in (46, 100, 214, 802)],
    (Ending(kind="device", said="busy"), DEVICE),
    (Ending(kind="start", said="no such file"), NODE),
    (Ending(kind="exit", code=1), NODE),
    (Ending(kind="time-out", seconds=120), NODE),
    (Ending(kind="ray", ray_error="ActorDiedError", init_failed=True), NODE),
    *[
        (Ending(kind="ray", ray_error=name, phase="time"), INFRA)
        for name in (
            "ActorDiedError",
            "ActorUnavailableError",
            "NodeDiedError",
            "OutOfMemoryError",
            "OwnerDiedError",
            "ObjectLostError",
            "LocalRayletDiedError",
            "RpcError",
            "WorkerCrashedError",
            "RuntimeEnvSetupError",
        )
    ],
]


@pytest.mark.parametrize(("ending", "party"), TABLE)
def test_party(ending, party):
    blame = classify(ending)
    assert blame.party is party
    assert blame.strike == (party in {KERNEL, SUITE})


def test_two_strikes_are_a_failure():
    history, crash = History(), Ending(kind="signal", code=11, phase="time")
    assert decide(crash, history) == Decision(status=Status.FAILED, again=True)
    assert decide(crash, history) == Decision(status=Status.FAILED, again=False)


def test_faults_of_the_machine_are_no_strikes_and_have_an_end():
    history, killed = History(), Ending(kind="signal", code=9, phase="time")
    for _ in range(MAX_FAULTS):
        assert decide(killed, history) == Decision(status=Status.INFRA, again=True)
    assert decide(killed, history) == Decision(status=Status.INFRA, again=False)
    assert history.strikes == 0


def test_a_fault_between_two_crashes_changes_nothing():
    history, crash = History(), Ending(kind="exit", code=1, phase="time")
    decide(crash, history)
    decide(Ending(kind="signal", code=9, phase="time"), history)
    assert decide(crash, history) == Decision(status=Status.FAILED, again=False)


def test_a_job_that_kills_its_card_again_and_again_is_a_failure():
    history, lost = History(), Ending(kind="ray", ray_error="ActorDiedError", phase="time", suspect=True)
    for _ in range(MAX_LOSSES - 1):
        assert decide(lost, history) == Decision(status=Status.INFRA, again=True)
    assert decide(lost, history) == Decision(status=Status.FAILED, again=False)


def test_a_job_that_waited_while_its_card_died_is_no_suspect():
    history, lost = History(), Ending(kind="ray", ray_error="NodeDiedError")
    for _ in range(MAX_LOSSES):
        assert decide(lost, history) == Decision(status=Status.INFRA, again=True)


def test_the_description_names_signal_code_limit_phase_and_last_words():
    assert "signal 11 (SIGSEGV) during verify" in describe(Ending(kind="signal", code=11, phase="verify"))
    assert "signal 99 during" in describe(Ending(kind="signal", code=99, phase="time"))
    assert "exit code 3" in describe(Ending(kind="exit", code=3, phase="build"))
    assert "60 s" in describe(Ending(kind="time-out", seconds=60, phase="time"))
    assert describe(Ending(kind="exit", code=86, cuda_error=700, phase="time", said="line")).endswith(": line")
    assert "CUDA error 700" in describe(Ending(kind="exit", code=86, cuda_error=700, phase="time"))

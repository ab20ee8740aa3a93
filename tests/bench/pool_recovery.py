"""How soon the pool works again after a fault: `python tests/bench/pool_recovery.py [TIMES]`, `make bench-pool`.

Real raylets on this machine, real signals, a child that sleeps instead of measuring. Nodes have the health checks that
docs/pool.md recommends. Each line: median and worst of TIMES trials, in seconds, and the bound.
"""

import os
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.extend(str(Path(__file__).parents[1] / name) for name in ("pool", "."))

from several_nodes import Nodes, several_nodes

from perftrack.model import Case, Job, JobResult, Status, Traffic
from perftrack.pool.child_process import Limits
from perftrack.pool.client import Event, Pool
from perftrack.pool.talk import Progress

CHILD = ("-P", "-s", str(Path(__file__).parents[1] / "soak" / "simulated_child.py"))
CASE_S = 3.0
LIMITS = Limits(case_s=CASE_S, silence_s=10.0, start_s=20.0, exit_s=5.0, reap_s=10.0)
BOUNDS_S = {"crashed child": 1.0, "hung job": 1.0, "lost Card": 5.0, "lost node": 20.0, "silent node": 30.0}

Trial = Callable[[Iterator[Event], Nodes, str], float]


def job(number: int) -> Job:
    case = Case(
        suite="suite",
        benchmark="good",
        key=f"good[n={number}]",
        backend="cpu",
        params={"n": number},
        variants=("unfused", "fused"),
        traffic=Traffic(read_bytes=1, write_bytes=1),
        min_effect=0.02,
    )
    return Job(case=case, device_class="Simulated-1c", round=1)


def at_work(events: Iterator[Event], device: str, other_than: str = "") -> str:
    """Wait until a device begins with a case; its key."""
    return next(
        event.case_key
        for event in events
        if isinstance(event, Progress) and event.device_uuid == device and event.case_key != other_than
    )


def result_of(events: Iterator[Event], key: str) -> JobResult:
    return next(event for event in events if isinstance(event, JobResult) and event.case_key == key)


def crashed_child(events: Iterator[Event], nodes: Nodes, victim: str) -> float:
    """From the crash to the next case on the same device."""
    key = at_work(events, f"CPU-{victim}")
    began = _signal(nodes, victim, "simulated_child", signal.SIGSEGV)
    at_work(events, f"CPU-{victim}", other_than=key)
    return time.monotonic() - began


def hung_job(events: Iterator[Event], nodes: Nodes, victim: str) -> float:
    """From the limit of the case to its end."""
    key = at_work(events, f"CPU-{victim}")
    began = _signal(nodes, victim, "simulated_child", signal.SIGSTOP)
    assert result_of(events, key).status is Status.FAILED
    return time.monotonic() - began - CASE_S


def lost_card(events: Iterator[Event], nodes: Nodes, victim: str) -> float:
    """From the death of its process to the next case on the same device."""
    at_work(events, f"CPU-{victim}")
    began = _signal(nodes, victim, "ray::Card", signal.SIGKILL)
    at_work(events, f"CPU-{victim}")
    return time.monotonic() - began


def lost_node(events: Iterator[Event], nodes: Nodes, victim: str) -> float:
    """From the end of all its processes to the job at hand being somebody else's."""
    return _gone(events, victim, lambda: nodes.signal(victim, signal.SIGKILL))


def silent_node(events: Iterator[Event], nodes: Nodes, victim: str) -> float:
    """The same where its processes are stopped."""
    return _gone(events, victim, lambda: nodes.signal(victim, signal.SIGSTOP))


def _gone(events: Iterator[Event], victim: str, lose: Callable[[], None]) -> float:
    key = at_work(events, f"CPU-{victim}")
    lose()
    began = time.monotonic()
    assert result_of(events, key).status is Status.INFRA
    return time.monotonic() - began


def _signal(nodes: Nodes, victim: str, word: str, number: int) -> float:
    for pid in nodes.pids(victim, word):
        os.kill(pid, number)
    return time.monotonic()


def trials(trial: Trial, nodes: Nodes, times: int, victims: Iterator[str]) -> Iterator[float]:
    for _ in range(times):
        victim = next(victims)
        pool = Pool(
            address=nodes.address,
            want="cpu",
            trees={},
            suite_paths=(),
            methods={},
            seed=1,
            case_timeout_s=CASE_S,
            child=CHILD,
            limits=LIMITS,
        )
        with pool:
            pool.devices()
            events = pool.run([job(number) for number in range(200)])
            yield trial(events, nodes, victim)
            events.close()
        if trial in {lost_node, silent_node}:
            nodes.kill(victim)


def new_nodes(nodes: Nodes, name: str) -> Iterator[str]:
    for number in range(1000):
        nodes.add(f"{name}{number}")
        yield f"{name}{number}"


def same_node() -> Iterator[str]:
    while True:
        yield "a"


def main(times: int) -> None:
    with TemporaryDirectory() as cache:
        environment = {**os.environ, "XDG_CACHE_HOME": cache, "NVIDIA_FAKE_SECONDS": "0.5"}
        with several_nodes(environment, ("a", "b")) as nodes:
            os.environ |= {name: value for name, value in nodes.environment.items() if name.startswith("RAY_")}
            for trial in (crashed_child, hung_job, lost_card, lost_node, silent_node):
                name = trial.__name__.replace("_", " ").replace("card", "Card")
                victims = new_nodes(nodes, name[0]) if trial in {lost_node, silent_node} else same_node()
                took_s = list(trials(trial, nodes, times, victims))
                median, worst = statistics.median(took_s), max(took_s)
                sys.stdout.write(f"{name:<14} {median:6.2f} {worst:6.2f}  bound {BOUNDS_S[name]:.0f}\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)

"""How far one coordinator goes: `python tests/bench/pool_scale.py WHAT [DEVICES …]`, the figures of docs/scale.md.

`streams`: what Ray itself costs the host for each answer, over so many streams of answers at once, from real actors;
`calls`: what the least costs that one can ask of an actor, a call that does nothing, so many a second.
`real`: a pool of so many simulated GPUs, each a real Card in a real actor with a real child that sleeps instead of
measuring; beside it what the model says of the same jobs. `model`: the real dispatcher on a simulated clock, on which
go by what `streams` and `pool_overhead.py` have measured; `1000x10` is 1,000 devices and jobs of 10 s instead of 2 s.
"""

import os
import random
import secrets
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from threading import Thread
from types import ModuleType
from typing import Any

sys.path.extend(str(Path(__file__).parents[1] / name) for name in ("pool", "."))

import msgspec
from several_nodes import several_nodes
from simulated_pool import MEAN_S, Costs, Ran, coordinate, expected_s, plan

from perftrack.model import Job, JobResult
from perftrack.pool.child_process import Limits
from perftrack.pool.client import Pool
from perftrack.pool.talk import Progress

ANSWER_S, LISTENING_S = 1.5e-3, 0.6e-6
"""An answer of Ray by `streams`: this much and, for each device, this much; process CPU time of the driver."""

STORE_S = 0.9e-3
"""A result by `pool_overhead.py`, on a quiet machine."""

IN_ONE = 100
"""Streams of one actor; an actor for each would need 50 MB for each."""

CHILD = ("-P", "-s", str(Path(__file__).parents[1] / "pool" / "fake_child.py"))
PER_DEVICE = 24


class Talker:
    """Streams of answers like those of a Card."""

    def nothing(self) -> None:
        """The least."""

    def talk(self, events: int, gap_s: float) -> Any:
        for _ in range(events):
            time.sleep(random.uniform(0.5, 1.5) * gap_s)  # noqa: S311 - chance, not a secret
            yield bytes(4000)


def streams(count: int) -> None:
    """CPU time of a driver that listens to all of them, as the inbox does."""
    ray = cluster()
    actor = ray.remote(Talker).options(num_cpus=0, max_concurrency=IN_ONE)
    talkers = [actor.remote() for _ in range(-(-count // IN_ONE))]
    gap_s, events = max(1.0, count / 128), 5
    method = [talker.talk.options(num_returns="streaming") for talker in talkers]
    live = [method[number % len(talkers)].remote(events, gap_s) for number in range(count)]
    began_s, heard = time.process_time(), SimpleQueue()

    def hear(stream: Any) -> None:
        for reference in stream:
            heard.put(ray.get(reference))

    for stream in live:
        Thread(target=hear, args=(stream,), daemon=True).start()
    for _ in range(count * events):
        heard.get()
    cpu_s = time.process_time() - began_s
    say(f"{count:>5} streams: {cpu_s / (count * events) * 1e3:.2f} ms CPU of the driver an answer")


def calls(count: int) -> None:
    """CPU time of a driver for a call that does nothing, one after the other, at once or `count` in a second."""
    ray = cluster()
    idle = ray.remote(Talker).options(num_cpus=0).remote()
    ray.get(idle.nothing.remote())
    for pause_s in (0.0, 1 / count):
        began_s = time.process_time()
        for _ in range(500):
            ray.get(idle.nothing.remote())
            time.sleep(pause_s)
        how = f"{count} in a second" if pause_s else "at once"
        say(f"      calls, {how}: {(time.process_time() - began_s) / 500 * 1e3:.2f} ms CPU of the driver a call")


def cluster() -> ModuleType:
    """A Ray of its own on this machine."""
    os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32), RAY_USAGE_STATS_ENABLED="0")
    import ray

    if not ray.is_initialized():
        ray.init(address="local", include_dashboard=False, log_to_driver=False, num_cpus=2)
    return ray


def real(count: int) -> None:
    """A round of sleeping cases; how much of their time the devices were at work, and what the host used of the CPU."""
    planned = plan(PER_DEVICE * count, 1, known=True)
    jobs = [_sleeping(job) for job in planned]
    with TemporaryDirectory() as cache, several_nodes({**os.environ, "XDG_CACHE_HOME": cache}, ()) as nodes:
        nodes.add("gpus", f"--num-gpus={count}")
        os.environ |= {name: value for name, value in nodes.environment.items() if name.startswith("RAY_")}
        began_s = time.monotonic()
        limits = Limits(start_s=300.0)
        with Pool(
            address=nodes.address,
            want="FakeGPU-*",
            trees={},
            suite_paths=(),
            methods={},
            seed=1,
            case_timeout_s=60,
            child=CHILD,
            limits=limits,
        ) as pool:
            ready = len(pool.devices())
            ready_s = time.monotonic() - began_s
            host = pool._host.pid
            before_s, began_s, first_s, results = cpu_s(host), time.monotonic(), {}, 0
            for event in pool.run(jobs):
                if isinstance(event, Progress):
                    first_s.setdefault(event.device_uuid, time.monotonic() - began_s)
                results += isinstance(event, JobResult)
            wall_s = time.monotonic() - began_s
            used_s = cpu_s(host) - before_s
    start_s = statistics.mean(first_s.values())
    idle = 1 - sum(float(job.case.params["seconds"]) for job in jobs) / (ready * wall_s)
    model = _modelled(planned, count, Costs(start=start_s))
    say(
        f"{count:>5} Cards ready in {ready_s:.0f} s, {results} jobs: {used_s / results * 1e3:.2f} ms CPU of the host a "
        f"job (model {model.busy * model.wall_s / len(jobs) * 1e3:.2f}), children began after {start_s:.1f} s, "
        f"idle {idle:.1%} (model {model.idle:.1%})"
    )


def _sleeping(job: Job) -> Job:
    seconds = expected_s(job.case)
    case = msgspec.structs.replace(job.case, benchmark="slow", params={"seconds": seconds})
    return msgspec.structs.replace(job, case=case, device_class="FakeGPU-1G", expected_s=seconds)


def cpu_s(pid: int) -> float:
    """What a process has used of the CPU."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _modelled(jobs: Sequence[Job], count: int, costs: Costs) -> Ran:
    """With what Ray costs, and what the dispatcher itself uses of the CPU, which a run without costs has told."""
    free = coordinate(jobs, count)
    spent = costs._replace(answer=ANSWER_S + count * LISTENING_S, act=free.cpu_s / len(free.lags_s))
    return coordinate(jobs, count, spent)._replace(cpu_s=free.cpu_s)


def model(count: int, mean_s: float = MEAN_S) -> None:
    """100 jobs a device."""
    jobs = plan(100 * count, 5, known=True, mean_s=mean_s)
    ran = _modelled(jobs, count, Costs(store=STORE_S))
    lags_s = sorted(ran.lags_s)
    say(
        f"{count:>5} devices, {len(jobs)} jobs of {mean_s:g} s: idle {ran.idle:.1%}, coordinator busy {ran.busy:.0%}, "
        f"an event waits {lags_s[len(lags_s) // 2] * 1e3:.0f} ms (99 %: {lags_s[-len(lags_s) // 100] * 1e3:.0f} ms), "
        f"dispatch {ran.cpu_s / len(jobs) * 1e3:.2f} ms CPU a job"
    )


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


WHAT = {
    "calls": (calls, ("50",)),
    "streams": (streams, ("64", "256", "1000")),
    "real": (real, ("8", "16")),
    "model": (model, ("64", "256", "512", "1000", "1000x10")),
}

if __name__ == "__main__":
    do, usual = WHAT[sys.argv[1]]
    for word in sys.argv[2:] or usual:
        do(*map(int, word.split("x")))

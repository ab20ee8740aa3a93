"""What a job costs the pool host, measured as one: `python tests/bench/pool_host.py [DEVICES [JOBS A DEVICE]]`.

The real dispatcher, inbox, membership and workers over real streams of Ray, with answers as Cards give them, passed on
to a reader in the place of the command. Only the far end is simulated: Cards are threads of a few actors, jobs sleep.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.extend(str(Path(__file__).parents[1] / name) for name in ("pool", "bench"))

import msgspec
from pool_scale import IN_ONE, cluster, say
from simulated_pool import MEAN_S, expected_s, plan, report, result

from perftrack.model import Method, Status
from perftrack.pool.card import CardSetup
from perftrack.pool.child_process import Limits
from perftrack.pool.dispatch import Dispatcher, Plan
from perftrack.pool.inbox import Inbox
from perftrack.pool.lease import Doing, Finished, Lease, Named, encode
from perftrack.pool.membership import Membership
from perftrack.pool.talk import Reply, Result
from perftrack.pool.worker import Place, Worker

ROUNDS = 5


class Sleepers:
    """Several Cards, each a thread."""

    def tell(self, lease: Lease) -> Iterator[bytes]:
        """As a Card tells it: the end of a job with the beginning of the next one."""
        device = report(int(lease.device_uuid.removeprefix("GPU-")))
        untold: list[Any] = []
        for job in lease.jobs:
            yield encode([*untold, Doing(suite=job.case.suite, case_key=job.case.key, what="time")])
            seconds = expected_s(job.case)
            time.sleep(seconds)
            untold = [Finished(result=result(job, device, seconds))]
        yield encode(untold)


class Seat(Worker):
    """A worker whose Card shares an actor with others."""

    shared: Any = None

    def _start(self) -> Any:
        return self.shared


def main(devices: int = 64, per_device: int = 100) -> None:
    """CPU time of this process, with all threads of Ray's, from the first lease to the last result."""
    ray = cluster()
    actor = ray.remote(Sleepers).options(num_cpus=0, max_concurrency=IN_ONE)
    actors = [actor.remote() for _ in range(-(-devices // IN_ONE))]
    limits = Limits()
    node = ray.nodes()[0]["NodeID"]
    place = Place(node_id=node, node="node", backend="cuda", cores=1)
    setup = CardSetup(backend="cuda", cores=1, scratch="", child=(), limits=limits)
    workers: list[Worker] = []
    for number in range(devices):
        Seat.shared = actors[number % len(actors)]
        workers.append(Seat(ray, place, setup))
        workers[-1].named = Named(report=report(number), visible=str(number))
    jobs = plan(devices * per_device, ROUNDS, known=True)
    results = 0
    reader = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    pipe = reader.stdin.fileno()

    def emit(reply: Reply) -> None:
        nonlocal results
        if isinstance(reply, Result):
            results += 1
            if reply.result.status is not Status.OK:
                raise RuntimeError(reply.result.message)
        os.write(pipe, msgspec.json.encode(reply) + b"\n")

    dispatcher = Dispatcher(
        ray,
        workers,
        Plan(suite_paths=(), methods={"cuda": Method()}, seed=0, limits=limits),
        inbox=Inbox(ray),
        emit=emit,
        stopped=lambda: False,
        membership=Membership(ray, workers, lambda _: setup),
        replace=lambda worker: None,
        recruit=lambda worker: None,
        ask_again=lambda worker: None,
    )
    cpu_s, began_s = time.process_time(), time.monotonic()
    dispatcher.run(jobs)
    cpu_s, wall_s = time.process_time() - cpu_s, time.monotonic() - began_s
    reader.stdin.close()
    reader.wait()
    idle = 1 - sum(expected_s(job.case) for job in jobs) / (devices * wall_s)
    say(
        f"{devices} devices, {results} jobs of {MEAN_S:g} s in {wall_s:.0f} s: {cpu_s / results * 1e3:.2f} ms CPU of "
        f"the host a job, devices idle {idle:.1%}"
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

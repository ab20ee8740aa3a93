"""What the coordinator costs for each job: `python tests/bench/pool_overhead.py [JOBS …]`, part of `make bench-pool`.

The real dispatcher with simulated devices: 64 of them, each case a number of seconds of a simulated clock (2 s ± 50 %,
from round to round ± 5 %), no Ray, no processes. So what is counted is the coordinator's own work alone (process CPU
time), and how long devices stand idle for reasons of scheduling: in a first run, of whose cases nothing is known, and
in a later one. Behind it the client's part: results that are decoded, and stored in SQLite.
"""

import gc
import sys
import time
import tracemalloc
from tempfile import TemporaryDirectory

import msgspec
from simulated_pool import MEAN_S, case, coordinate, plan, report, result

from perftrack.model import Method, Revision, Run, RunOptions
from perftrack.pool.talk import Reply, Result
from perftrack.store import Store

DEVICES, ROUNDS = 64, 5
STORED = 2000
"""Jobs that are also put into a database; each costs the same."""


def dispatch(count: int) -> None:
    """A run of `count` jobs, the first of its kind and a later one."""
    first, later = (coordinate(plan(count, ROUNDS, known=known), DEVICES) for known in (False, True))
    say(
        f"{count:>7} jobs: dispatch {first.cpu_s / count * 1e3:.3f} ms CPU a job, "
        f"devices idle {first.idle:.1%} in a first run, {later.idle:.1%} in a later one"
    )


def memory(count: int) -> None:
    """What is kept of each job after it has ended, beyond the plan."""
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    coordinate(plan(count, ROUNDS, known=True), DEVICES)
    gc.collect()
    after, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    say(f"{count:>7} jobs: {(after - before) / count:.0f} bytes a job left at the end, {peak / count:.0f} at the peak")


def store(count: int) -> None:
    """The client's part: decode what the host says and store it, each job in its own transaction."""
    devices = [report(number) for number in range(DEVICES)]
    cases = [case(number) for number in range(count // ROUNDS)]
    jobs = plan(count, ROUNDS, known=True)
    lines = [
        msgspec.json.encode(Result(result=result(job, devices[number % DEVICES], MEAN_S)))
        for number, job in enumerate(jobs)
    ]
    head = Revision(sha="0" * 40, tree="1" * 40, dirty=False, parent=None, position=0, committed_us=0, subject="")
    options = RunOptions(methods={"cuda": Method()})
    run = Run(uid="0" * 32, repo="r", head=head, base=None, base_note="", options=options, started_us=1)
    decoder = msgspec.json.Decoder(Reply)
    with TemporaryDirectory() as folder, Store.open(f"{folder}/perf.db") as opened:
        opened.begin_run(run)
        began = time.process_time()
        opened.declare(cases)
        for number, line in enumerate(lines):
            reply = decoder.decode(line)
            opened.add_job(run.uid, jobs[number].case, reply.result, devices[number % DEVICES].device)
        cpu_s = time.process_time() - began
    say(f"{count:>7} jobs: decode and store {cpu_s / count * 1e3:.3f} ms CPU a job")


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    for wanted in [int(word) for word in sys.argv[1:]] or [1_000, 10_000, 100_000]:
        dispatch(wanted)
    memory(20_000)
    store(STORED)

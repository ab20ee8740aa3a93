"""A measuring child whose kernels are told what to do by the benchmark's name. It speaks the real protocol."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec

from perftrack.measure.wire import STICKY_EXIT, Bye, Done, Hello, Order, Phase
from perftrack.model import Device, DeviceReport, Environment, JobResult, Measurement, Status

out = os.dup(1)
os.dup2(2, 1)


def say(message):
    raw(msgspec.json.encode(message) + b"\n")


def raw(data):
    while data:
        data = data[os.write(out, data) :]


def report(backend):
    visible = os.environ["CUDA_VISIBLE_DEVICES"]
    larger = "two-classes" in sys.argv and visible == "1"
    name = f"FakeGPU-{2 if larger else 1}G" if backend == "cuda" else "cpu-fake-2c"
    busy = os.environ.get("NVIDIA_FAKE_BUSY") == visible and backend == "cuda"
    once = os.environ.get("NVIDIA_FAKE_BUSY_ONCE")
    if once and order.jobs and not Path(once).exists():
        Path(once).touch()
        busy = True
    device = Device(
        uuid=f"GPU-{visible}" if backend == "cuda" else f"CPU-{os.environ.get('NVIDIA_FAKE_CPU', '0')}",
        name=name,
        backend=backend,
        device_class=name,
        node="here",
        memory_bytes=1 << 30,
    )
    entries = {
        "environment": "\n".join(f"{key}={value}" for key, value in sorted(os.environ.items())),
        "nice": os.nice(0),
        "cupy": os.environ.get("NVIDIA_FAKE_CUPY", "14.2"),
        "pid": os.getpid(),
        "card": os.getppid(),
        "cwd": str(Path.cwd()),
        "path": "\n".join(sys.path),
        "files": " ".join(path.name for path in Path().iterdir()),
    }
    return DeviceReport(device=device, environment=Environment(entries=entries), problem="it is busy" * busy)


def measured(side="head", variant="fused", status=Status.OK, samples=(1e-3, 1.1e-3)):
    return Measurement(side=side, variant=variant, status=status, samples_s=samples, blocks=(0,) * len(samples))


def done(job, status=Status.OK, message="", cuda_error=0, measurements=None, intrusion="", canary_s=()):
    result = JobResult(
        suite=job.case.suite,
        case_key=job.case.key,
        device_class=job.device_class,
        round=job.round,
        attempt=job.attempt,
        status=status,
        message=message,
        device_uuid=hello.device.uuid,
        environment=hello.environment,
        measurements=measurements or (measured(status=status),),
        canary_s=canary_s,
    )
    say(Done(result=result, cuda_error=cuda_error, intrusion=intrusion))


def hang_with_gil(_job=None):
    ctypes.PyDLL(None).sleep(1000)


def sticky(job):
    done(job, Status.FAILED, "CUDA error 700", 700)
    os._exit(STICKY_EXIT)


def ecc(job):
    done(job, Status.FAILED, "CUDA error 214", 214)
    os._exit(STICKY_EXIT)


def starved(job):
    """Killed as by the system that is out of memory, which counts what it kills."""
    held = b"x" * (int(job.case.params["mb"]) << 20)
    Path(job.case.params["counter"]).write_text("oom 1\noom_kill 1\n")
    os.kill(os.getpid(), signal.SIGKILL)
    del held


def stubborn(_job):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(1000)


def busy(job):
    while True:
        say(Phase(what="time", suite=job.case.suite, case_key=job.case.key))
        time.sleep(0.05)


def prints(job):
    for _ in range(100):
        os.write(1, b"x" * 999_999 + b"\n")
    os.close(1)
    done(job)


def half(_job):
    raw(b'{"kind":"done","result":{"suite"')
    sys.stdout.write("half a line\n")
    sys.stdout.flush()
    os._exit(3)


def garbage(_job):
    raw(b"garbage\n")
    time.sleep(1000)


def forks(job):
    grandchild = subprocess.Popen(["sleep", "1000"], stdout=out, stderr=2)
    done(job, message=str(grandchild.pid))
    os._exit(0)


def kills_card(_job):
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(1000)


def slow(job):
    time.sleep(float(job.case.params["seconds"]))
    done(job)


def until(job):
    """Wait for what `touches` makes, for however long it takes: a case that says nothing for a minute is ended."""
    while not Path(job.case.params["path"]).exists():
        say(Phase(what="time", suite=job.case.suite, case_key=job.case.key))
        time.sleep(0.05)
    done(job)


def slow_until(job):
    """Take time for as long as there is no such file."""
    if not Path(job.case.params["path"]).exists():
        time.sleep(0.3)
    done(job)


def touches(job):
    Path(job.case.params["path"]).touch()
    done(job)


def on_first_card(what):
    """Do something else on the first card than on the others, where the job is fine."""
    return lambda job: what(job) if os.environ["CUDA_VISIBLE_DEVICES"] == "0" else done(job)


def intruded(job):
    done(job, Status.INFRA, "GPU-0 is not free any more", intrusion="another process computes on it (pid 5)")
    sys.exit()


def once(job):
    """Crash, but not on a second attempt."""
    if job.attempt == 1:
        os.abort()
    done(job)


def fine(job):
    names = {side: sorted(path.name for path in Path(root).iterdir()) for side, root in sorted(order.trees.items())}
    done(job, message=repr(names))


def told(job):
    """Each side takes as many seconds as a file of its tree says."""
    times = {side: (float(Path(order.trees[side], "seconds").read_text()) + 1e-6 * job.round) for side in job.sides}
    done(
        job,
        measurements=[measured(side, name, samples=(s,)) for side, s in times.items() for name in job.case.variants],
    )


def copies(job):
    """The first card copies more slowly than the others, in most blocks."""
    time.sleep(0.02)
    slow = 1.06e-4 if os.environ["CUDA_VISIBLE_DEVICES"] == "0" else 1e-4
    done(job, canary_s=(slow, slow, 1e-4))


KERNELS = {
    "copies": copies,
    "told": told,
    "segv": lambda _: os.kill(os.getpid(), signal.SIGSEGV),
    "abort": lambda _: os.abort(),
    "exit0": lambda _: os._exit(0),
    "sticky": sticky,
    "ecc": ecc,
    "hang": hang_with_gil,
    "stubborn": stubborn,
    "stopped": lambda _: os.kill(os.getpid(), signal.SIGSTOP),
    "busy": busy,
    "starved": starved,
    "killed": lambda _: os.kill(os.getpid(), signal.SIGKILL),
    "prints": prints,
    "half": half,
    "garbage": garbage,
    "huge": lambda job: done(job, message="x" * 50_000_000),
    "forks": forks,
    "raises": lambda job: done(job, Status.FAILED, "ValueError: no"),
    "machine": lambda job: done(job, Status.INFRA, "the clock is stuck"),
    "kills_card": kills_card,
    "slow": slow,
    "until": until,
    "slow_until": slow_until,
    "touches": touches,
    "once": once,
    "disturbed": on_first_card(lambda job: done(job, Status.UNSTABLE, "disturbed")),
    "intruded": on_first_card(intruded),
    "kills_one_card": on_first_card(kills_card),
}


def import_prints():
    while True:
        os.write(1, b"x" * 99_999 + b"\n")
        time.sleep(0.001)


def import_twice():
    """As of head and base, the first of which takes longer than is kept quiet about."""
    time.sleep(5.5)
    say(Phase(what="import", suite="import_twice"))


IMPORTS = {
    "import_twice": import_twice,
    "import_hangs": hang_with_gil,
    "import_prints": import_prints,
    "import_exits": lambda: os._exit(5),
}


if mute := os.environ.get("NVIDIA_FAKE_HANGS"):
    Path(mute).touch()
    hang_with_gil()
if "NVIDIA_FAKE_DUMB" in os.environ:
    os._exit(7)
order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)
hello = report(order.backend)
say(Hello(report=hello))
seen = set()
for job in order.jobs:
    if job.case.suite not in seen:
        seen.add(job.case.suite)
        say(Phase(what="import", suite=job.case.suite))
        IMPORTS.get(job.case.suite, list)()
    say(Phase(what="time", suite=job.case.suite, case_key=job.case.key))
    KERNELS.get(job.case.benchmark, fine)(job)
say(Bye())

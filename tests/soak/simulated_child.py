"""A measuring child that sleeps instead of measuring; what a case does is said by its benchmark's name.

`wrong`, `raises`, `crashes` and `hangs` are to blame themselves, whatever else befalls the pool; the others are fine.
"""

import hashlib
import os
import signal
import sys
import time

import msgspec

from perftrack.measure.wire import Bye, Done, Hello, Order, Phase
from perftrack.model import Device, DeviceReport, Environment, JobResult, Measurement, Status

out = os.dup(1)
os.dup2(2, 1)
order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)
device = Device(
    uuid=f"CPU-{os.environ.get('NVIDIA_FAKE_CPU', '0')}",
    name="Simulated",
    backend="cpu",
    device_class="Simulated-1c",
    node="here",
    memory_bytes=1 << 30,
)
environment = Environment(entries={"python": sys.version})


def say(message):
    data = msgspec.json.encode(message) + b"\n"
    while data:
        data = data[os.write(out, data) :]


def samples(job, variant):
    """Seconds that follow from what was asked for alone."""
    digest = hashlib.sha256(f"{order.seed} {job.identity} {variant}".encode()).digest()
    return tuple(1e-3 + byte * 1e-7 for byte in digest)


def measured(job, side, variant):
    if job.case.benchmark == "wrong" and variant == "fused":
        return Measurement(side=side, variant=variant, status=Status.WRONG, message="not what it should be")
    if job.case.benchmark == "raises" and variant == "fused":
        return Measurement(side=side, variant=variant, status=Status.FAILED, message="ValueError: planted")
    times = samples(job, variant)
    blocks = tuple(index // 2 for index in range(len(times)))
    return Measurement(
        side=side, variant=variant, status=Status.OK, samples_s=times, blocks=blocks, calls_per_sample=1, mode="loop"
    )


say(Hello(report=DeviceReport(device=device, environment=environment)))
for job in order.jobs:
    say(Phase(what="time", suite=job.case.suite, case_key=job.case.key))
    if job.case.benchmark == "crashes":
        os.kill(os.getpid(), signal.SIGSEGV)
    time.sleep(1000 if job.case.benchmark == "hangs" else float(os.environ.get("NVIDIA_FAKE_SECONDS", "0.05")))
    result = JobResult(
        suite=job.case.suite,
        case_key=job.case.key,
        device_class=job.device_class,
        round=job.round,
        attempt=job.attempt,
        status=Status.OK,
        device_uuid=device.uuid,
        environment=environment,
        seed=order.seed,
        measurements=tuple(measured(job, side, variant) for side in job.sides for variant in job.case.variants),
        canary_s=(1e-4,) * 16,
        wall_s=0.2,
        started_us=time.time_ns() // 1000,
    )
    say(Done(result=result))
say(Bye())

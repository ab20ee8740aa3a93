"""Pools and clusters that are made up: what they answer is given, everything around them is real."""

import io
import os
import shutil
from contextlib import contextmanager, redirect_stdout
from fnmatch import fnmatchcase
from pathlib import Path

from perftrack.errors import PerftrackError, UsageError
from perftrack.model import Device, DeviceReport, Environment, JobResult, Measurement, Status
from perftrack.pipeline import inside

H200, B200, CPU = "NVIDIA-H200-141G", "NVIDIA-B200-192G", "cpu-EPYC-8c"

SUITE = """
from perftrack.declare import benchmark


@benchmark(
    variants={"unfused": print, "fused": print},
    reference=print,
    axes={"n": [1]},
    traffic=lambda n: {"reads": 1, "writes": 1},
)
def NAME(rng, n):
    return n
"""


class Quiet:
    """A listener that keeps the lines."""

    def __init__(self):
        self.said = []

    def say(self, text):
        self.said.append(text)

    def stage(self, title, total):
        pass

    def working(self, text):
        pass

    def advance(self):
        pass

    def end(self):
        pass


class Cards:
    """One card of each class; `become`: class → what becomes of its jobs, or of whoever asks for it."""

    def __init__(self):
        self.become = dict.fromkeys((H200, B200, CPU), Status.OK)
        self.asked, self.jobs = [], []
        """What pools were asked for, and the classes of the jobs that were given out."""

    def pool(self, *, want, **_):
        self.asked.append(want)
        return _Pool(self, want)


class _Pool:
    def __init__(self, cards, want):
        self.cards, self.want = cards, want

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def devices(self):
        want = "cpu*" if self.want == "cpu" else self.want or "NVIDIA-*"
        found = [name for name in self.cards.become if fnmatchcase(name, want)]
        if not found:
            raise UsageError(f"unknown device class {want!r}")
        for name in found:
            if isinstance(why := self.cards.become[name], PerftrackError):
                raise why
        return [DeviceReport(device=card(name), environment=Environment(entries={})) for name in found]

    def run(self, jobs):
        for job in jobs:
            self.cards.jobs.append(job.device_class)
            become = self.cards.become[job.device_class]
            yield result(job, become if isinstance(become, Status) else become())


def card(name):
    backend = "cpu" if name == CPU else "cuda"
    return Device(uuid=f"u-{name}", name=name, backend=backend, device_class=name, node="n", memory_bytes=1)


def result(job, status):
    measured = [
        Measurement(
            side="head", variant=name, status=Status.OK, samples_s=(1e-3,) * 4, blocks=(0, 0, 1, 1), calls_per_sample=1
        )
        for name in job.case.variants
    ]
    return JobResult(
        suite=job.case.suite, case_key=job.case.key, device_class=job.device_class, round=job.round,
        attempt=job.attempt, status=status, message="" if status is Status.OK else "lost",
        device_uuid=card(job.device_class).uuid,
        measurements=tuple(measured if status is Status.OK else ()),
    )  # fmt: skip


class Head:
    """Takes jobs as a dashboard does, and carries them out when it is told to."""

    address, problem = "http://head:8265", ""

    def __init__(self, folder: Path, *, at_once: bool):
        self.folder, self.at_once = folder, at_once
        self.logs, self.waiting = {}, []

    def submit(self, folder, _entrypoint, name):
        shutil.copytree(folder, self.folder / name)
        self.waiting.append(name)
        if self.at_once:
            self.work()

    def work(self):
        """Carry out what was submitted; the logs are returned."""
        done, self.waiting = self.waiting, []
        for name in done:
            with redirect_stdout(io.StringIO()) as log, within(self.folder / name):
                code = inside.main()
            self.logs[name] = ("FAILED" if code else "SUCCEEDED", log.getvalue())
        return [self.logs[name][1] for name in done]

    def look(self, name):
        return self.logs[name]

    def stop(self, _name):
        return True


@contextmanager
def within(folder):
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)

"""The measuring child: `python -P -s -m perftrack.measure.child`, one order on stdin, messages on a private pipe.

It lives for one round. Everything that tracked code raises becomes a status; a crash, an exit or a hang is seen
by the parent, which knows from the last `Phase` what was being done. After an error that takes the CUDA context
along it ends itself with `STICKY_EXIT`, the failing `Done` sent.
"""

import faulthandler
import os
import random
import resource
import sys
from pathlib import Path

import msgspec

from perftrack.declare import Benchmark
from perftrack.errors import InfrastructureError, SuiteError
from perftrack.measure.device import absent, identify, open_engine
from perftrack.measure.engine import Engine
from perftrack.measure.pipe import PrivatePipe
from perftrack.measure.protocol import measure, without_measurements
from perftrack.measure.subject import Subject
from perftrack.measure.tree import Workspace, find_suites, isolate_harness
from perftrack.measure.wire import STICKY_EXIT, Bye, Done, Hello, Order, Phase, PhaseName
from perftrack.model import DeviceReport, Job, Side, Status


class Child:
    """One order being carried out."""

    def __init__(self, order: Order, pipe: PrivatePipe) -> None:
        self._order = order
        self._pipe = pipe
        self._loaded: dict[tuple[Side, str], tuple[Workspace, list[Benchmark]] | str] = {}

    def run(self) -> int:
        """Say hello, measure the jobs in random order, say bye; the exit code."""
        report = self._identify()
        self._pipe.send(Hello(report=report))
        problem = report.problem or self._unexpected(report)
        if problem:
            for job in self._order.jobs:
                self._pipe.send(Done(result=without_measurements(job, report, Status.INFRA, problem)))
        elif self._order.jobs:
            code = self._measure_all(report)
            if code:
                return code
        self._pipe.send(Bye())
        return 0

    def _identify(self) -> DeviceReport:
        try:
            return identify(self._order.backend)
        except InfrastructureError as error:
            return absent(self._order.backend, str(error))

    def _unexpected(self, report: DeviceReport) -> str:
        expected = self._order.device_uuid
        if not expected or expected == report.device.uuid:
            return ""
        return f"device {expected} was expected, but this process sees {report.device.uuid}"

    def _measure_all(self, report: DeviceReport) -> int:
        order = self._order
        engine: Engine = open_engine(order.backend)
        jobs = list(order.jobs)
        random.Random(f"{order.seed}/{order.round}").shuffle(jobs)  # noqa: S311 - an order, not a secret
        for job in jobs:
            subjects: dict[Side, Subject | str] = {side: self._subject(side, job) for side in job.sides}

            def notify(what: PhaseName, job: Job = job) -> None:
                self._pipe.send(Phase(what=what, suite=job.case.suite, case_key=job.case.key))

            outcome = measure(job, subjects, engine, report, order.method, seed=order.seed, notify=notify)
            done = Done(result=outcome.result, cuda_error=outcome.cuda_error, intrusion=outcome.intrusion)
            self._pipe.send(done)
            if outcome.cuda_error:
                return STICKY_EXIT
            if outcome.intrusion:
                break
        return 0

    def _subject(self, side: Side, job: Job) -> Subject | str:
        """The side's declaration of the job's case, or why there is none."""
        loaded = self._load(side, job.case.suite)
        if isinstance(loaded, str):
            return loaded
        workspace, benchmarks = loaded
        for benchmark in benchmarks:
            for case in benchmark.cases(job.case.suite, job.case.backend):
                if case.key == job.case.key:
                    return Subject(side, benchmark, workspace)
        return f"{side}'s suite {job.case.suite} does not declare {job.case.key}"

    def _load(self, side: Side, suite: str) -> tuple[Workspace, list[Benchmark]] | str:
        if (side, suite) not in self._loaded:
            self._pipe.send(Phase(what="import", suite=suite))
            self._loaded[side, suite] = self._import(side, suite)
        return self._loaded[side, suite]

    def _import(self, side: Side, suite: str) -> tuple[Workspace, list[Benchmark]] | str:
        if side not in self._order.trees:
            return f"the order names no tree for {side}"
        root = Path(self._order.trees[side])
        modules, problems = find_suites(root, self._order.suite_paths)
        if suite not in modules:
            return problems.get(suite, f"{side} has no suite {suite}")
        workspace = Workspace(root)
        try:
            return workspace, workspace.load(suite, modules[suite])
        except SuiteError as error:
            return str(error)


def main() -> int:
    """The child's whole life."""
    pipe = PrivatePipe()
    faulthandler.enable(sys.stderr)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    isolate_harness()
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)
    return Child(order, pipe).run()


if __name__ == "__main__":
    code = main()
    sys.stderr.flush()
    os._exit(code)  # threads that tracked code left behind, and a dead CUDA context, must not hold up the end

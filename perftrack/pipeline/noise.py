"""`perftrack doctor --measure`: a commit against itself, so that what moves is the machine and the method."""

import os
import secrets
import socket
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from perftrack import config
from perftrack.errors import IncompleteError, InfrastructureError
from perftrack.judge import noise
from perftrack.judge.disturbance import Disturbance, busy_host, disturbances
from perftrack.measure.methods import default_method
from perftrack.model import Case, JobResult, Run, RunOptions
from perftrack.pipeline import plan
from perftrack.pipeline.execution import Execution
from perftrack.pipeline.reports import report_of
from perftrack.pipeline.talk import Talk
from perftrack.pipeline.trees import Compared, Trees, export
from perftrack.report.noise import NoiseReport
from perftrack.report.value import Report
from perftrack.revision import Repository
from perftrack.store import Store

_NOTE = "the same commit (A/A)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the user typed after `perftrack doctor --measure`."""

    start: Path
    suites: tuple[str, ...] = ()
    """Names; empty: all. The first case of each is measured."""
    device: str = ""
    rounds: int | None = None
    """Fresh processes a case; None: as many as a submission takes."""


def measure_noise(request: Request, talk: Talk) -> NoiseReport:
    """Measure HEAD against HEAD as a submission would, into a database that is thrown away.

    Noise measured on purpose must not become history, and an A/A run is no result of the commit. Raises the errors of
    `errors`; InfrastructureError where no case can run on the device.
    """
    repository = Repository.discover(request.start)
    settings = config.resolve(repository.root)
    head = repository.revision("HEAD")
    options = RunOptions(
        suites=request.suites,
        device=request.device,
        rounds=settings.rounds if request.rounds is None else request.rounds,
        confirm_rounds=settings.confirm_rounds,
        suite_paths=settings.suites,
        methods={"cuda": default_method("cuda"), "cpu": default_method("cpu")},
        case_timeout_s=settings.case_timeout,
        seed=secrets.randbits(32),
    )
    with tempfile.TemporaryDirectory(prefix="perftrack-") as scratch:
        trees = export(Compared(repository, head, None, _NOTE), settings.suites, Path(scratch))
        plan.check_selection(trees, options)
        trees = against_itself(trees)
        run = Run(
            uid=secrets.token_hex(16),
            repo=repository.name,
            head=head,
            base=head,
            base_note=_NOTE,
            options=options,
            started_us=time.time_ns() // 1000,
            problems=trees.problems,
        )
        talk.say(f"head    {head.label} {head.subject}")
        talk.say(f"base    {_NOTE}: results go to a temporary database, not into the history")
        load = os.getloadavg()[0]
        with Store.open(f"sqlite:///{scratch}/noise.db") as store:
            execution = Execution(run, trees, store, talk)
            try:
                execution.measure(None)
            except IncompleteError as error:
                raise InfrastructureError(str(error)) from error
            return _report(execution, report_of(store, run.uid), store, load)


def against_itself(trees: Trees) -> Trees:
    """Head's tree on both sides, with the first case of each suite on each backend and no other."""
    found = trees.collected["head"]
    found = msgspec.structs.replace(found, cases=_firsts(found.cases))
    archive = trees.archives["head"]
    return replace(
        trees,
        base=trees.head,
        archives={"head": archive, "base": archive},
        collected={"head": found, "base": found},
    )


def _firsts(cases: Iterable[Case]) -> list[Case]:
    firsts: dict[tuple[str, str], Case] = {}
    for case in cases:
        firsts.setdefault((case.suite, case.backend), case)
    return list(firsts.values())


def _report(execution: Execution, report: Report, store: Store, load: float) -> NoiseReport:
    run, trees = execution.run, execution.trees
    results = store.jobs(run.uid)
    attempts = [result for result, _ in store.attempts(run.uid)]
    return NoiseReport(
        head=run.head.label,
        head_sha=run.head.sha,
        head_subject=run.head.subject,
        rounds=run.options.rounds,
        families=tuple(noise.families(trees.cases("head"), execution.devices, results)),
        devices=tuple(execution.devices),
        noise=tuple(noise.devices_seen(results)),
        disturbances=(*_of_pool(execution), *_of_devices(execution, attempts, load)),
        unmeasured=tuple(noise.unmeasured(results)),
        problems=trees.problems,
        methods=report.methods,
    )


def _of_pool(execution: Execution) -> list[Disturbance]:
    """Devices that were left out or lost."""
    remedy = "free the device (nvidia-smi lists what works on it) or mend it, or choose another with -d"
    said = [problem for problem in execution.problems if problem not in execution.trees.problems]
    return [Disturbance(where="", what=problem, remedy=remedy) for problem in said]


def _of_devices(execution: Execution, attempts: list[JobResult], load: float) -> list[Disturbance]:
    here = [device for device in execution.devices if device.node == socket.gethostname()]
    busy = [one for device in here for one in busy_host(device, load)]
    return busy + disturbances(execution.devices, attempts, execution.run.options.methods)

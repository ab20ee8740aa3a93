"""Measuring in this process: verified launches of one case, for a caller that times them itself."""

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from perftrack.declare import Benchmark, collect_suite
from perftrack.measure.candidate import Candidate
from perftrack.measure.checking import check
from perftrack.measure.device import choose_backend, identify, open_engine
from perftrack.measure.engine import Engine
from perftrack.measure.methods import quick_method
from perftrack.measure.prepare import Preparation
from perftrack.measure.protocol import mix_of
from perftrack.measure.subject import Subject
from perftrack.model import Backend, Case, DeviceReport, Issue, Job, Status

_PAIRS = 7
_SAMPLE_S = 5e-3


@dataclass(frozen=True, slots=True)
class Prepared:
    """One variant of one case, built and verified, and the baseline variant beside it.

    `status` and `message` say why it cannot be timed; only when `status` is `ok` do the others work.
    """

    case: Case
    status: Status
    message: str
    run: Callable[[], None]
    """One call, on the next set of data, and the wait for its end."""
    pair_s: Callable[[], tuple[float, float]]
    """Device seconds per call of (variant, baseline), medians of a few interleaved samples."""
    ceiling_bytes_per_s: float = 0.0
    """Of a copy; `mix_ceiling_bytes_per_s` of the case's own reads per write."""
    mix_ceiling_bytes_per_s: float = 0.0


class Session:
    """The backend of this process: `cuda` where CuPy sees a device, else `cpu`."""

    def __init__(self, backend: Backend | None = None) -> None:
        self.backend: Backend = backend or choose_backend()
        self.report: DeviceReport = identify(self.backend)
        self._engine: Engine = open_engine(self.backend)

    def cases(self, module: ModuleType, suite: str) -> list[tuple[Benchmark, Case]]:
        """What an imported suite declares for this backend."""
        return [(made, case) for made in collect_suite(module, suite) for case in made.cases(suite, self.backend)]

    def prepare(self, benchmark: Benchmark, case: Case, variant: str, *, seed: int = 0) -> Prepared:
        """Build and verify `variant` and the baseline on rotated sets. The last case's memory is given back."""
        self._engine.release()
        self._engine.forget()
        job = Job(case=case, device_class=self.report.device.device_class, round=1)
        with self._engine.active():
            work = Preparation(self._engine, job, [Subject("head", benchmark)], seed)
            work.candidates = [made for made in work.candidates if made.name in {variant, benchmark.baseline}]
            if work.alive():
                work.prepare(quick_method(self.backend), lambda: check(work, 0))
        by_name = {made.name: made for made in work.candidates}
        return self._prepared(work, by_name[variant], by_name[benchmark.baseline])

    def _prepared(self, work: Preparation, made: Candidate, baseline: Candidate) -> Prepared:
        faulty = next((one for one in (made, baseline) if not one.alive), made)
        message = faulty.message if faulty is made else f"baseline {faulty.name}: {faulty.message}"
        if not faulty.alive:
            return Prepared(work.job.case, faulty.status, message, _nothing, lambda: (0.0, 0.0))
        position = 0

        def run() -> None:
            nonlocal position
            with self._engine.active():
                made.launches[position % work.sets]()
                self._engine.synchronize()
            position += 1

        with self._engine.active():
            ceiling, mix = self._engine.ceiling(1), self._engine.ceiling(mix_of(work.job.case.traffic))
        case = work.job.case
        return Prepared(case, Status.OK, "", run, lambda: self._pair(made, baseline, case.issue), ceiling, mix)

    def _pair(self, made: Candidate, baseline: Candidate, issue: Issue) -> tuple[float, float]:
        engine = self._engine
        with engine.active():
            rotations = [made.rotation(), baseline.rotation()]
            costs = [engine.cost(rotation) for rotation in rotations]
            _, issuers = engine.issuers(rotations, costs, issue)
            entries: list[tuple[Any, int]] = [
                (issuer, max(1, min(issuer.max_times, int(_SAMPLE_S / (cost.device_s * issuer.unit)))))
                for issuer, cost in zip(issuers, costs, strict=True)
            ]
            blocks = [engine.time_block(entries, None) for _ in range(_PAIRS)]
        first, second = (
            statistics.median(block.elapsed_s[index] / (times * issuer.unit) for block in blocks)
            for index, (issuer, times) in enumerate(entries)
        )
        return first, second


def _nothing() -> None:
    """There is nothing to run."""

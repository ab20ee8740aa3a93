"""The protocol: one job from its inputs to its result, on any engine.

inputs → build → verify → warm up → calibrate → interleaved blocks → verify again → bounds. Whatever the
tracked code does becomes the status of one variant, and the others go on.
"""

import random
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from perftrack.measure.checking import check, run_as_timed
from perftrack.measure.engine import DeviceLostError, Engine
from perftrack.measure.inputs import fits_cache, seed_of
from perftrack.measure.prepare import Preparation
from perftrack.measure.subject import Subject
from perftrack.measure.timing import Timing
from perftrack.measure.wire import PhaseName
from perftrack.model import DeviceReport, Environment, Job, JobResult, Measurement, Method, Side, Status, Traffic

_MIXES = (0, 1, 2, 3, 4, 8)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A job's result, and what it said about the device."""

    result: JobResult
    cuda_error: int = 0
    """The CUDA error code that ended the process's context, or 0."""
    intrusion: str = ""
    """What else works on the device."""


def measure(
    job: Job,
    subjects: Mapping[Side, Subject | str],
    engine: Engine,
    report: DeviceReport,
    method: Method,
    *,
    seed: int,
    notify: Callable[[PhaseName], None],
) -> Outcome:
    """Carry out one job. A subject that is a string is the reason why that side cannot be loaded."""
    begun_us, begun, busy = time.time_ns() // 1000, time.perf_counter(), engine.busy_s
    loaded = [subject for subject in subjects.values() if isinstance(subject, Subject)]
    status, message, code, intrusion = Status.OK, "", 0, ""
    with engine.active():
        environment = _environment(report, engine.forget())
        work = Preparation(engine, job, loaded, seed)
        trial = _Trial(work, method, notify)
        try:
            trial.carry_out()
            status, message = trial.verdict()
            if intrusion := engine.intrusion():
                status, message = Status.INFRA, f"{report.device.uuid} is not free any more: {intrusion}"
        except DeviceLostError as lost:
            status, message, code = Status.FAILED, trial.blame(lost), lost.code
        result = replace(
            without_measurements(job, report, status, message),
            environment=environment,
            seed=seed,
            measurements=(*trial.measurements(), *_not_loaded(job, subjects)),
            canary_s=tuple(trial.timing.blocks.canary_s),
            bad_blocks=tuple(trial.timing.blocks.bad(method)),
            clock_mhz=trial.timing.blocks.clock_mhz(),
            throttle_reasons=trial.reasons(),
            ceiling_bytes_per_s=trial.copy_ceiling,
            mix_ceiling_bytes_per_s=trial.mix_ceiling,
            cached=trial.cached,
            sets=work.sets,
            set_bytes=work.set_bytes,
            source_digest={subject.side: digest for subject in loaded if (digest := subject.digest())},
            timed_s=engine.busy_s - busy,
            wall_s=time.perf_counter() - begun,
            started_us=begun_us,
        )
    if not code:
        trial.drop()
        engine.release()
    return Outcome(result, code, intrusion)


def without_measurements(job: Job, report: DeviceReport, status: Status, message: str) -> JobResult:
    """The result of an attempt that says no more than what was attempted where, and how it ended."""
    return JobResult(
        suite=job.case.suite,
        case_key=job.case.key,
        device_class=job.device_class,
        round=job.round,
        attempt=job.attempt,
        status=status,
        message=message,
        device_uuid=report.device.uuid,
        environment=report.environment,
    )


def _environment(report: DeviceReport, persisting: str) -> Environment:
    """With the reason why lines that persist in the cache were not forgotten, where they were not."""
    if not persisting:
        return report.environment
    return Environment(entries={**report.environment.entries, "l2_persisting": f"kept: {persisting}"})


def _not_loaded(job: Job, subjects: Mapping[Side, Subject | str]) -> list[Measurement]:
    return [
        Measurement(side=side, variant=variant, status=Status.FAILED, message=problem)
        for side, problem in subjects.items()
        if isinstance(problem, str)
        for variant in job.case.variants
    ]


def mix_of(traffic: Traffic) -> int:
    """Reads per write, as the nearest mix whose ceiling is measured; 0 where hardly anything is read."""
    ratio = traffic.read_bytes / traffic.write_bytes if traffic.write_bytes else float("inf")
    if ratio < 0.5:
        return 0
    return min(_MIXES[1:], key=lambda mix: abs(min(ratio, _MIXES[-1]) - mix))


class _Trial:
    """The steps of one job, in order, and what they found."""

    def __init__(self, work: Preparation, method: Method, notify: Callable[[PhaseName], None]) -> None:
        self._work = work
        self._engine = work.engine
        self._method = method
        self._notify = notify
        self._rng = random.Random(seed_of(work.seed, work.job.case.suite, work.job.case.key, work.job.round, -1))  # noqa: S311 - an order, not a secret
        self.timing = Timing(work, method, self._rng)
        self.copy_ceiling: float | None = None
        self.mix_ceiling: float | None = None
        self.cached = False

    def carry_out(self) -> None:
        """Every step, as long as there is a candidate left."""
        for step in (self._prepare, self._verify, self._warm_up, self._time, self._verify_again, self._bound):
            if not self._work.alive():
                return
            step()

    def _prepare(self) -> None:
        # before the sets take the memory; known already from an earlier job of this process, as a rule
        self.copy_ceiling = self._engine.ceiling(1)
        self.mix_ceiling = self._engine.ceiling(mix_of(self._work.job.case.traffic))
        self._notify("inputs")
        self._notify("build")
        self._work.prepare(self._method, self._check_first)
        self.cached = fits_cache(self._work.sets, self._work.set_bytes, self._engine.cache_bytes)

    def _check_first(self) -> None:
        self._notify("verify")
        check(self._work, 0)
        self._notify("build")

    def _verify(self) -> None:
        self._notify("verify")
        if self._work.sets > 1:
            check(self._work, self._rng.randrange(1, self._work.sets))

    def _warm_up(self) -> None:
        self._notify("warmup")
        self.timing.warm_up()

    def _time(self) -> None:
        self._notify("time")
        self.timing.run()

    def _verify_again(self) -> None:
        self._notify("verify")
        check(self._work, self._rng.randrange(self._work.sets), run_as_timed)

    def _bound(self) -> None:
        """A time below what the memory allows is invalid, unless the cache may have helped."""
        if self.cached or self._method.cache == "hot":
            return
        headroom = self._engine.headroom
        least, mix = self._work.job.case.traffic.min_bytes, mix_of(self._work.job.case.traffic)
        for made in self._work.alive():
            if not made.samples:
                continue
            middle = statistics.median(made.samples)
            ceiling = self._engine.ceiling(mix)
            if least > headroom * ceiling * middle:  # was the ceiling measured in a bad moment?
                ceiling = self._engine.ceiling(mix, again=True)
            self.mix_ceiling = ceiling
            if least > headroom * ceiling * middle:
                made.status = Status.INVALID
                made.message = (
                    f"{least} bytes in {middle:.3g} s are {least / middle / 1e9:.0f} GB/s, more than {headroom} × the "
                    f"{ceiling / 1e9:.0f} GB/s that this device reaches: the traffic model or the kernel is wrong"
                )

    def verdict(self) -> tuple[Status, str]:
        """`unstable` where too many blocks were disturbed, else `ok`."""
        total, bad = len(self.timing.blocks.canary_s), len(self.timing.blocks.bad(self._method))
        alive = self._work.alive()
        without = [made for made in alive if not made.samples]
        for made in without:
            made.end(Status.UNSTABLE, "no sample had a positive time")
        if not total or bad <= self._method.max_bad_share * total:
            return Status.OK, ""
        message = (
            f"{bad} of {total} blocks were disturbed (clock, power or canary), more than the "
            f"{self._method.max_bad_share:.0%} allowed"
        )
        for made in self._work.alive():
            made.status, made.message = Status.UNSTABLE, message
        return Status.UNSTABLE, message

    def blame(self, lost: DeviceLostError) -> str:
        """The job's message when the context died; who was not measured for that reason is skipped."""
        guilty = [made for made in self._work.candidates if made.message.endswith(str(lost))]
        by = f"{guilty[0].subject.side} {guilty[0].name}: " if guilty else ""
        message = f"{by}{lost}"
        for made in self._work.alive():
            made.end(Status.SKIPPED, f"not measured, since the device's context was lost ({message})")
        return message

    def measurements(self) -> list[Measurement]:
        """Of every candidate, in order of declaration."""
        return [made.measurement() for made in self._work.candidates]

    def reasons(self) -> tuple[str, ...]:
        """Every reason for a held-down clock that was seen."""
        return tuple(sorted({reason for state in self.timing.blocks.states for reason in state.reasons}))

    def drop(self) -> None:
        """Free all arrays."""
        for made in self._work.candidates:
            made.drop()
        self._work.inputs.clear()

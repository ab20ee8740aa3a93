"""One variant on one side while it is being measured: what was built, found and timed."""

import importlib.util
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from perftrack.declare import Variant
from perftrack.measure.clock import median_mhz
from perftrack.measure.engine import Cost, Engine, Issuer, Launch, Mode, Rotation
from perftrack.measure.failure import describe
from perftrack.measure.subject import Subject
from perftrack.model import Measurement, Resources, Status

_CAPABILITY = re.compile(r"sm_\d+")


@dataclass(eq=False)
class Candidate:
    """Filled step by step; once its status is not `ok`, later steps leave it out."""

    subject: Subject
    name: str
    variant: Variant
    launches: list[Launch] = field(default_factory=list[Launch])
    outputs: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])
    status: Status = Status.OK
    message: str = ""
    error_l2: float | None = None
    error_max: float | None = None
    resources: Resources = field(default_factory=Resources)
    cost: Cost = field(default_factory=lambda: Cost(0.0))
    issuer: Issuer | None = None
    mode: Mode | None = None
    samples: list[float] = field(default_factory=list[float])
    blocks: list[int] = field(default_factory=list[int])
    clocks_mhz: list[float | None] = field(default_factory=list[float | None])
    calls: int = 0
    build_s: float = 0.0
    """Host seconds for its first set so far: build(), compiling, and the first launch."""
    launched: bool = False

    @property
    def alive(self) -> bool:
        """Whether it is still to be measured."""
        return self.status is Status.OK

    @property
    def is_baseline(self) -> bool:
        """Whether it is its side's baseline variant."""
        return self.name == self.subject.benchmark.baseline

    def rotation(self) -> Rotation:
        """Its launches, as the engine wants them."""
        return Rotation(tuple(self.launches), self.subject.ready, self.resources.launches or 1)

    def end(self, status: Status, message: str) -> None:
        """Take it out, without samples and with what it held freed."""
        self.status, self.message = status, message
        self.forget_samples()
        self.drop()

    def forget_samples(self) -> None:
        """As if it had not been timed yet."""
        self.samples.clear()
        self.blocks.clear()
        self.clocks_mhz.clear()

    def drop(self) -> None:
        """Free what it holds on the device."""
        self.launches.clear()
        self.outputs.clear()
        self.issuer = None

    def fail(self, step: str, error: BaseException) -> None:
        """Take it out because its own code raised."""
        self.end(Status.FAILED, f"{step}: {describe(error)}")

    def measurement(self) -> Measurement:
        """What is stored of it."""
        return Measurement(
            side=self.subject.side,
            variant=self.name,
            status=self.status,
            message=self.message,
            samples_s=tuple(self.samples),
            blocks=tuple(self.blocks),
            calls_per_sample=self.calls if self.samples else 0,
            mode=self.mode if self.mode is not None and self.samples else "",
            error_l2=self.error_l2,
            error_max=self.error_max,
            host_s=self.cost.host_s,
            resources=self.resources,
            clock_mhz=median_mhz(self.clocks_mhz),
            build_s=self.build_s if self.launched else None,
        )


def candidates_of(subject: Subject, engine: Engine) -> list[Candidate]:
    """The side's variants that name this backend, the baseline first; those that cannot run are skipped."""
    benchmark = subject.benchmark
    names = sorted(benchmark.variants, key=lambda name: name != benchmark.baseline)
    made = [Candidate(subject, name, benchmark.variants[name]) for name in names]
    present = [candidate for candidate in made if engine.backend in candidate.variant.builds]
    for candidate in present:
        if reason := missing(candidate.variant.requires.get(engine.backend, ()), engine):
            candidate.end(Status.SKIPPED, reason)
    return present


def missing(requirements: Sequence[str], engine: Engine) -> str:
    """Why the first absent requirement is absent; empty when all are there."""
    for name in requirements:
        if _CAPABILITY.fullmatch(name):
            if reason := engine.lacks(name):
                return reason
        elif not _installed(name):
            return f"needs {name}, which is not installed"
    return ""


def _installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):
        return False

"""Inputs and built variants of every side of a job, set by set."""

import random
import time
from collections.abc import Callable
from typing import Any

from perftrack.measure.candidate import Candidate, candidates_of
from perftrack.measure.engine import DeviceLostError, Engine
from perftrack.measure.inputs import (
    MIN_SETS,
    Rng,
    as_tuple,
    fingerprint,
    nbytes,
    same_bytes,
    seed_of,
    sets_wanted,
)
from perftrack.measure.subject import Subject
from perftrack.measure.verify import check_arrays
from perftrack.model import Job, Method, Side, Status

_GIB = 1 << 30
_USABLE = 0.85
"""Share of the free memory that sets and checking may take; the rest is for temporaries of the timed code."""
_COMFORTABLE = 0.5
"""Share that more than the fewest sets may take: with 85 % full, checking one of them sometimes found no memory."""
_MORE_TO_CHECK = 1.2
"""Another set's check may take more: what is free is in pieces by then."""


class Preparation:
    """The rotated sets: the same data on both sides, outputs of its own for each variant."""

    def __init__(self, engine: Engine, job: Job, subjects: list[Subject], seed: int) -> None:
        self.engine = engine
        self.job = job
        self.seed = seed
        self.subjects = subjects
        self.candidates = [made for subject in subjects for made in candidates_of(subject, engine)]
        self.inputs: dict[Side, list[tuple[Any, ...]]] = {subject.side: [] for subject in subjects}
        self.sets = 0
        self.set_bytes = 0
        """Inputs and outputs of one set, as the baseline uses it."""
        self.same_code = len({subject.digest() for subject in subjects}) == 1
        self.shared = self.same_code
        """Both sides' data is the same, so it is held once."""

    def alive(self, side: Side | None = None) -> list[Candidate]:
        """The candidates that are still to be measured."""
        return [made for made in self.candidates if made.alive and side in {None, made.subject.side}]

    def attempt(self, made: Candidate, step: str, action: Callable[[], Any]) -> bool:
        """Do something with a candidate's own code; whatever that raises is its status, and only its own.

        DeviceLostError where it took the device's context along.
        """
        try:
            action()
        except DeviceLostError as lost:
            made.end(Status.FAILED, f"{step}: {lost}")
            raise
        except Exception as error:  # noqa: BLE001 - tracked code may raise anything
            made.fail(step, error)
            self.engine.synchronize()
            return False
        return True

    def make_inputs(self, index: int) -> None:
        """The inputs of set `index` for every side that still has a candidate."""
        for subject in self.subjects:
            if not self.alive(subject.side):
                continue
            try:
                self.inputs[subject.side].append(self._inputs(subject, index))
            except Exception as error:  # noqa: BLE001 - the suite's own code may raise anything
                for made in self.alive(subject.side):
                    made.fail("inputs", error)
                self.engine.synchronize()

    def _inputs(self, subject: Subject, index: int) -> tuple[Any, ...]:
        first = self.subjects[0]
        theirs = self.inputs[first.side][index : index + 1] if subject is not first else []
        if theirs and self.shared:
            return theirs[0]
        made = self.draw(subject, index)
        if theirs and index == 0 and same_bytes(self.engine.xp, made, theirs[0]):
            self.shared = True
            return theirs[0]
        return made

    def draw(self, subject: Subject, index: int) -> tuple[Any, ...]:
        """Make the inputs of set `index` as this side declares them."""
        job = self.job
        rng = Rng(self.engine.xp, seed_of(self.seed, job.case.suite, job.case.key, job.round, index))
        with subject.active():
            return as_tuple(subject.benchmark(rng, **job.case.params))

    def build(self, index: int) -> None:
        """Build every candidate on set `index`, in an order of its own.

        Where an array lies in memory changes its kernel's time by up to 0.5 %. With one order for all sets the
        same side would get the same places in every process, and identical code would differ by that.
        """
        job = self.job
        order = random.Random(seed_of(self.seed, job.case.suite, job.case.key, job.round, ~index))  # noqa: S311 - an order, not a secret
        for made in order.sample(self.alive(), len(self.alive())):
            inputs = self.inputs[made.subject.side][index]
            self.attempt(made, "build", lambda made=made, inputs=inputs: self._build(made, inputs))
        self.sets = index + 1

    def _build(self, made: Candidate, inputs: tuple[Any, ...]) -> None:
        start = time.perf_counter()
        with made.subject.active():
            built = made.variant.builds[self.engine.backend](*inputs, **self.job.case.params)
        spent = time.perf_counter() - start
        if not isinstance(built, tuple) or len(built) != 2 or not callable(built[0]):
            raise TypeError("build() must return (launch, outputs)")
        launch, outputs = built[0], as_tuple(built[1])
        if problem := check_arrays(self.engine.xp, outputs):
            raise TypeError(problem)
        if not made.launches:
            made.build_s = spent
        made.launches.append(launch)
        made.outputs.append(outputs)

    def prepare(self, method: Method, check_first: Callable[[], None]) -> None:
        """Make and build as many sets as the method wants and the memory allows.

        The first is checked before there are others: as much memory as that took is left for checking others, and a
        float64 reference may take several times as much as a set.
        """
        free = self.engine.free_bytes()
        self.make_inputs(0)
        self.engine.synchronize()
        self.build(0)
        took = self._one_set(free)
        self.set_bytes = self._bytes_of_first()
        self.engine.release()
        held = self.engine.held_bytes()
        check_first()
        if not self.alive():
            return
        to_check = int(_MORE_TO_CHECK * (self.engine.held_bytes() - held))
        wanted = sets_wanted(method, self.engine.rotation_bytes, self.set_bytes)
        possible = self._sets_in(_USABLE, took, to_check)
        if possible < min(MIN_SETS, wanted):
            self._too_large(took + to_check)
            return
        for index in range(1, min(wanted, possible, max(MIN_SETS, self._sets_in(_COMFORTABLE, took)))):
            self.make_inputs(index)
            self.build(index)
        for made in self.alive():
            self._note_resources(made)

    def _sets_in(self, share: float, took: int, to_check: int = 0) -> int:
        """The first, and how many more of `took` bytes fit that share of the free memory beside `to_check`."""
        return 1 + max(0, int(share * self.engine.free_bytes()) - to_check) // max(1, took)

    def _bytes_of_first(self) -> int:
        """Of the baseline, as a rule: the first that could be built."""
        first = next((made for made in self.candidates if made.outputs), None)
        return nbytes(self.inputs[first.subject.side][0]) + nbytes(first.outputs[0]) if first else 0

    def _one_set(self, free_before: int) -> int:
        """Bytes that one set takes, all sides, variants and temporaries together."""
        inputs = {id(arrays): nbytes(arrays) for sets in self.inputs.values() for arrays in sets}
        known = sum(inputs.values()) + sum(nbytes(made.outputs[0]) for made in self.candidates if made.outputs)
        # main memory is shared with other processes and given out at first touch: there, what is known counts
        return max(free_before - self.engine.free_bytes(), known) if self.engine.backend == "cuda" else 2 * known

    def _too_large(self, took: int) -> None:
        free = self.engine.free_bytes()
        for made in self.alive():
            made.end(
                Status.FAILED,
                f"memory: a second set of data and its check need {took / _GIB:.2f} GiB more, and "
                f"{free / _GIB:.2f} GiB are free of which {_USABLE:.0%} may be used; make the case smaller",
            )

    def _note_resources(self, made: Candidate) -> None:
        start = time.perf_counter()
        with made.subject.active():
            made.resources = self.engine.resources(made.launches[0])
        made.build_s += time.perf_counter() - start  # CuPy compiles a kernel when it is first asked for

    def restore_changed(self, subject: Subject, index: int, before: tuple[int, ...]) -> str:
        """Whether inputs of set `index` were changed, in words; they are made anew, for the others."""
        arrays = self.inputs[subject.side][index]
        if fingerprint(self.engine.xp, arrays) == before:
            return ""
        for old, new in zip(arrays, self.draw(subject, index), strict=True):
            if isinstance(old, self.engine.xp.ndarray):
                old[...] = new
        return "it changes its inputs, which other calls and variants share"

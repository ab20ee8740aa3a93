"""Warm-up, calibration and the interleaved blocks, over any engine."""

import gc
import math
import random
import statistics
import time
from dataclasses import dataclass, field

from perftrack.measure.candidate import Candidate
from perftrack.measure.clock import differ, median_mhz
from perftrack.measure.engine import Block, Engine, Issuer, LaunchError, State
from perftrack.measure.prepare import Preparation
from perftrack.model import Method

_WINDOW_S = 0.05
_AGREEMENT = 0.005
_MIN_BLOCKS = 10
_MAX_REPEATS = 2
_UNLIKE_CLOCKS = "unlike_clocks"
_SETTLED = ("sw_power_cap", _UNLIKE_CLOCKS)
"""Signs that the work itself may be the cause of: it takes much power, or one candidate takes more than another."""


@dataclass
class Blocks:
    """What the blocks of a case gave, block by block in time order; the samples are with the candidates."""

    planned: int = 0
    canary_s: list[float] = field(default_factory=list[float])
    states: list[State] = field(default_factory=list[State])
    strange: list[bool] = field(default_factory=list[bool])
    """The device starved in the block, or a sample was not positive."""
    clocks_mhz: list[tuple[float | None, ...]] = field(default_factory=list[tuple[float | None, ...]])
    """Of the block's samples."""

    def bad(self, method: Method) -> list[int]:
        """Blocks that were disturbed: a strange sample, a canary off its median, a clock held down or not the same."""
        if not self.canary_s:
            return []
        middle = statistics.median(self.canary_s)
        signs = [{*state.reasons, *self._unlike(index)} for index, state in enumerate(self.states)]
        # what is there in more than a few blocks is where this work makes the card settle, not a disturbance
        often = method.max_bad_share * len(signs)
        steady = {sign for sign in _SETTLED if sum(sign in seen for seen in signs) > often}
        return [
            index
            for index, canary in enumerate(self.canary_s)
            if self.strange[index] or abs(canary - middle) > method.canary_limit * middle or signs[index] - steady
        ]

    def _unlike(self, index: int) -> set[str]:
        return {_UNLIKE_CLOCKS} if differ(self.clocks_mhz[index]) else set()

    def clock_mhz(self) -> tuple[float, ...]:
        """Of each block: the median over its samples, or NVML's after it where not every block has one; else empty."""
        measured = [median_mhz(clocks) for clocks in self.clocks_mhz]
        for clocks in (measured, [state.clock_mhz for state in self.states]):
            known = tuple(clock for clock in clocks if clock is not None)
            if len(known) == len(clocks):
                return known
        return ()


class Timing:
    """Times the living candidates of a job together."""

    def __init__(self, work: Preparation, method: Method, rng: random.Random) -> None:
        self._work = work
        self._engine: Engine = work.engine
        self._method = method
        self._rng = rng
        self._times: dict[Candidate, int] = {}
        self.blocks = Blocks()

    def ready(self) -> list[tuple[Candidate, Issuer]]:
        """The living candidates with what issues their calls."""
        return [(made, made.issuer) for made in self._work.alive() if made.issuer is not None]

    def warm_up(self) -> None:
        """Find out what a call costs, choose the mode, and run until two windows agree."""
        for made in self._work.alive():
            self._work.attempt(made, "run", lambda made=made: self._estimate(made))
        alive = self._work.alive()
        if not alive:
            return
        mode, issuers = self._engine.issuers(
            [made.rotation() for made in alive], [made.cost for made in alive], self._work.job.case.issue
        )
        for made, issuer in zip(alive, issuers, strict=True):
            made.mode, made.issuer = mode, issuer
        per_call = self._windows()
        self._calibrate(per_call)

    def _estimate(self, made: Candidate) -> None:
        rotation = made.rotation()
        rotation.ready()
        for launch in rotation.launches:  # the first call on a set pays for memory that nothing has touched yet
            launch()
        self._engine.synchronize()
        made.cost = self._engine.cost(rotation)

    def _windows(self) -> dict[Candidate, float]:
        """Seconds per call of each candidate in the last window."""
        method, start = self._method, time.monotonic()
        per_call = {made: made.cost.device_s for made, _ in self.ready()}
        before = 0.0
        while True:
            entries = self.ready()
            share = _WINDOW_S / max(1, len(entries))
            times = {made: _times(issuer, share, per_call[made]) for made, issuer in entries}
            block = self._issue(entries, times, None)
            if block is None:
                continue
            for (made, issuer), elapsed in zip(entries, block.elapsed_s, strict=True):
                if elapsed > 0:
                    per_call[made] = elapsed / (times[made] * issuer.unit)
            level = sum(per_call.values())
            spent = time.monotonic() - start
            settled = abs(level - before) <= _AGREEMENT * level
            if spent >= method.max_warmup_s or (spent >= method.warmup_s and settled) or not entries:
                return per_call
            before = level

    def _calibrate(self, per_call: dict[Candidate, float]) -> None:
        """How many calls make a sample, and how many blocks there is time for."""
        method, entries = self._method, self.ready()
        share = min(method.timed_s, method.case_s / max(1, len(entries)))
        sample_s = max(method.min_sample_s, share / (2 * method.blocks))
        block_s = 0.0
        for made, issuer in entries:
            times = _times(issuer, sample_s, per_call[made])
            self._times[made] = times
            made.calls = times * issuer.unit
            block_s += 2 * made.calls * per_call[made]
        fewest = min(_MIN_BLOCKS, method.blocks)
        self.blocks.planned = max(fewest, min(method.blocks, int(method.case_s / max(block_s, 1e-9))))

    def run(self) -> None:
        """All blocks; bad ones are kept and repeated, at most twice and at most half as many as planned."""
        gc.collect()
        gc.disable()
        try:
            self._blocks(self.blocks.planned)
            left = self.blocks.planned // 2
            seen = 0
            for _ in range(_MAX_REPEATS):
                bad = [index for index in self.blocks.bad(self._method) if index >= seen]
                seen = len(self.blocks.canary_s)
                again = min(len(bad), left)
                left -= again
                self._blocks(again)
        finally:
            gc.enable()

    def _blocks(self, count: int) -> None:
        end = len(self.blocks.canary_s) + count
        while len(self.blocks.canary_s) < end and self.ready():
            self._block()

    def _block(self) -> None:
        """Every candidate twice, in random order and back, with the canary in the middle."""
        order = self.ready()
        self._rng.shuffle(order)
        entries = order + order[::-1]
        block = self._issue(entries, self._times, len(order))
        if block is None:
            return
        index = len(self.blocks.canary_s)
        strange = block.starved
        clocks = block.clocks_mhz or (None,) * len(entries)
        for (made, _), elapsed, clock in zip(entries, block.elapsed_s, clocks, strict=True):
            if elapsed > 0:
                made.samples.append(elapsed / made.calls)
                made.blocks.append(index)
                made.clocks_mhz.append(clock)
            else:
                strange = True
        self.blocks.clocks_mhz.append(clocks)
        self.blocks.canary_s.append(block.canary_s)
        self.blocks.states.append(self._engine.state())
        self.blocks.strange.append(strange)

    def _issue(
        self, entries: list[tuple[Candidate, Issuer]], times: dict[Candidate, int], canary_at: int | None
    ) -> Block | None:
        """Time one block; None when a candidate raised in it, which is then taken out."""
        try:
            return self._engine.time_block([(issuer, times[made]) for made, issuer in entries], canary_at)
        except LaunchError as error:
            entries[error.index][0].fail("timing", error.__cause__ or error)
            self._engine.synchronize()
            return None


def _times(issuer: Issuer, seconds: float, per_call: float) -> int:
    return max(1, min(issuer.max_times, math.ceil(seconds / max(per_call * issuer.unit, 1e-9))))

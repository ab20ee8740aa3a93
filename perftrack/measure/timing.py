"""Warm-up, calibration and the interleaved blocks, over any engine."""

import gc
import math
import random
import statistics
import time
from dataclasses import dataclass, field

from perftrack.measure.candidate import Candidate
from perftrack.measure.clock import differ, median_mhz
from perftrack.measure.engine import Block, Engine, Issuer, LaunchError, Mode, State
from perftrack.measure.prepare import Preparation
from perftrack.model import Method

_WINDOW_S = 0.05
_AGREEMENT = 0.005
_MIN_BLOCKS = 10
_MAX_REPEATS = 2
_UNLIKE_CLOCKS = "unlike_clocks"
_POWER_CAP = "sw_power_cap"
_SETTLED = (_POWER_CAP, _UNLIKE_CLOCKS)
"""Signs that the work itself may be the cause of: it takes much power, or one candidate takes more than another."""

_RESTS: dict[Mode, Mode] = {"graph": "graph_rested", "backlog": "backlog_rested"}
"""Modes in which the device may idle between samples, and what they are called then."""
_REST = 2.0
"""Idle seconds for each busy one. At the power limit the clock wanders, and medians of matrix products by 2 to 4 % from
process to process; with a third of the power the card holds its clock, and they repeat to 0.3 % (docs/measuring.md)."""
_BURST_S = 2.5e-3
"""The longest sample that is rested from, but for a single call: the limit acts on a mean over some milliseconds."""


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
        self._per_call: dict[Candidate, float] = {}
        self._rested = False
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
        self._per_call = {made: made.cost.device_s for made in alive}
        self._settle()

    def _estimate(self, made: Candidate) -> None:
        rotation = made.rotation()
        rotation.ready()
        for launch in rotation.launches:  # the first call on a set pays for memory that nothing has touched yet
            launch()
        self._engine.synchronize()
        made.cost = self._engine.cost(rotation)

    def _settle(self) -> None:
        """Run until two windows agree, with rests where the work meets the power limit, and calibrate."""
        if self._meets_power_limit():
            self._rest()
            self._meets_power_limit()
        self._calibrate()

    def _meets_power_limit(self) -> bool:
        """Find out what a call takes in windows until two agree; sooner where it turns out that they need rests."""
        method, start, before = self._method, time.monotonic(), 0.0
        while True:
            entries = self.ready()
            share = self._sample_s(_WINDOW_S / max(1, len(entries)))
            times = {made: _times(issuer, share, self._per_call[made]) for made, issuer in entries}
            block = self._issue(entries, times, None)
            if block is None:
                continue
            for (made, issuer), elapsed in zip(entries, block.elapsed_s, strict=True):
                if elapsed > 0:
                    self._per_call[made] = elapsed / (times[made] * issuer.unit)
            level = sum(self._per_call[made] for made, _ in entries)
            spent = time.monotonic() - start
            settled = abs(level - before) <= _AGREEMENT * level
            if self._needs_rest(self._engine.state()):
                return True
            if spent >= method.max_warmup_s or (spent >= method.warmup_s and settled) or not entries:
                return False
            before = level

    def _needs_rest(self, state: State) -> bool:
        can_rest = all(made.mode in _RESTS for made, _ in self.ready())
        return _POWER_CAP in state.reasons and not self._rested and can_rest

    def _rest(self) -> None:
        self._rested = True
        for made, _ in self.ready():
            made.mode = _RESTS[made.mode] if made.mode else None

    def _sample_s(self, wanted: float) -> float:
        return min(wanted, _BURST_S) if self._rested else wanted

    def _calibrate(self) -> None:
        """How many calls make a sample, and how many blocks there is time for."""
        method, entries = self._method, self.ready()
        share = min(method.timed_s, method.case_s / max(1, len(entries)))
        sample_s = self._sample_s(max(method.min_sample_s, share / (2 * method.blocks)))
        block_s = 0.0
        for made, issuer in entries:
            times = _times(issuer, sample_s, self._per_call[made])
            self._times[made] = times
            made.calls = times * issuer.unit
            block_s += 2 * made.calls * self._per_call[made] * (1 + _REST * self._rested)
        fewest = min(_MIN_BLOCKS, method.blocks)
        self.blocks.planned = max(fewest, min(method.blocks, int(method.case_s / max(block_s, 1e-9))))

    def run(self) -> None:
        """All blocks; bad ones are kept and repeated, at most twice and at most half as many as planned."""
        gc.collect()
        gc.disable()
        try:
            self._blocks(self.blocks.planned)
            if any(map(self._needs_rest, self.blocks.states)):
                self._start_again()
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

    def _start_again(self) -> None:
        """With rests, since it met the power limit only after the warm-up."""
        self.blocks = Blocks()
        for made in self._work.alive():
            made.forget_samples()
        self._rest()
        self._settle()
        self._blocks(self.blocks.planned)

    def _blocks(self, count: int) -> None:
        """So many more; fewer where it turns out that they need rests."""
        end = len(self.blocks.canary_s) + count
        while len(self.blocks.canary_s) < end and self.ready():
            self._block()
            if self.blocks.states and self._needs_rest(self.blocks.states[-1]):
                return

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
        rests: tuple[float, ...] = ()
        if self._rested:
            busy_s = [times[made] * issuer.unit * self._per_call[made] for made, issuer in entries]
            rests = tuple(_REST * before for before in busy_s[-1:] + busy_s[:-1])
        try:
            return self._engine.time_block([(issuer, times[made]) for made, issuer in entries], canary_at, rests)
        except LaunchError as error:
            entries[error.index][0].fail("timing", error.__cause__ or error)
            self._engine.synchronize()
            return None


def _times(issuer: Issuer, seconds: float, per_call: float) -> int:
    return max(1, min(issuer.max_times, math.ceil(seconds / max(per_call * issuer.unit, 1e-9))))

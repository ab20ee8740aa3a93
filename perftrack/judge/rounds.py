"""Rounds made ready for judging: good blocks only, one median a block, one outcome a variant.

Base and head, and every variant, are interleaved block by block in one process. So a block's clock,
temperature and neighbours are common to both sides of a ratio taken inside it and cancel; what the canary, the
clock or the throttle reasons show to be disturbed all the same is in `bad_blocks` and is left out here.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from perftrack import stats
from perftrack.model import Case, JobResult, Measurement, Side, Status

Key = tuple[Side, str]
"""(side, variant)."""

BROKEN = (Status.WRONG, Status.FAILED, Status.INVALID)
"""The code's own fault, worst first: one such round is enough."""

_LOST = (Status.UNSTABLE, Status.SKIPPED, Status.INFRA)
"""No answer, worst first: it stands only where no round has one."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a variant of one side ended, over all rounds."""

    status: Status
    message: str = ""
    own: bool = True
    """Its own measurement says so; False where only its job failed, which both sides share."""


@dataclass(frozen=True, slots=True)
class Round:
    """One job's result with its usable measurements reduced to block medians."""

    result: JobResult
    measurements: Mapping[Key, Measurement]
    block_medians: Mapping[Key, Mapping[int, float]]
    """Seconds per call by block, of measurements that may be judged."""

    def time_s(self, side: Side, variant: str) -> float | None:
        """Median over the good blocks, seconds per call."""
        blocks = self.block_medians.get((side, variant))
        return stats.median(list(blocks.values())) if blocks else None

    def block_ratios(self, above: Key, below: Key) -> list[float]:
        """Time ratios of samples that were neighbours, one for each good block that has both."""
        over, under = self.block_medians.get(above, {}), self.block_medians.get(below, {})
        return [over[block] / under[block] for block in over if block in under]

    def ratio(self, above: Key, below: Key) -> float | None:
        """Median over blocks of the time ratio `above` ÷ `below`."""
        ratios = self.block_ratios(above, below)
        return stats.median(ratios) if ratios else None

    def canary_s(self) -> float | None:
        """Median canary of the good blocks."""
        bad = set(self.result.bad_blocks)
        good = [seconds for block, seconds in enumerate(self.result.canary_s) if block not in bad]
        return stats.median(good) if good else None


def read_rounds(results: Iterable[JobResult], case: Case, device_class: str) -> list[Round]:
    """The rounds of `case` on `device_class` in order; of several attempts at one round, the last."""
    last: dict[int, JobResult] = {}
    for result in results:
        if (result.suite, result.case_key, result.device_class) == (case.suite, case.key, device_class):
            known = last.get(result.round)
            if known is None or result.attempt > known.attempt:
                last[result.round] = result
    return [read_round(last[number]) for number in sorted(last)]


def outcome(rounds: Sequence[Round], side: Side, variant: str) -> Outcome | None:
    """How the variant ended: a round that shows it broken wins, then one that is ok, then the worst loss.

    A round that the machine lost (unstable, infra) does not undo the others; nothing at all is None.
    """
    seen = [one for one in (_outcome(part, side, variant) for part in rounds) if one is not None]
    for status in (*BROKEN, Status.OK, *_LOST):
        same = [one for one in seen if one.status is status]
        if same:
            return next((one for one in same if one.own), same[0])
    return None


def measured(rounds: Iterable[Round], side: Side, variant: str) -> list[tuple[Round, Measurement]]:
    """The rounds in which the variant has samples that may be judged, each with its measurement."""
    key = (side, variant)
    return [(part, part.measurements[key]) for part in rounds if part.block_medians.get(key)]


def read_round(result: JobResult) -> Round:
    """One attempt, with what may be judged of it."""
    measurements: dict[Key, Measurement] = {(one.side, one.variant): one for one in result.measurements}
    bad = set(result.bad_blocks)
    medians: dict[Key, Mapping[int, float]] = {}
    if result.status not in (Status.UNSTABLE, Status.INFRA):
        medians = {key: _medians(one, bad) for key, one in measurements.items() if one.status is Status.OK}
    return Round(result, measurements, medians)


def _medians(measurement: Measurement, bad: set[int]) -> dict[int, float]:
    blocks: dict[int, list[float]] = {}
    for block, seconds in zip(measurement.blocks, measurement.samples_s, strict=True):
        if block not in bad and seconds > 0:
            blocks.setdefault(block, []).append(seconds)
    return {block: stats.median(samples) for block, samples in blocks.items()}


def _outcome(part: Round, side: Side, variant: str) -> Outcome | None:
    result, measurement = part.result, part.measurements.get((side, variant))
    if measurement is None:
        return None if result.status is Status.OK else Outcome(result.status, result.message, own=False)
    if measurement.status is not Status.OK:
        return Outcome(measurement.status, measurement.message)
    if result.status in (Status.UNSTABLE, Status.INFRA):
        return Outcome(result.status, result.message, own=False)
    if not part.block_medians.get((side, variant)):
        return Outcome(Status.UNSTABLE, "no block was undisturbed")
    return Outcome(Status.OK)

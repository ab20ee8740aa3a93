"""One `Summary` a variant: what its rounds say together, per device class and revision."""

from collections.abc import Iterable, Sequence

import msgspec

from perftrack import stats
from perftrack.declare import NEVER_GATED
from perftrack.judge.rounds import Key, Outcome, Round, measured, outcome, read_rounds
from perftrack.judge.value import Interval, Summary
from perftrack.model import Case, Device, JobResult, Measurement, Resources, Side, Status

STEPS = NEVER_GATED[0]
"""The well-made single steps: what fusion's own gain is measured against."""


def summarize(case: Case, side: Side, results: Sequence[JobResult], device: Device) -> list[Summary]:
    """Summaries of the variants of `case` that have any result on the class of `device`, in declared order.

    A time is the median over rounds of the median over good blocks of block medians. A ratio is the median over
    blocks of ratios of neighbouring samples, one a round; its interval is Student's t over rounds, in log space
    (over the blocks of the one round where there is only one: within a process, so too narrow). A candidate's
    vectorisation is the speedup of `steps`; times its fusion gain it is its speedup, but for the medians.
    Diagnostics, of which nobody needs more and the store keeps millions, are rounded: host time to nanoseconds,
    building to microseconds, the clock to MHz, errors to three digits. No ratio is drawn from a rounded one.
    """
    rounds = read_rounds(results, case, device.device_class)
    summaries: list[Summary] = []
    for variant in case.variants:
        ended = outcome(rounds, side, variant)
        if ended is not None:
            summaries.append(_Summing(case, side, variant, rounds, device).summary(ended))
    vectorisation = next((one.speedup for one in summaries if one.variant == STEPS), None)
    return [
        one
        if one.variant in (case.baseline, STEPS) or one.status is not Status.OK
        else msgspec.structs.replace(one, vectorisation=vectorisation)
        for one in summaries
    ]


def ratio_over_rounds(rounds: Sequence[Round], above: Key, below: Key) -> Interval | None:
    """Time ratio `above` ÷ `below` with its 95 % interval over rounds; None where no round has both."""
    ratios = [ratio for ratio in (part.ratio(above, below) for part in rounds) if ratio is not None]
    if len(ratios) == 1:
        blocks = next(found for found in (part.block_ratios(above, below) for part in rounds) if found)
        if len(blocks) < 2:
            return Interval(ratios[0], ratios[0], ratios[0])
        _, low, high = stats.ratio_interval(blocks)
        return Interval(ratios[0], min(low, ratios[0]), max(high, ratios[0]))
    return Interval(*stats.ratio_interval(ratios)) if ratios else None


class _Summing:
    """The parts of one summary."""

    def __init__(self, case: Case, side: Side, variant: str, rounds: list[Round], device: Device) -> None:
        self.case = case
        self.side: Side = side
        self.variant = variant
        self.rounds = rounds
        self.device = device
        self.used = measured(rounds, side, variant)

    def summary(self, ended: Outcome) -> Summary:
        first = self.rounds[0].result
        tried = [one for part in self.rounds if (one := part.measurements.get((self.side, self.variant)))]
        summary = Summary(
            suite=self.case.suite,
            case_key=self.case.key,
            device_class=self.device.device_class,
            device_uuid=next((part.result.device_uuid for part in self.rounds if part.result.device_uuid), ""),
            environment_digest=first.environment.digest if first.environment else "",
            variant=self.variant,
            side=self.side,
            status=ended.status,
            message=ended.message,
            bad_blocks=sum(len(part.result.bad_blocks) for part in self.rounds),
            error_l2=_three_digits(_largest(one.error_l2 for one in tried)),
            error_max=_three_digits(_largest(one.error_max for one in tried)),
            resources=tried[0].resources if tried else Resources(),
        )
        return self._with_times(summary) if ended.status is Status.OK else summary

    def _with_times(self, summary: Summary) -> Summary:
        samples = [seconds for part, one in self.used for seconds in _good_samples(part, one)]
        time_s = stats.median([part.time_s(self.side, self.variant) or 0.0 for part, _ in self.used])
        baseline = [part.time_s(self.side, self.case.baseline) for part, _ in self.used]
        builds = sorted(one.build_s for _, one in self.used if one.build_s is not None)
        speedup = self._against(self.case.baseline)
        fusion_gain = self._against(STEPS) if self.variant != self.case.baseline else None
        expected = self._expected_gain()
        gain = fusion_gain or speedup
        bandwidth = self.case.traffic.min_bytes / time_s
        peak = self.device.peak_bytes_per_s
        return msgspec.structs.replace(
            summary,
            time_s=time_s,
            q10_s=stats.quantile(samples, 0.1),
            q90_s=stats.quantile(samples, 0.9),
            baseline_s=_median_of(baseline),
            speedup=speedup,
            fusion_gain=fusion_gain,
            expected_gain=expected,
            fusion_efficiency=gain.point / expected if gain and expected else None,
            bandwidth_bytes_per_s=bandwidth,
            utilization=_median_of(self._utilization(part) for part, _ in self.used),
            peak_utilization=bandwidth / peak if peak else None,
            flops_per_s=self.case.traffic.flops / time_s if self.case.traffic.flops else None,
            samples=len(samples),
            rounds=len(self.used),
            host_s=_whole(_median_of(one.host_s for _, one in self.used), 1e9),
            mode=self.used[0][1].mode,
            cached=any(part.result.cached for part, _ in self.used),
            clock_mhz=_whole(_median_of(one.clock_mhz for _, one in self.used), 1.0),
            build_first_s=_whole(builds[-1] if builds else None, 1e6),
            build_s=_whole(_median_of(builds[:-1]), 1e6),
        )

    def _against(self, yardstick: str) -> Interval | None:
        """Time of the yardstick ÷ time; nothing has a speedup over itself."""
        if yardstick == self.variant or yardstick not in self.case.variants:
            return None
        return ratio_over_rounds(self.rounds, (self.side, yardstick), (self.side, self.variant))

    def _expected_gain(self) -> float | None:
        moved = self.case.traffic.moved_bytes
        yardstick = moved.get(STEPS) or moved.get(self.case.baseline)
        if self.variant in (self.case.baseline, STEPS) or not yardstick or not moved.get(self.variant):
            return None
        return yardstick / moved[self.variant]

    def _utilization(self, part: Round) -> float | None:
        """Achieved ÷ the copy ceiling of the same process."""
        ceiling, time_s = part.result.ceiling_bytes_per_s, part.time_s(self.side, self.variant)
        return self.case.traffic.min_bytes / time_s / ceiling if ceiling and time_s else None


def _good_samples(part: Round, measurement: Measurement) -> list[float]:
    good = part.block_medians[measurement.side, measurement.variant]
    return [
        seconds
        for block, seconds in zip(measurement.blocks, measurement.samples_s, strict=True)
        if block in good and seconds > 0
    ]


def _median_of(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return stats.median(known) if known else None


def _largest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _whole(value: float | None, parts: float) -> float | None:
    """To a whole number of so many parts of the unit."""
    return None if value is None else round(value * parts) / parts


def _three_digits(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.2e}")

"""What the judge says: a `Summary` of one variant on one side, a `Finding` about head against base."""

import msgspec

from perftrack.model import Accuracy, Cause, Resources, Status, Verdict

FLAKY = "flaky"
"""How the message of a finding begins that is `Finding.flaky`."""


class Interval(msgspec.Struct, frozen=True):
    """A point with its confidence bounds; for ratios these are ratios, not logarithms."""

    point: float
    low: float
    high: float


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """One variant of one case on one device class at one revision, over all rounds of a run."""

    suite: str
    case_key: str
    device_class: str
    device_uuid: str
    """The card of the first round."""
    environment_digest: str
    variant: str
    side: str
    """`head` or `base`."""
    status: Status
    message: str = ""
    time_s: float | None = None
    """Median over rounds of the median over blocks, seconds per call."""
    q10_s: float | None = None
    q90_s: float | None = None
    baseline_s: float | None = None
    """The same of the baseline variant, from the same rounds."""
    speedup: Interval | None = None
    """Baseline time ÷ time: median over blocks of ratios of adjacent samples, interval over rounds."""
    vectorisation: Interval | None = None
    """Baseline time ÷ `steps` time: the part of a candidate's speedup that is not fusion's. None where the case has no
    variant `steps`, or that has no time: unknown, not 1."""
    fusion_gain: Interval | None = None
    """`steps` time ÷ time, where the case has a variant `steps`."""
    expected_gain: float | None = None
    """bytes_moved(steps, else baseline) ÷ bytes_moved(variant)."""
    fusion_efficiency: float | None = None
    """fusion gain (else speedup) ÷ expected gain."""
    bandwidth_bytes_per_s: float | None = None
    """Achieved: bytes_min ÷ time."""
    utilization: float | None = None
    """Achieved ÷ copy ceiling of the same process."""
    peak_utilization: float | None = None
    """Achieved ÷ datasheet bandwidth."""
    flops_per_s: float | None = None
    samples: int = 0
    rounds: int = 0
    bad_blocks: int = 0
    error_l2: float | None = None
    error_max: float | None = None
    host_s: float | None = None
    mode: str = ""
    cached: bool = False
    resources: Resources = Resources()
    clock_mhz: float | None = None
    """Median over rounds of the SM clock that its samples ran at."""
    build_first_s: float | None = None
    """Seconds to build and launch it the first time in a process: the longest round, whose caches were empty."""
    build_s: float | None = None
    """The same with filled caches: median over the other rounds; None with a single one."""


def spell(ratio: float) -> str:
    """A head ÷ base time ratio in words: `5.1 % slower`, `0.0 %`."""
    size = f"{100 * abs(ratio - 1):.1f} %"
    return size if size == "0.0 %" else f"{size} {'slower' if ratio > 1 else 'faster'}"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on one candidate variant of one case on one device class."""

    suite: str
    case_key: str
    device_class: str
    variant: str
    verdict: Verdict
    cause: Cause = Cause.NONE
    message: str = ""
    head_s: float | None = None
    base_s: float | None = None
    baseline_head_s: float | None = None
    baseline_base_s: float | None = None
    speedup_head: float | None = None
    speedup_base: float | None = None
    change: Interval | None = None
    """Head time ÷ base time of the variant, paired (> 1: slower)."""
    baseline_change: Interval | None = None
    """Head time ÷ base time of the baseline variant."""
    min_effect: float = 0.02
    detectable: float | None = None
    """The smallest relative change these rounds could have shown."""
    rounds: int = 0
    ratios: tuple[float, ...] = ()
    """Head time ÷ base time of each round: what `change` summarises (95 % interval; 99 % once confirmed)."""
    confirmed: bool = False
    """Fresh rounds after the first look agree."""
    newly: bool = False
    """It fails or is wrong at head, and nothing shows that it did so at base."""
    error_head: float | None = None
    """Relative L2 error against float64, the largest over the rounds that checked both sides."""
    error_base: float | None = None
    """The same at base, on the same data."""
    accuracy: Accuracy = Accuracy.NONE
    """Whether that error clearly grew or shrank, which is not a matter of time and never red."""
    why: str = ""
    """What else moved: `registers 32 -> 64`, `launches 1 -> 2`."""

    @property
    def red(self) -> bool:
        """Whether it fails the run: a confirmed slowdown, or newly failing or wrong."""
        if self.verdict is Verdict.SLOWER:
            return self.confirmed
        return self.newly and self.verdict in (Verdict.FAILED, Verdict.WRONG)

    @property
    def flaky(self) -> bool:
        """Whether the first look saw it fail or be wrong and the second did not: neither broken nor well."""
        return self.verdict is Verdict.AMBIGUOUS and self.message.startswith(FLAKY)

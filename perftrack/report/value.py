"""What is reported, before it is text, Markdown or JSON.

`Report` is the answer of a run (`perftrack.report/1`); the small values below it are what `compare`, `history` and
`devices` show. Times are seconds, bandwidths bytes per second; `head ÷ base` ratios above 1 are slower.
"""

from typing import Literal

import msgspec

from perftrack.judge.life import Kind, State
from perftrack.judge.value import Interval
from perftrack.model import Accuracy, Cause, Device, Scalar, Status, Verdict
from perftrack.report.shown import Shown

SCHEMA = "perftrack.report/1"

Answer = Literal["GREEN", "RED", "INCOMPLETE"]


class Remembered(msgspec.Struct, frozen=True, kw_only=True):
    """The regression that a row shows, and how that stands now."""

    id: int
    state: State
    since: str = ""
    """The commit that it was found at, where that is not the head."""
    text: str
    """All of it in words."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One candidate variant of one case on one device class."""

    suite: str
    case: str
    device_class: str
    variant: str
    baseline: str
    verdict: Verdict
    cause: Cause = Cause.NONE
    red: bool = False
    """It fails the run. Not where every regression in it is acknowledged, invalid or infra."""
    confirmed: bool = False
    message: str = ""
    head_s: float | None = None
    base_s: float | None = None
    baseline_head_s: float | None = None
    baseline_base_s: float | None = None
    speedup_head: float | None = None
    speedup_base: float | None = None
    speedup_interval: Interval | None = None
    """Of the head's speedup, over its rounds."""
    change: Interval | None = None
    """Head time ÷ base time; 95 % interval, 99 % once confirmed."""
    min_effect: float = 0.02
    detectable: float | None = None
    """Smallest relative change these rounds could have shown."""
    rounds: int = 0
    why: str = ""
    vectorisation: float | None = None
    """The head's baseline time ÷ `steps` time; None, as the fusion gain, where the case has no `steps`."""
    fusion_gain: float | None = None
    """The head's `steps` time ÷ time."""
    fusion_efficiency: float | None = None
    bandwidth_bytes_per_s: float | None = None
    utilization: float | None = None
    """Achieved bandwidth ÷ copy ceiling of the same process."""
    cached: bool = False
    """The data fit the cache, so that utilization may exceed 1."""
    regressions: tuple[Remembered, ...] = ()
    next: str = ""
    """The command that measures this row again."""


class AccuracyRow(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate variant whose error against float64 clearly changed, within the tolerance: beside its row of times.

    Errors are relative L2 norms, the largest over the rounds.
    """

    suite: str
    case: str
    device_class: str
    variant: str
    baseline: str
    accuracy: Accuracy
    error_head: float
    error_base: float
    baseline_error_head: float | None = None
    """The baseline variant's own, for comparison: where it moved alike, the data or the reference did."""
    baseline_error_base: float | None = None
    regressions: tuple[Remembered, ...] = ()
    next: str = ""
    """The command that measures it again."""


class CardUse(msgspec.Struct, frozen=True, kw_only=True):
    """What one card did for a run."""

    uuid: str
    jobs: int
    """Attempts, whatever became of them."""
    busy_s: float
    """Seconds that its jobs took, from inputs to the last check."""
    busy_share: float | None = None
    """Of the run's wall time, its start and end included; None while the run goes on."""


class SuiteLine(msgspec.Struct, frozen=True, kw_only=True):
    """What fusion brings in one suite on one device class: geometric means over cases, of the head.

    Of each case the candidate declared first that has a time; left out are cases whose data fits the cache, whose
    bandwidth is not the memory's, and cases without `steps`, whose fusion gain is unknown.
    """

    suite: str
    cases: int
    """How many are in the means."""
    measured: int
    """How many have a time."""
    vectorisation: float | None = None
    fusion_gain: float | None = None
    fusion_efficiency: float | None = None
    """Over those whose traffic model states what both variants move."""
    no_gain: int = 0
    """Those with a fusion gain below 1.05."""


class DeviceLine(msgspec.Struct, frozen=True, kw_only=True):
    """How much of the head was answered on one device class, and how its speedups moved together."""

    device_class: str
    backend: str
    cards: tuple[str, ...]
    """UUIDs."""
    nodes: tuple[str, ...]
    measured: int
    """(case, variant) pairs with an answer: a time, or a fault of the code."""
    expected: int
    """All pairs but the skipped."""
    speedup_head: float | None = None
    """Geometric mean over `speedups` candidate variants."""
    speedup_base: float | None = None
    """The same variants at base; None where none was measured on both sides."""
    speedups: int = 0
    candidates: int = 0
    """All candidate variants of the head, those without a speedup on a side included."""
    detectable: float | None = None
    """Median over the rows."""
    detectable_worst: float | None = None
    suites: tuple[SuiteLine, ...] = ()
    use: tuple[CardUse, ...] = ()
    """Of the cards that were given a job."""

    @property
    def coverage(self) -> float:
        """Share of the expected pairs that have an answer; 0 where nothing was expected."""
        return self.measured / self.expected if self.expected else 0.0


class Report(Shown, msgspec.Struct, frozen=True, kw_only=True):
    """The answer of one run, worst row first."""

    schema: Literal["perftrack.report/1"] = SCHEMA
    verdict: Answer
    exit_code: int
    """0, 1 (red) or 4 (incomplete)."""
    reasons: tuple[str, ...]
    """Why it is incomplete; empty when it is not."""
    run: str
    repo: str
    head: str
    head_sha: str
    head_subject: str
    base: str | None
    base_sha: str | None
    base_note: str
    counts: dict[Verdict, int]
    """Of every verdict, zero included."""
    devices: tuple[DeviceLine, ...]
    rows: tuple[Row, ...]
    accuracy: tuple[AccuracyRow, ...] = ()
    """Less accurate first, the largest change first. None of them is red: beyond the tolerance a row is `wrong`."""
    less_accurate: int = 0
    more_accurate: int = 0
    fixed: tuple[str, ...] = ()
    """Regressions that this run shows to be gone, one sentence each."""
    skipped: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()


class RegressionCase(msgspec.Struct, frozen=True, kw_only=True):
    """One case of a regression, as it was last seen."""

    suite: str
    case: str
    variant: str
    state: State
    level: float | None
    """How large it was when it was last there: time, or error, at head ÷ that at base; None for what has no size."""
    size: str
    """The same in words: `10.0 % slower`."""
    why: str
    said: str
    """How it stands, in words."""
    reason: str = ""
    """Of the newest mark, as what follows."""
    author: str = ""
    marked_us: int | None = None
    until_us: int | None = None


class RegressionRow(msgspec.Struct, frozen=True, kw_only=True):
    """One regression: a commit, a device class, a kind, and the cases it hits."""

    id: int
    repo: str
    state: State
    kind: Kind
    device_class: str
    found: str
    found_sha: str
    found_subject: str
    found_us: int
    base_sha: str | None
    cases: tuple[RegressionCase, ...]


class CompareRow(msgspec.Struct, frozen=True, kw_only=True):
    """One variant at two stored revisions; `left` is the base."""

    suite: str
    case: str
    device_class: str
    variant: str
    left_s: float | None = None
    right_s: float | None = None
    left_baseline_s: float | None = None
    right_baseline_s: float | None = None
    left_speedup: float | None = None
    right_speedup: float | None = None
    change: float | None = None
    """Right ÷ left time."""
    verdict: str = ""
    """Of a paired comparison where the store has one, else empty."""
    left_error: float | None = None
    """Relative L2 error against float64."""
    right_error: float | None = None
    accuracy: Accuracy = Accuracy.NONE
    """Of a paired comparison, too."""


class Comparison(Shown, msgspec.Struct, frozen=True, kw_only=True):
    """Two stored revisions side by side."""

    left: str
    right: str
    rows: tuple[CompareRow, ...]
    total: int
    """Rows before any that did not change were left out."""
    note: str = ""


class HistoryPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One revision of a series; without a time it is a gap, and `status` says which kind."""

    revision: str
    subject: str = ""
    committed_us: int = 0
    status: Status | None = None
    """None: not measured."""
    time_s: float | None = None
    baseline_s: float | None = None
    speedup: float | None = None
    segment: str = ""
    """Identity of environment and method, `environment/method`; a new one starts a new segment."""
    aside: bool = False
    """Its commit is none of the main line of history: it is in no segment."""


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """Neighbouring revisions of one level, in one environment, by one method."""

    first: str
    """The first measured revision, and the last."""
    last: str
    subject: str
    """Of the first."""
    revisions: int
    measured: int
    time_s: float
    """Median."""
    speedup: float | None = None
    """Median."""
    step: float | None = None
    """Time ÷ time of the segment before; None where that has another environment or method."""
    began: str = ""
    """`change`, or `other environment`, `other method`; empty for the first one."""


class History(Shown, msgspec.Struct, frozen=True, kw_only=True):
    """A series in first-parent order, oldest first."""

    suite: str
    case: str
    device_class: str
    variant: str
    points: tuple[HistoryPoint, ...]
    changes: tuple[tuple[int, int], ...] = ()
    """Where the level changed: (index of the first point of the new level, +1 slower or -1 faster), in order."""


class DeviceRow(msgspec.Struct, frozen=True, kw_only=True):
    """One card, as the pool or the store knows it."""

    device: Device
    environment: dict[str, Scalar] = {}
    problem: str = ""
    runs: int | None = None
    """Stored runs, where it is the store that answers."""

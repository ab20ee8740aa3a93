"""Frozen values that every layer speaks: what is planned, what was measured, on what.

Times are seconds, sizes bytes, bandwidths bytes per second, instants integer microseconds UTC.
All of them are msgspec structs, so that they cross process borders as JSON lines and back, unchanged.
"""

import hashlib
from enum import StrEnum
from typing import Literal

import msgspec

Scalar = bool | int | float | str
"""A value of an axis or of an environment entry."""

Side = Literal["head", "base"]
"""Which of the two compared revisions something belongs to."""

Backend = Literal["cuda", "cpu"]
"""`cuda`: CuPy on a GPU, timed by events. `cpu`: NumPy, timed by the host clock."""

NO_COMMIT = "none-"
"""What the `sha` of a revision begins with whose commit nobody knows: results of a file that names none."""

Issue = Literal["queued", "eager"]
"""How calls reach a GPU: `queued`, ahead of it, so that its own time shows; `eager`, as a plain loop issues them, so
that launching is part of the time. A CPU knows only the loop."""


class Status(StrEnum):
    """How one measurement ended. Only `ok` has samples that may be judged."""

    OK = "ok"
    SKIPPED = "skipped"
    """A requirement is absent (a package, a compute capability); the reason is the message."""
    WRONG = "wrong"
    """The output differs from the reference by more than the tolerance."""
    FAILED = "failed"
    """It raised, crashed its process or ran past its time limit."""
    INVALID = "invalid"
    """Faster than the memory allows: the timing or the traffic model is wrong."""
    UNSTABLE = "unstable"
    """More than the allowed share of blocks was disturbed (clock, power, canary)."""
    INFRA = "infra"
    """The machine failed, not the code: never a verdict, never green."""


class Verdict(StrEnum):
    """What a comparison of head with base says about one candidate variant of one case."""

    SLOWER = "slower"
    FASTER = "faster"
    SAME = "same"
    AMBIGUOUS = "ambiguous"
    FAILED = "failed"
    WRONG = "wrong"
    MISSING = "missing"
    NEW = "new"
    REMOVED = "removed"
    UNSTABLE = "unstable"


class Cause(StrEnum):
    """Why the speedup moved (or cannot have moved)."""

    FUSED_SLOWER = "fused-slower"
    FUSED_FASTER = "fused-faster"
    UNFUSED_FASTER = "unfused-faster"
    UNFUSED_SLOWER = "unfused-slower"
    BOTH = "both"
    ENVIRONMENT = "environment"
    METHOD = "method"
    DEVICE = "device"
    IDENTICAL_CODE = "identical-code"
    NONE = ""


class Accuracy(StrEnum):
    """How the error of a variant against float64 changed from base to head: a finding beside the one about time."""

    LESS = "less-accurate"
    MORE = "more-accurate"
    NONE = ""


def digest(value: object) -> str:
    """SHA-256 (hex) of the canonical JSON of `value`: keys sorted, no NaN or infinity."""
    return hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()


def _digest_of_old_fields(value: msgspec.Struct) -> str:
    """Without an `issue` that is `queued`: what was stored before there was another keeps its identity."""
    fields = msgspec.structs.asdict(value)
    return digest({name: field for name, field in fields.items() if (name, field) != ("issue", "queued")})


class Traffic(msgspec.Struct, frozen=True, kw_only=True):
    """The memory traffic and arithmetic of one case, by the benchmark's own model.

    `read_bytes` + `write_bytes` is bytes_min: each distinct input once, each output once.
    `moved_bytes` has, for each variant that states it, what its kernels move by the model.
    """

    read_bytes: int
    write_bytes: int
    moved_bytes: dict[str, int] = {}
    flops: int = 0

    @property
    def min_bytes(self) -> int:
        """bytes_min of the glossary."""
        return self.read_bytes + self.write_bytes


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One benchmark at one point of its axes, on one backend, as collected from a tree."""

    suite: str
    benchmark: str
    key: str
    """`benchmark[axis=value,…]`, axes sorted; the stable identity together with `suite`."""
    backend: Backend
    params: dict[str, Scalar]
    variants: tuple[str, ...]
    """Every declared variant that names this backend, the baseline first."""
    traffic: Traffic
    min_effect: float
    """The smallest relative change of a time that counts, e.g. 0.02."""
    baseline: str = "unfused"
    doc: str = ""
    issue: Issue = "queued"

    @property
    def digest(self) -> str:
        """Identity of what the tree says of it."""
        return _digest_of_old_fields(self)


class Revision(msgspec.Struct, frozen=True, kw_only=True):
    """A commit, or a commit plus the hash of a dirty tree."""

    sha: str
    """40 hex digits of the commit (of the parent commit when the tree is dirty); or `none-…`, see NO_COMMIT."""
    tree: str
    """git tree id of the files that run (40 hex digits); for a dirty tree, of the dirty files; empty: not known."""
    dirty: bool
    parent: str | None
    """First parent, or None for a first commit."""
    position: int | None
    """First-parent distance from the root commit; None where the history is too shallow to know."""
    committed_us: int
    subject: str
    branch: str | None = None

    @property
    def label(self) -> str:
        """Short name for people: seven digits, and `+dirty` where it applies."""
        digits = 12 if self.sha.startswith(NO_COMMIT) else 7
        return self.sha[:digits] + ("+dirty" if self.dirty else "")


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """One physical GPU or CPU."""

    uuid: str
    """`GPU-…` as NVML gives it; for a CPU a hash of host, model and core count."""
    name: str
    backend: Backend
    device_class: str
    """Model with memory size, e.g. `NVIDIA-H200-141G`; for a CPU its model and core count."""
    node: str
    memory_bytes: int
    compute_capability: str = ""
    multiprocessors: int = 0
    l2_bytes: int = 0
    peak_bytes_per_s: float | None = None
    """Datasheet bandwidth where known."""


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """What a series must not mix: driver, toolkit, library versions, clock policy, threads."""

    entries: dict[str, Scalar]

    @property
    def digest(self) -> str:
        """Identity of the environment."""
        return digest(self.entries)


class Method(msgspec.Struct, frozen=True, kw_only=True):
    """How a measurement is made. Any change of a field starts a new segment of a series."""

    name: str = "default"
    timer: Literal["event", "host"] = "event"
    cache: Literal["cold", "hot"] = "cold"
    blocks: int = 25
    """Interleaved blocks a round; each holds every variant twice (random order, then reversed)."""
    timed_s: float = 0.5
    """Timed seconds per variant and round, at least."""
    case_s: float = 15.0
    """Timed seconds per case and round, at most (both sides together)."""
    warmup_s: float = 0.2
    max_warmup_s: float = 2.0
    min_sample_s: float = 200e-6
    sets: int = 4
    """Rotated input/output sets, at least, in `cold` mode."""
    canary_limit: float = 0.01
    """A block whose canary is further than this from its median is bad."""
    max_bad_share: float = 0.3
    version: int = 2
    """Raised whenever the harness changes what a number means."""
    issue: Issue = "queued"

    def of(self, case: Case) -> "Method":
        """This method as `case` is measured by it."""
        return msgspec.structs.replace(self, issue=case.issue)

    @property
    def digest(self) -> str:
        """Identity of the method."""
        return _digest_of_old_fields(self)


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One case on one device in one round: the unit that is planned, stored and resumed."""

    case: Case
    device_class: str
    round: int
    attempt: int = 1
    sides: tuple[Side, ...] = ("head",)
    prefer: str = ""
    """UUID of the device that shall do it if it can be used; empty or gone: any of the class."""
    expected_s: float = 0.0
    """How long it took before; 0 where that is not known."""

    @property
    def identity(self) -> tuple[str, str, str, int]:
        """(suite, case key, device class, round): what makes a second delivery the same job."""
        return (self.case.suite, self.case.key, self.device_class, self.round)


class Resources(msgspec.Struct, frozen=True, kw_only=True):
    """What the compiled kernels of one variant use; None where it cannot be known."""

    registers: int | None = None
    """Registers a thread, the largest of the variant's kernels."""
    local_bytes: int | None = None
    """Local memory a thread (spills and stack), the largest."""
    shared_bytes: int | None = None
    occupancy: float | None = None
    """Theoretical, 0…1, the smallest of the variant's kernels."""
    launches: int | None = None
    """Kernel launches a call."""
    code_digest: str | None = None
    """Hash of the compiled code and launch geometry of all launches."""


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """All samples of one (side, variant) in one round of one case.

    `samples_s[i]` is seconds per call, in time order; `blocks[i]` is the block it belongs to.
    """

    side: Side
    variant: str
    status: Status
    message: str = ""
    samples_s: tuple[float, ...] = ()
    blocks: tuple[int, ...] = ()
    calls_per_sample: int = 0
    mode: Literal["", "graph", "backlog", "eager", "loop", "graph_rested", "backlog_rested"] = ""
    """How calls were issued: unrolled CUDA graph, queued behind a spin kernel, nothing queued, loop on a CPU."""
    error_l2: float | None = None
    """Relative L2 error against the float64 reference."""
    error_max: float | None = None
    """max |o − r| ÷ (|r| + rms(r))."""
    host_s: float | None = None
    """Host seconds to issue one call: launch cost, never mixed with device time."""
    resources: Resources = Resources()
    clock_mhz: float | None = None
    """Median SM clock over its samples, by the card's own counters; None where these cannot tell."""
    build_s: float | None = None
    """Host seconds of the first `build()` in this process, of compiling, and of the first launch with its end."""


class JobResult(msgspec.Struct, frozen=True, kw_only=True):
    """What one attempt at one job gave. Stored whole, in one transaction."""

    suite: str
    case_key: str
    device_class: str
    round: int
    attempt: int
    status: Status
    """`ok` when the job ran to its end (its measurements have statuses of their own);
    `failed` when it ended its process or its time, `infra` when the machine failed, `unstable`."""
    message: str = ""
    device_uuid: str = ""
    environment: Environment | None = None
    seed: int = 0
    measurements: tuple[Measurement, ...] = ()
    canary_s: tuple[float, ...] = ()
    """Seconds per canary copy, one for each block, in time order."""
    bad_blocks: tuple[int, ...] = ()
    clock_mhz: tuple[float, ...] = ()
    """SM clock of each block: the median over its samples by the card's own counters, else as NVML gave it after the
    block; empty where neither can be read."""
    throttle_reasons: tuple[str, ...] = ()
    ceiling_bytes_per_s: float | None = None
    """Best copy (1:1) measured in this process."""
    mix_ceiling_bytes_per_s: float | None = None
    """The ceiling of this case's own read:write mix."""
    cached: bool = False
    """The rotated sets fit the cache, so that bandwidth may exceed the memory's."""
    sets: int = 0
    set_bytes: int = 0
    source_digest: dict[str, str] = {}
    """Per side: hash of every file of the tree that the case's suite could read."""
    timed_s: float = 0.0
    """Seconds of timed or warm-up work on the device."""
    wall_s: float = 0.0
    started_us: int = 0


class TreeArchive(msgspec.Struct, frozen=True, kw_only=True):
    """The files of one revision as a tar file: what is shipped to the workers."""

    path: str
    """Where the tar file lies on the submitting machine."""
    sha256: str
    """Of the tar file; its name in every cache."""
    tree: str
    """git tree id of the files; recomputed by the worker after unpacking."""
    gitlinks: dict[str, str] = {}
    """Submodule path → commit: part of the tree id, but without files."""


class DeviceReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker says of its device before it is given work."""

    device: Device
    environment: Environment
    problem: str = ""
    """Why the device must not be used (busy, unreadable), in one sentence; empty when it is fine."""


class SweepPart(msgspec.Struct, frozen=True, kw_only=True):
    """Of which sweep a run is."""

    name: str
    commits: tuple[str, ...]
    """Ids of the commits that it measures, in its order: what it still owes if it is broken off."""


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for; enough to resume the run."""

    suites: tuple[str, ...] = ()
    """Names of suites; empty means all."""
    expression: str = ""
    """`-k`: an expression over suites and case keys, in pytest's words; empty means all."""
    device: str = ""
    """Wanted device class (a glob) or `cpu`; empty means every GPU class, else the CPU."""
    rounds: int = 3
    confirm_rounds: int = 5
    """0: nothing is looked at again, so nothing is red."""
    confirm_s: float = 1800.0
    """What the second look may take by what its jobs took before; suspects beyond it stay suspects."""
    suite_paths: tuple[str, ...] = ("suites",)
    methods: dict[Backend, Method] = {}
    case_timeout_s: float = 120.0
    seed: int = 0
    sweep: SweepPart | None = None


BY_MERGE_BASE, BY_PARENT = "merge-base with", "parent, 1 commit back"
"""Begin a run's `base_note`: the head has commits that the main branch (named next) has not; it lies on it itself."""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One submission: suites of a head (and perhaps a base) on devices."""

    uid: str
    """32 hex digits, made by the client; a second write of the same run is a no-op."""
    repo: str
    """Name of the repository: the last part of its origin's URL, else of its folder."""
    head: Revision
    base: Revision | None
    base_note: str
    """How the base was found, e.g. `merge-base with origin/main, 3 commits back`; or why there is none."""
    options: RunOptions
    started_us: int
    finished_us: int | None = None
    state: Literal["running", "complete", "interrupted"] = "running"
    problems: tuple[str, ...] = ()
    """Suites that could not be imported, devices left out …: one sentence each."""
    expected_jobs: int = 0
    """Of the first look; confirmation adds to them."""

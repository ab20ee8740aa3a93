"""What the store hands out, and takes whole: structs that no other layer makes."""

import msgspec

from perftrack.judge.value import Finding, Summary
from perftrack.model import Case, Device, Environment, JobResult, Method, Revision, Run


class FinishedJob(msgspec.Struct, frozen=True, kw_only=True):
    """One case on one device class that needs no judging beside others: its attempts and its answers, at once."""

    case: Case
    attempts: tuple[tuple[JobResult, Device], ...]
    answers: tuple[tuple[Summary, Method], ...]
    """Each with the method of its own series."""


class StoredRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run as the report needs it: everything but the raw samples."""

    run: Run
    cases: list[Case]
    """As declared by the trees, one for each that has a stored job; by suite and key."""
    devices: list[Device]
    """Every device that was given a job of this run; by class and UUID."""
    summaries: list[Summary]
    """By suite, case, device class, variant and side."""
    findings: list[Finding]
    """By suite, case, device class and variant."""


class StoredRevision(msgspec.Struct, frozen=True, kw_only=True):
    """A revision with its row number."""

    id: int
    repo: str
    revision: Revision

    @property
    def order(self) -> tuple[bool, int, int, int]:
        """Sorts revisions topologically: by first-parent position, unknown ones last, then by date."""
        position = self.revision.position
        return (position is None, position or 0, self.revision.committed_us, self.id)


class StoredSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One point of a series: a summary with the revision, run and method it belongs to."""

    revision: StoredRevision
    run_uid: str
    measured_us: int
    """When the run started."""
    baseline: str
    method_digest: str
    min_effect: float
    summary: Summary


class DeviceUse(msgspec.Struct, frozen=True, kw_only=True):
    """A device and how much it was used."""

    device: Device
    jobs: int
    """Stored attempts."""
    last_us: int
    """When its newest attempt started."""
    environment: Environment | None
    """Of its newest attempt that has one."""


class RunEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the list of runs."""

    run: Run
    jobs: int
    """Stored attempts."""
    verdicts: dict[str, int]
    """Verdict → findings of that verdict."""

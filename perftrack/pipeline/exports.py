"""`perftrack export`: one stored run in another tool's format, or results as a table."""

from dataclasses import dataclass
from typing import BinaryIO, Literal

from perftrack.errors import UsageError
from perftrack.interop.export import ExportName, export
from perftrack.store import Store
from perftrack.store.frames import Database
from perftrack.store.glob import matching


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which results a table has; an empty one is every result. Patterns take * and ?."""

    run: str | None = None
    case: str | None = None
    suite: str | None = None
    device: str | None = None
    variant: str | None = None
    branch: str | None = None
    since: str | None = None
    last: int | None = None


def export_table(store: Store, file: BinaryIO, kind: Literal["csv", "parquet", "arrow"], of: Selection) -> int:
    """Write the rows of the frame `results` to a file; how many there were.

    UsageError where a run or a commit is unknown, or pyarrow is missing.
    """
    return Database(store).export(
        file,
        kind,
        run=of.run,
        case=of.case,
        suite=of.suite,
        device=of.device,
        variant=of.variant,
        branch=of.branch,
        since=of.since,
        last=of.last,
    )


def export_run(store: Store, run: str, name: ExportName, *, device: str) -> str:
    """The text of the run (`latest`, or the first digits of its uid); `device` is a class or a pattern, empty is all.

    UsageError where there is no such run or device, IncompleteError where it has no result with a time.
    """
    stored = store.load_run(store.find_run(run))
    classes = {one.device_class for one in stored.summaries}
    wanted = set(matching(device, sorted(classes))) if device else classes
    if device and not wanted:
        raise UsageError(f"run {stored.run.uid[:8]} has no device {device!r}; it has {', '.join(sorted(classes))}")
    chosen = [one for one in stored.summaries if one.device_class in wanted]
    return export(name, stored.run.repo, stored.run.head, chosen)

"""`perftrack export`: one stored run in another tool's format."""

from perftrack.errors import UsageError
from perftrack.interop.export import ExportName, export
from perftrack.store import Store
from perftrack.store.glob import matching


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

"""Reports of what is stored: a run, two revisions, one case's history."""

from perftrack.report.value import Report, build
from perftrack.store import Store


def report_of(store: Store, uid: str) -> Report:
    """The report of a stored run."""
    stored = store.load_run(uid)
    return build(stored.run, stored.cases, stored.devices, stored.summaries, stored.findings)

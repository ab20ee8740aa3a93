"""The database: runs, attempts with raw samples, summaries and findings, on SQLite or PostgreSQL."""

from perftrack.store.address import default_url, safe_url
from perftrack.store.spool import Spool
from perftrack.store.store import Store
from perftrack.store.value import DeviceUse, FinishedJob, RunEntry, StoredRevision, StoredRun, StoredSummary

__all__ = [
    "DeviceUse",
    "FinishedJob",
    "RunEntry",
    "Spool",
    "Store",
    "StoredRevision",
    "StoredRun",
    "StoredSummary",
    "default_url",
    "safe_url",
]

"""Regression tests and performance tracking for kernel fusion."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perftrack.store.frames import Database

__version__ = "0.1.0"


def open(url: str | None = None) -> "Database":  # noqa: A001 (it reads as perftrack.open)
    """The stored results as pandas frames: of `url`, else of PERFTRACK_DB, else of the user's own database.

    `url` is `sqlite:///FILE`, `postgresql://…` or a path. Raises UsageError, StoreError or SchemaOutdatedError.
    """
    import os  # noqa: PLC0415 (with the rest: `import perftrack` stays light)

    from perftrack.store import Store, default_url  # noqa: PLC0415
    from perftrack.store.frames import Database  # noqa: PLC0415

    return Database(Store.open(url or os.environ.get("PERFTRACK_DB") or default_url(), create=False))

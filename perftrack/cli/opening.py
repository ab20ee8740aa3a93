"""Opening the database that `--db`, the environment or the settings name."""

from pathlib import Path
from typing import Any

import click

option = click.option("--db", metavar="URL", help="Database: a SQLAlchemy URL or a SQLite file [env PERFTRACK_DB].")


def open_store(db: str | None, *, create: bool = False, checked: bool = True) -> Any:
    """The store, which is a context; importing what it needs takes too long for `--help`."""
    from perftrack import config
    from perftrack.store import Store, default_url

    url = config.database_url(db, config.settings_near(Path.cwd())) or default_url()
    return Store.open(url, create=create, checked=checked)

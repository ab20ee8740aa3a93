"""Where a database is: parsed from a URL or a path, and shown without its secrets."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import platformdirs
import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError

from perftrack.errors import UsageError

NETWORK_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "ceph", "lustre", "gpfs", "beegfs", "afs", "glusterfs", "ncpfs"}
    | {"fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.beegfs", "fuse.s3fs", "fuse.gcsfuse", "fuse.rclone"}
)
_SECRET_QUERY = frozenset({"password", "sslpassword", "passfile", "sslkey"})


@dataclass(frozen=True, slots=True)
class Address:
    """A database: an SQLite file (`path`), or a PostgreSQL database (`path` is None)."""

    url: sa.URL
    path: Path | None

    @property
    def label(self) -> str:
        """For people: the file, or the URL without password."""
        return str(self.path) if self.path else _hidden(self.url)


def default_url() -> str:
    """The SQLite file in the user's data folder, e.g. ~/.local/share/perftrack/perftrack.db."""
    return f"sqlite:///{platformdirs.user_data_path('perftrack') / 'perftrack.db'}"


def safe_url(text: str) -> str:
    """`text` as it may be shown: no password. UsageError where it is no address of a database."""
    return parse(text).label


def parse(text: str) -> Address:
    """Understand `sqlite:///FILE`, `postgresql://…` and a plain path; UsageError for anything else."""
    if "://" not in text:
        if not text.strip():
            raise UsageError("the database address is empty; give a file or postgresql://HOST/NAME")
        return _sqlite(text)
    scheme = text.partition("://")[0]
    try:
        url = sa.make_url(text)
    except (ArgumentError, ValueError):
        # the text is not repeated: a password may be what broke it
        raise UsageError(
            f"the {scheme} database address cannot be read; write postgresql://USER:PASSWORD@HOST:PORT/NAME "
            "with every special character of the password as %XX"
        ) from None
    backend, _, driver = scheme.partition("+")
    if backend == "sqlite" and driver in {"", "pysqlite"}:
        if url.query:
            raise UsageError(f"options after ? are not known for SQLite: write sqlite:///{url.database or 'FILE'}")
        return _sqlite(url.database or "")
    if backend in {"postgresql", "postgres"} and driver in {"", "psycopg"}:
        return Address(url.set(drivername="postgresql+psycopg"), None)
    raise UsageError(f"perftrack cannot store in {scheme}: use sqlite:///FILE or postgresql://HOST/NAME")


def _sqlite(name: str) -> Address:
    if name in {"", ":memory:"} or name.startswith("file:"):
        raise UsageError("perftrack needs an SQLite file that stays: write sqlite:///FILE (four slashes for /FILE)")
    path = Path(name).expanduser().absolute()
    return Address(sa.URL.create("sqlite", database=str(path)), path)


def _hidden(url: sa.URL) -> str:
    secrets: Mapping[str, str] = {name: "***" for name in url.query if name in _SECRET_QUERY}
    shown = url.set(drivername="postgresql").update_query_dict(secrets)
    return shown.render_as_string(hide_password=True)


def refuse_network(path: Path, mounts: str) -> None:
    """UsageError where `path` lies on a network file system, whose locks SQLite cannot trust.

    `mounts` is the text of /proc/self/mountinfo.
    """
    kind = _file_system(path, mounts)
    if kind in NETWORK_FILE_SYSTEMS:
        raise UsageError(
            f"{path} lies on a network file system ({kind}), where SQLite files get corrupted: "
            "give a local file, or a PostgreSQL database for several machines"
        )


def _file_system(path: Path, mounts: str) -> str:
    """Type of the file system that holds `path`: of the longest mount point above it, the last one mounted."""
    best, kind = -1, ""
    for line in mounts.splitlines():
        left, separator, right = line.partition(" - ")
        if not separator:
            continue
        point = Path(left.split()[4].encode("latin-1", "replace").decode("unicode_escape"))
        if path.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), right.split()[0]
    return kind

"""Engines: how connections are made and what every connection is told first.

SQLite has two, a writer and a reader. The writer takes the write lock when its transaction begins
(`BEGIN IMMEDIATE`), since a transaction that reads first and writes later fails under load whatever its
time-out; the reader must not, or every read would wait for the writers.
"""

import itertools
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy import event

from perftrack.errors import StoreAwayError, StoreError, UsageError
from perftrack.store.address import Address, refuse_network

C = TypeVar("C", bound=sqlite3.Connection)

LOCK_TIMEOUT_S = 30.0
CONNECT_TIMEOUT_S = 10

SERVER_SETTING = "SET random_page_cost = 1.1"
"""Results of one series lie in many pages of the table, and nearly all of these are in memory. By what the server
believes of its own (4.0, a spinning disk) it reads whole commits rather than the series asked for: ten times as long.
"""


READER_CACHE = "PRAGMA cache_size=-131072"
"""KiB. A result of each of thousands of series, at each of two commits, is as many pages of the table, and twice that
many of what is above them: where the cache is smaller than that, every such page is read and taken apart each time.
"""


class OvertakenError(StoreAwayError):
    """A file was written to while it was read without its locks."""


def prepare_folder(path: Path, *, create: bool) -> None:
    """See that the file can lie there; UsageError naming what is wrong, with the remedy."""
    if path.is_dir():
        raise UsageError(f"{path} is a folder; give the database a file name, e.g. {path / 'perftrack.db'}")
    if not create and not path.exists():
        raise UsageError(f"there is no database {path} yet: `perftrack submit` makes it, or name another with --db")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"the folder of {path} cannot be made: {error.strerror}; name another with --db") from error
    mounts = Path("/proc/self/mountinfo")
    if mounts.exists():  # Linux; elsewhere the file system cannot be asked so simply
        refuse_network(path.resolve(), mounts.read_text(encoding="utf-8", errors="replace"))


def writer(address: Address, *, foreign_keys: bool = True) -> sa.Engine:
    """The engine for transactions that write. A migration that rebuilds a table wants foreign keys off."""
    if address.path is None:
        return _postgresql(address)
    path, keys = address.path, "ON" if foreign_keys else "OFF"

    def connect() -> sqlite3.Connection:
        connection = _open(path, "mode=rwc")
        try:
            _use_wal(connection)
            connection.execute(f"PRAGMA foreign_keys={keys}")
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute("PRAGMA wal_autocheckpoint=16000")
        except BaseException:
            connection.close()
            raise
        return connection

    return _sqlite(connect, begin="BEGIN IMMEDIATE", size=1)


def reader(address: Address) -> sa.Engine:
    """The engine for transactions that only read; where no file can be made beside theirs, each opens it anew."""
    if address.path is None:
        return _postgresql(address)
    path = address.path

    def connect() -> sqlite3.Connection:
        connection = _open_to_read(path)
        connection.execute("PRAGMA query_only=1")
        connection.execute(READER_CACHE)
        return connection

    return _sqlite(connect, begin="BEGIN", size=4 if _can_make_files_beside(path) else None)


def refuse_overtaken(connection: Any) -> None:
    """OvertakenError where a file that had to be opened as one that nobody writes was written to since."""
    if isinstance(connection, _Frozen) and connection.as_of != _state(connection.path):
        path = connection.path
        raise OvertakenError(
            f"{path} was written to while it was read, and you may not make the files in {path.parent} that keep "
            "readers and writers apart: try again, or get that right"
        )


def back_up(path: Path, place: Path) -> None:
    """Copy a SQLite database to a new file, as it is at one instant, while others write.

    The name appears when the copy is whole. Raises UsageError, StoreError or sqlite3.Error.
    """
    if place.exists():
        raise UsageError(f"{place} exists already: name a new file")
    try:
        _copy_whole(path, place).rename(place)
    except OSError as error:
        raise UsageError(f"{path} cannot be copied to {place}: {error.strerror}") from error


def _copy_whole(path: Path, place: Path) -> Path:
    """A copy in the same folder as `place`, to be renamed to that; removed where it cannot be finished."""
    handle, name = tempfile.mkstemp(prefix=f".{place.name}.part-", dir=place.parent)
    os.close(handle)
    part = Path(name)
    try:
        _copy(path, part)
        shutil.copymode(path, part)
    except BaseException:
        part.unlink()
        raise
    return part


def _copy(path: Path, place: Path) -> None:
    """In one step, which is one reading transaction: it waits for no writer, and none waits for it."""
    with closing(_open_to_read(path)) as source, closing(sqlite3.connect(place)) as copy:
        source.backup(copy)
        refuse_overtaken(source)


def give_pages_back(connection: sa.Connection) -> None:
    """To the file system. Each step gives one back, and only a script takes all steps of what has no columns."""
    raw: Any = connection.connection.dbapi_connection
    raw.executescript("PRAGMA incremental_vacuum")


def copy_aside(path: Path, suffix: str) -> Path:
    """Copy a SQLite database, as it is now, to `NAME.suffix` beside it (`NAME.suffix-2` … where that is taken).

    The caller holds the write lock, so that nothing is written meanwhile. The name appears when the copy is whole.
    Raises StoreError or sqlite3.Error.
    """
    place = path.with_name(f"{path.name}.{suffix}")
    try:
        part = _copy_whole(path, place)
        for number in itertools.count(2):
            if not place.exists():
                break
            place = path.with_name(f"{path.name}.{suffix}-{number}")
        part.rename(place)
    except OSError as error:
        raise StoreError(
            f"{path} cannot be copied to {path.name}.{suffix} beside it ({error.strerror}), so it was left as it is: "
            "mend that, or move the file elsewhere"
        ) from error
    return place


class _Frozen(sqlite3.Connection):
    """Reads a file without locks and without its log, as if nobody wrote it."""

    path: Path
    as_of: tuple[int, ...]


def _open_to_read(path: Path) -> sqlite3.Connection:
    """In a folder where no file can be made, WAL needs `immutable`; that is right while there is no log."""
    if _can_make_files_beside(path):
        return _open(path, "mode=rw")
    as_of, log = _state(path), path.with_name(path.name + "-wal")
    if log.exists() and log.stat().st_size:
        return _open(path, "mode=ro")
    connection = _open(path, "mode=ro&immutable=1", _Frozen)
    connection.path, connection.as_of = path, as_of
    return connection


def _can_make_files_beside(path: Path) -> bool:
    return os.access(path.parent, os.W_OK, effective_ids=True)


def _state(path: Path) -> tuple[int, ...]:
    """What differs after a write; empty where there is no such file."""
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _open(path: Path, mode: str, kind: type[C] = sqlite3.Connection) -> C:
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?{mode}",
        uri=True,
        timeout=LOCK_TIMEOUT_S,
        isolation_level=None,  # the driver would begin transactions on its own, and not around reads
        factory=kind,
        check_same_thread=False,  # the pool gives a connection to one thread at a time
    )
    connection.execute("PRAGMA cache_size=-65536")
    return connection


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch to the write-ahead log, once in the life of a file.

    SQLite does not always wait its time-out for this lock, so several first starts at once are waited for here.
    """
    deadline = time.monotonic() + LOCK_TIMEOUT_S
    while True:
        try:
            if connection.execute("PRAGMA journal_mode").fetchone() == ("wal",):
                return
            connection.execute("PRAGMA auto_vacuum=INCREMENTAL")  # only possible before the first table
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return


def _sqlite(connect: Callable[[], sqlite3.Connection], *, begin: str, size: int | None) -> sa.Engine:
    """With so many connections, or one for each transaction."""
    pool: dict[str, Any] = {"poolclass": sa.NullPool}
    if size is not None:
        limits = {"pool_size": size, "max_overflow": 0, "pool_timeout": 2 * LOCK_TIMEOUT_S}
        pool = {"poolclass": sa.QueuePool, **limits}
    engine = sa.create_engine("sqlite://", creator=connect, hide_parameters=True, **pool)

    def begin_transaction(connection: sa.Connection) -> None:
        connection.exec_driver_sql(begin)

    event.listen(engine, "begin", begin_transaction)
    return engine


def _postgresql(address: Address) -> sa.Engine:
    options: dict[str, Any] = {"connect_timeout": CONNECT_TIMEOUT_S, "application_name": "perftrack"}
    for name in options.keys() & address.url.query.keys():
        del options[name]
    try:
        made = sa.create_engine(address.url, connect_args=options, hide_parameters=True)
    except ImportError as error:
        raise UsageError(
            "PostgreSQL needs the driver psycopg, which is not installed: pip install 'perftrack[postgresql]'"
        ) from error

    def tell(raw: Any, _: object) -> None:
        raw.execute(SERVER_SETTING)
        raw.commit()

    event.listen(made, "connect", tell)
    return made

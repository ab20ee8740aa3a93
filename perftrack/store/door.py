"""The one way to the database: transactions, retries, and its errors in our words.

A transaction is a function of a connection, so that a deadlock or a lost connection can be answered by
calling it again; everything the store writes is harmless to write twice. A thread has one at a time: what reads
inside of another is a part of it, and sees what it sees; what writes inside of one that writes is a mistake of the
program, which the databases would answer by waiting for themselves.
"""

import random
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy import exc

from perftrack.errors import PerftrackError, StoreAwayError, StoreError, StoreReadOnlyError, UsageError
from perftrack.store import adbc, engine
from perftrack.store.address import Address

T = TypeVar("T")

PAUSES_S = (0.05, 0.2, 0.8, 2.0, 4.0)
"""Before each further attempt, times a random factor of 0.5 to 1."""

_RETRIED_STATES = frozenset({"40P01", "40001", "55P03"})
"""Deadlock, serialization failure, lock not available."""

_ELSEWHERE = "give another place with --db"
_FULL = (
    "cannot grow, the disk is full; what is stored is safe: make room, then continue with `perftrack submit --resume`"
)
_LOCKED = f"is locked by another program for more than {engine.LOCK_TIMEOUT_S:.0f} s: end that program, then try again"


class _Open(threading.local):
    """The transaction that this thread is in."""

    connection: sa.Connection | None = None
    writes = False


class Door:
    """Transactions on one database."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._server = adbc.Server(address)
        self._open = _Open()

    @cached_property
    def _writer(self) -> sa.Engine:
        return engine.writer(self.address)

    @cached_property
    def _reader(self) -> sa.Engine:
        # on a server all that a transaction reads is of one instant too
        of_server = {"isolation_level": "REPEATABLE READ"}
        return engine.reader(self.address) if self.address.path else self._writer.execution_options(**of_server)

    def write(self, work: Callable[[sa.Connection], T]) -> T:
        """Call `work` in a transaction that may write, again where the database asks for that; then commit.

        RuntimeError inside of another one that may write: its end would not be that of this one.
        """
        return self._transact(work, PAUSES_S, writes=True)

    def read(self, work: Callable[[sa.Connection], T]) -> T:
        """Call `work` in a transaction that only reads, all of it of one instant; in the one that is open, if any."""
        joined = self._open.connection
        return work(joined) if joined is not None else self._transact(work, PAUSES_S, writes=False)

    def stream(self, question: sa.Select[*tuple[Any, ...]], size: int) -> Generator[Sequence[Any]]:
        """Rows in parts of at most `size`, of one instant; not tried again. The transaction ends with the generator."""
        with translated(self.address), self._reader.begin() as connection:
            with _whole(connection):
                parts = connection.execution_options(yield_per=size).execute(question).partitions()
            while True:
                with _whole(connection):
                    part = next(parts, None)
                if part is None:
                    return
                yield part

    @property
    def dialect(self) -> sa.Dialect:
        """What the database speaks."""
        return self._reader.dialect

    def parts(self, text: str, keep: Callable[[Any], T]) -> list[T] | None:
        """What `keep` makes of each `pyarrow.RecordBatch` of the answer where ADBC can give it, else None."""
        return self._server.parts(text, keep, self._open.connection)

    def probe(self, work: Callable[[sa.Connection], T], *, write: bool = False) -> T:
        """As `read` or `write`, but a database that does not answer is an error at once."""
        return self._transact(work, (), writes=write)

    def close(self) -> None:
        """Give all connections back."""
        self._server.close()
        for name in ("_writer", "_reader"):
            made: sa.Engine | None = self.__dict__.pop(name, None)
            if made is not None:
                made.dispose()

    def _transact(self, work: Callable[[sa.Connection], T], pauses: tuple[float, ...], *, writes: bool) -> T:
        if writes and self._open.writes:
            raise RuntimeError(f"{self.address.label}: a transaction that writes began inside of another one")
        with translated(self.address):
            for pause in pauses:
                try:
                    return self._once(work, writes=writes)
                except (exc.DBAPIError, engine.OvertakenError) as error:
                    if not _worth_another_try(error):
                        raise
                    time.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 (jitter, not a secret)
            return self._once(work, writes=writes)

    def _once(self, work: Callable[[sa.Connection], T], *, writes: bool) -> T:
        outer = self._open.connection, self._open.writes
        with (self._writer if writes else self._reader).begin() as connection:
            self._open.connection, self._open.writes = connection, writes
            driver, raw = connection.dialect.loaded_dbapi, connection.connection.dbapi_connection
            try:
                with _whole(connection):
                    return work(connection)
            except driver.Error as error:  # of what does not go through SQLAlchemy: as if it did, so that it is retried
                lost = connection.dialect.is_disconnect(error, raw, None)
                raise exc.DBAPIError.instance(
                    None, None, error, driver.Error, dialect=connection.dialect, connection_invalidated=lost
                ) from error
            finally:
                self._open.connection, self._open.writes = outer


@contextmanager
def _whole(connection: sa.Connection) -> Generator[None]:
    """OvertakenError where what is read here, or fails here, is of a file that was written to meanwhile."""
    raw = connection.connection.dbapi_connection
    try:
        yield
    except Exception:
        engine.refuse_overtaken(raw)
        raise
    engine.refuse_overtaken(raw)


def _worth_another_try(error: exc.DBAPIError | engine.OvertakenError) -> bool:
    """Deadlocks and lost connections of a server. SQLite has waited its own time-out already."""
    if isinstance(error, engine.OvertakenError):
        return True
    if isinstance(error.orig, sqlite3.Error):
        return False
    return error.connection_invalidated or _state(error) in _RETRIED_STATES or _is_connection_failure(error)


def _state(error: exc.DBAPIError) -> str:
    return getattr(error.orig, "sqlstate", None) or ""


def _is_connection_failure(error: exc.DBAPIError) -> bool:
    """Class 08, a shutdown, or no state at all, which is how psycopg says that it could not connect."""
    state = _state(error)
    return isinstance(error, exc.OperationalError) and (state[:2] == "08" or state[:3] in {"", "57P"})


@contextmanager
def translated(address: Address) -> Generator[None]:
    """Turn SQLAlchemy's and the drivers' errors into ours, one sentence each, without secrets."""
    try:
        yield
    except exc.DBAPIError as error:
        if isinstance(error.orig, sqlite3.Error):
            raise _sqlite_error(error.orig, address) from error
        raise _server_error(error, address) from error
    except sqlite3.Error as error:
        raise _sqlite_error(error, address) from error
    except exc.TimeoutError as error:
        raise StoreError(f"{address.label}: no free connection; another thread holds it") from error
    except exc.SQLAlchemyError as error:
        raise StoreError(f"{address.label}: {_first_line(error)}") from error


_NO_ENTRY = f"cannot be opened for writing: mend the rights of the file and its folder, or {_ELSEWHERE}"

_SQLITE_ERRORS: dict[int, tuple[type[PerftrackError], str]] = {
    sqlite3.SQLITE_NOTADB: (UsageError, f"is not an SQLite database; {_ELSEWHERE}"),
    sqlite3.SQLITE_FULL: (StoreAwayError, _FULL),
    sqlite3.SQLITE_BUSY: (StoreAwayError, _LOCKED),
    sqlite3.SQLITE_LOCKED: (StoreAwayError, _LOCKED),
    sqlite3.SQLITE_READONLY: (StoreReadOnlyError, _NO_ENTRY),
    sqlite3.SQLITE_CANTOPEN: (StoreReadOnlyError, _NO_ENTRY),
    sqlite3.SQLITE_PERM: (StoreReadOnlyError, _NO_ENTRY),
    sqlite3.SQLITE_CONSTRAINT: (StoreError, "refuses a value"),
    sqlite3.SQLITE_CORRUPT: (StoreError, f"is damaged: restore a copy, or {_ELSEWHERE}"),
}
"""What each primary result code means to the user, after the name of the file."""


def _sqlite_error(error: sqlite3.Error, address: Address) -> PerftrackError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # misuse of the driver carries none
    if code == sqlite3.SQLITE_IOERR and _is_full(address, error):
        code = sqlite3.SQLITE_FULL
    kind, text = _SQLITE_ERRORS.get(code, (StoreError, ""))
    return kind(f"{address.label} {text} ({error})" if text else f"{address.label}: {error}")


def _is_full(address: Address, error: sqlite3.Error) -> bool:
    """A write error that is a full disk, or a file at the size limit of its process or user."""
    if getattr(error, "sqlite_errorname", "") == "SQLITE_IOERR_WRITE":
        return True
    return address.path is not None and shutil.disk_usage(address.path.parent).free < 2**20


def _server_error(error: exc.DBAPIError, address: Address) -> StoreError:
    label, state, text = address.label, _state(error), _first_line(error.orig)
    if state == "53100":
        return StoreAwayError(f"{label} {_FULL} ({text})")
    if state in _RETRIED_STATES:
        return StoreAwayError(f"{label} stays locked by other programs ({text}); try again later")
    if state in {"42501", "25006"}:
        return StoreAwayError(f"{label} may not be written by this user ({text}): grant the right, or {_ELSEWHERE}")
    if isinstance(error, exc.IntegrityError):
        return StoreError(f"{label} refuses a value: {text}")
    if error.connection_invalidated or _is_connection_failure(error):
        return StoreAwayError(f"{label} cannot be reached: {text}")
    return StoreError(f"{label}: {text}")


def _first_line(error: BaseException | None) -> str:
    return (str(error).strip().splitlines() or ["no details"])[0]

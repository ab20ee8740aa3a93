"""Who carries a run out: one process at a time, wherever it is, and whether somebody wants it to stop.

A lock of the system or of the server, not a row: it is gone with its process, however that ends.
"""

import fcntl
import os
import socket
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy import exc

from perftrack.errors import StoreError, UsageError
from perftrack.store import engine
from perftrack.store.address import Address
from perftrack.store.door import Door, translated
from perftrack.store.schema import run

_SERVER_LOCK = sa.text("SELECT pg_try_advisory_lock(:key)")


@contextmanager
def own(door: Door, uid: str) -> Generator[None]:
    """Be the only process that carries out a run; UsageError where another one does."""
    with _lock(door, uid) as other:
        if other is not None:
            raise UsageError(
                f"run {uid[:8]} is being measured by another process{other}: wait for it "
                f"(`perftrack watch {uid[:8]}`) or stop it (`perftrack cancel {uid[:8]}`)"
            )
        yield


def owned(door: Door, uid: str) -> bool:
    """Whether a process carries the run out."""
    with _lock(door, uid) as other:
        return other is not None


def reopen(connection: sa.Connection, uid: str) -> None:
    """An interrupted run goes on."""
    again = sa.update(run).where(run.c.uid == uid, run.c.state == "interrupted")
    connection.execute(again.values(state="running", finished_us=None))


def interrupt(connection: sa.Connection, uid: str, now_us: int) -> bool:
    """Whoever carries the run out stops after the job at hand; False where it was not running."""
    change = sa.update(run).where(run.c.uid == uid, run.c.state == "running")
    return connection.execute(change.values(state="interrupted", finished_us=now_us)).rowcount == 1


@contextmanager
def _lock(door: Door, uid: str) -> Generator[str | None]:
    """None where the lock is ours now, else who has it, as far as that is known."""
    path = door.address.path
    with _file_lock(path, uid) if path else _server_lock(door.address, uid) as other:
        yield other


@contextmanager
def _file_lock(database: Path, uid: str) -> Generator[str | None]:
    path = database.with_name(f"{database.name}.{uid[:16]}.lock")
    while True:
        try:
            file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b", buffering=0)
        except OSError as error:
            raise StoreError(f"{path} cannot be written: {error.strerror}") from error
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield f" ({file.read(200).decode(errors='replace')})"
                return
            if not os.fstat(file.fileno()).st_nlink:  # another process has just removed it
                continue
            file.truncate(0)
            file.write(f"process {os.getpid()} on {socket.gethostname()}".encode())
            try:
                yield None
            finally:
                path.unlink(missing_ok=True)
            return


@contextmanager
def _server_lock(address: Address, uid: str) -> Generator[str | None]:
    """On a connection of its own, which must not wait in a pool: the lock lives as long as it does."""
    alone = engine.writer(address)
    with translated(address):
        connection = alone.connect().execution_options(isolation_level="AUTOCOMMIT")
    try:
        with translated(address):
            ours = connection.execute(_SERVER_LOCK, {"key": int(uid[:15], 16)}).scalar_one()
        yield None if ours else ""
    finally:
        with suppress(exc.SQLAlchemyError):  # the server may be away by now; the lock is gone then too
            connection.close()
        alone.dispose()

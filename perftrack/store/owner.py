"""Who carries a run out: one process at a time, wherever it is, and whether somebody wants it to stop.

A lock of the system or of the server, not a row: it is gone with its process, however that ends.
"""

import fcntl
import os
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa

from perftrack.errors import StoreError, UsageError
from perftrack.store.address import Address
from perftrack.store.door import Door
from perftrack.store.schema import run
from perftrack.store.server_lock import ServerLock, taken


@contextmanager
def own(door: Door, uid: str) -> Generator[Callable[[], None]]:
    """Be the only process that carries out a run; UsageError where another one does.

    What comes with it raises StoreError once another one has taken the run over, as it can where the server has lost
    this process; what that one stores and whether it is done is its own business then.
    """
    path = door.address.path
    with _file_lock(path, uid) if path else _server_lock(door.address, uid) as lock:
        if isinstance(lock, str):
            raise UsageError(
                f"run {uid[:8]} is being measured by another process{lock}: wait for it "
                f"(`perftrack watch {uid[:8]}`) or stop it (`perftrack cancel {uid[:8]}`)"
            )

        def keep() -> None:
            if lock is not None and lock.lost:
                raise StoreError(
                    f"run {uid[:8]} has been taken over by another process, since {door.address.label} had lost the "
                    f"connection of this one: what was measured is kept, `perftrack watch {uid[:8]}` follows it"
                )

        yield keep


def owned(door: Door, uid: str) -> bool:
    """Whether a process carries the run out."""
    path = door.address.path
    if path is None:
        return door.read(lambda connection: taken(connection, uid))
    with _file_lock(path, uid) as other:
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
def _file_lock(database: Path, uid: str) -> Generator[str | None]:
    """None where the lock is ours now, else who has it."""
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
def _server_lock(address: Address, uid: str) -> Generator[ServerLock | str]:
    """The lock, or that somebody else has it; who that is the server does not say."""
    lock = ServerLock(address, uid)
    try:
        yield lock if lock.take() else ""
    finally:
        lock.release()

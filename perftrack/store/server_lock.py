"""A lock of a PostgreSQL server on a run: it lives as long as the connection that has it, and is looked after.

A server that restarts, or a network that forgets a quiet connection, takes it away from a process that goes on.
"""

import threading
from contextlib import suppress

import sqlalchemy as sa
from sqlalchemy import exc

from perftrack.errors import StoreError
from perftrack.store import engine
from perftrack.store.address import Address
from perftrack.store.door import translated

LOOK_S = 2.0
"""Between two looks at the connection."""

_LEAVE_S = 5.0
"""How long the end waits for a look that is under way; the system ends one within `_LIVELY`'s times."""

_LIVELY = {
    "keepalives_idle": "20",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}
"""The system notices after half a minute that the other side is gone, instead of a quarter of an hour."""

_TAKE = sa.text("SELECT pg_try_advisory_lock(:key)")
_GIVE_BACK = sa.text("SELECT pg_advisory_unlock_all()")
_ALIVE = sa.text("SELECT 1")
_SESSION = sa.text("SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()")
_END = sa.text(
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid = :pid AND backend_start = :backend_start"
)
_TAKEN = sa.text(
    "SELECT count(*) > 0 FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database "
    "WHERE datname = current_database() AND locktype = 'advisory' AND objsubid = 1 AND granted "
    "AND classid::bigint = :high AND objid::bigint = :low"
)
"""Without taking it for a moment, which its owner could run into."""


def _key(uid: str) -> int:
    return int(uid[:15], 16)


def taken(connection: sa.Connection, uid: str) -> bool:
    """Whether somebody has the lock on a run."""
    high, low = divmod(_key(uid), 1 << 32)
    return bool(connection.execute(_TAKEN, {"high": high, "low": low}).scalar_one())


class ServerLock:
    """The lock on one run, on a connection of its own, which must not wait in a pool."""

    def __init__(self, address: Address, uid: str) -> None:
        self.lost = False
        """Another process has it by now."""
        self._address, self._key = address, _key(uid)
        mine = {name: value for name, value in _LIVELY.items() if name not in address.url.query}
        self._alone = engine.writer(Address(address.url.update_query_dict(mine), None))
        self._connection: sa.Connection | None = None
        self._session: dict[str, object] = {}
        self._over = threading.Event()
        self._left = False
        """Nobody waits for the look that is under way."""
        self._looks = threading.Thread(target=self._look_after, daemon=True)

    def take(self) -> bool:
        """Whether it is ours now, and looked after until `release`; StoreError where the server is away."""
        ours = self._take()
        if ours:
            self._looks.start()
        return ours

    def release(self) -> None:
        """Give it back, or whatever is left of it."""
        self._over.set()
        if self._looks.ident is not None:
            self._looks.join(_LEAVE_S)
        if self._looks.is_alive():
            self._left = True
            return
        if self._connection is not None:
            with suppress(exc.SQLAlchemyError):  # the end of a connection is noticed a moment later
                self._connection.execute(_GIVE_BACK)
        self._drop()

    def _take(self) -> bool:
        with translated(self._address):
            made = self._alone.connect().execution_options(isolation_level="AUTOCOMMIT")
            self._connection = made
            ours = bool(made.execute(_TAKE, {"key": self._key}).scalar_one())
            if ours:
                self._session = dict(made.execute(_SESSION).mappings().one())
        return ours

    def _look_after(self) -> None:
        while not self.lost and not self._over.wait(LOOK_S):
            self.lost = not self._held()
        if self._left:
            self._drop()

    def _held(self) -> bool:
        """Whether it is ours, is so again, or may be at the next look, where the server is away."""
        if self._connection is not None:
            with suppress(exc.SQLAlchemyError):
                self._connection.execute(_ALIVE)
                return True
        self._drop()
        try:
            if self._take():
                return True
            return self._end_former()
        except StoreError:
            self._drop()
            return True

    def _end_former(self) -> bool:
        """Whether our own former session still has it, for which the server has not noticed that nobody is there."""
        if self._connection is None:
            return True
        with translated(self._address):
            ended = self._connection.execute(_END, self._session).scalar_one()
        self._drop()
        return bool(ended)

    def _drop(self) -> None:
        if self._connection is not None:
            with suppress(exc.SQLAlchemyError):  # the server may be away by now; the lock is gone then too
                self._connection.close()
            self._connection = None
        self._alone.dispose()

"""Answers as Arrow from a PostgreSQL server, where ADBC is installed (`pip install 'perftrack[adbc]'`).

Never from a SQLite file: ADBC brings a SQLite of its own, and when that closes a file that this process has open too,
it drops this process's locks and removes the log, with what was committed there
(sqlite.org/howtocorrupt.html, section 2.2.1).
"""

from collections.abc import Callable
from typing import Any, TypeVar

import sqlalchemy as sa

from perftrack.store.address import Address
from perftrack.store.engine import SERVER_SETTING

T = TypeVar("T")


class Server:
    """Connections to one server, kept for the next question: a new one takes longer than most answers."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._free: list[Any] = []

    def parts(self, text: str, keep: Callable[[Any], T], beside: sa.Connection | None) -> list[T] | None:
        """What `keep` makes of each `pyarrow.RecordBatch` of the answer to a statement, none of which stays.

        It is of the instant of the transaction `beside`, if there is one. None where ADBC is not there, or cannot give
        it.
        """
        if self._address.path is not None:
            return None
        try:
            from adbc_driver_postgresql import dbapi  # noqa: PLC0415 - optional
        except ImportError:
            return None
        before = _same_instant(beside)
        if before is None:
            return None
        try:
            connection = self._free.pop() if self._free else self._connected(dbapi)
        except dbapi.Error:
            return None
        try:
            with connection.cursor() as cursor:
                for setting in before:
                    cursor.execute(setting)
                cursor.execute(text)
                answer = [keep(part) for part in cursor.fetch_record_batch()]
            connection.rollback()
        except dbapi.Error:  # the driver asks again, and says what is wrong in our words
            connection.close()
            return None
        except BaseException:
            connection.close()
            raise
        self._free.append(connection)
        return answer

    def close(self) -> None:
        """Give the connections back."""
        while self._free:
            self._free.pop().close()

    def _connected(self, dbapi: Any) -> Any:
        uri = self._address.url.set(drivername="postgresql").render_as_string(hide_password=False)
        connection = dbapi.connect(uri)
        with connection.cursor() as cursor:
            cursor.execute(SERVER_SETTING)
        connection.commit()
        return connection


_EXPORT = "SELECT CASE WHEN NOT pg_is_in_recovery() THEN pg_export_snapshot() END"


def _same_instant(beside: sa.Connection | None) -> tuple[str, ...] | None:
    """Statements that make a new transaction see what another one does; None on a replica, which cannot do that."""
    if beside is None:
        return ()
    snapshot = beside.exec_driver_sql(_EXPORT).scalar()
    if snapshot is None:
        return None
    return "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", f"SET TRANSACTION SNAPSHOT '{snapshot}'"

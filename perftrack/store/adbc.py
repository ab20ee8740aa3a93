"""Answers as Arrow from a PostgreSQL server, where ADBC is installed (`pip install 'perftrack[adbc]'`).

Never from a SQLite file: ADBC brings a SQLite of its own, and when that closes a file that this process has open too,
it drops this process's locks and removes the log, with what was committed there
(sqlite.org/howtocorrupt.html, section 2.2.1).
"""

from collections.abc import Callable
from typing import Any, TypeVar

import sqlalchemy as sa

from perftrack.store.address import Address

T = TypeVar("T")


def statement(dialect: sa.Dialect, question: sa.Select[*tuple[Any, ...]]) -> str:
    """As text without parameters."""
    options = {"literal_binds": True, "render_postcompile": True}
    return str(question.compile(dialect=dialect, compile_kwargs=options))


class Server:
    """Connections to one server, kept for the next question: a new one takes longer than most answers."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._free: list[Any] = []

    def parts(self, question: sa.Select[*tuple[Any, ...]], keep: Callable[[Any], T]) -> list[T] | None:
        """What `keep` makes of each `pyarrow.RecordBatch` of the answer, none of which stays.

        None where ADBC is not there, or cannot give it.
        """
        if self._address.path is not None:
            return None
        try:
            from adbc_driver_postgresql import dbapi  # noqa: PLC0415 - optional
        except ImportError:
            return None
        text = statement(self._address.url.get_dialect()(), question)
        try:
            connection = self._free.pop() if self._free else dbapi.connect(self._uri())
        except dbapi.Error:
            return None
        try:
            with connection.cursor() as cursor:
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

    def _uri(self) -> str:
        return self._address.url.set(drivername="postgresql").render_as_string(hide_password=False)

"""Answers as Arrow from a PostgreSQL server, where ADBC is installed (`pip install 'perftrack[adbc]'`).

Never from a SQLite file: ADBC brings a SQLite of its own, and when that closes a file that this process has open too,
it drops this process's locks and removes the log, with what was committed there
(sqlite.org/howtocorrupt.html, section 2.2.1).
"""

from typing import Any

import sqlalchemy as sa

from perftrack.store.address import Address


def statement(dialect: sa.Dialect, question: sa.Select[*tuple[Any, ...]]) -> str:
    """As text without parameters."""
    options = {"literal_binds": True, "render_postcompile": True}
    return str(question.compile(dialect=dialect, compile_kwargs=options))


class Server:
    """Connections to one server, kept for the next question: a new one takes longer than most answers."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._free: list[Any] = []

    def arrow(self, question: sa.Select[*tuple[Any, ...]]) -> Any:
        """The answer as a `pyarrow.Table`; None where ADBC is not there, or cannot give it."""
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
                answer = cursor.fetch_arrow_table()
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

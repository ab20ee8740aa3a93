"""Questions in SQL that somebody types: one statement, which can only read."""

import sqlite3
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from perftrack.errors import UsageError

_READING = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE})
_ONE_SELECT = "write one SELECT, which reads and changes nothing"

Answer = tuple[list[str], Sequence[Any]]
"""Names of the columns, and the rows."""


def ask(connection: sa.Connection, query: str) -> Answer:
    """Run a SELECT; UsageError for anything else, and for what the database cannot understand."""
    return _ask_file(connection, query) if connection.dialect.name == "sqlite" else _ask_server(connection, query)


def _ask_file(connection: sa.Connection, query: str) -> Answer:
    """The connection may not write anyway; the authorizer also refuses to attach files and to change settings."""
    raw: Any = connection.connection.dbapi_connection

    def authorize(action: int, *_: object) -> int:
        return sqlite3.SQLITE_OK if action in _READING else sqlite3.SQLITE_DENY

    raw.set_authorizer(authorize)
    try:
        return _answer(raw.execute(query))
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF not in {
            sqlite3.SQLITE_ERROR,
            sqlite3.SQLITE_AUTH,
        }:
            raise
        raise UsageError(f"the query was refused ({error}): {_ONE_SELECT}") from error
    finally:
        raw.set_authorizer(None)


def _ask_server(connection: sa.Connection, query: str) -> Answer:
    """A transaction that only reads; a prepared statement, since that can be but one; and one that can have a cursor.

    COPY is none of these: it writes no table, but files, or to a program, in a transaction that only reads too.
    """
    import psycopg  # noqa: PLC0415 - optional, and there where a server is

    connection.exec_driver_sql("SET TRANSACTION READ ONLY")
    raw: Any = connection.connection.dbapi_connection
    try:
        with raw.cursor() as cursor:
            cursor.execute(f"DECLARE perftrack CURSOR FOR {query}", prepare=True)
            cursor.execute("CLOSE perftrack")  # it would be planned for its first rows
            return _answer(cursor.execute(query, prepare=True))
    except (psycopg.ProgrammingError, psycopg.DataError, psycopg.InternalError, psycopg.NotSupportedError) as error:
        text = str(error).strip().partition("\n")[0]
        raise UsageError(f"the query was refused ({text}): {_ONE_SELECT}") from error


def _answer(cursor: Any) -> Answer:
    if cursor.description is None:
        raise UsageError(f"the query gives no rows: {_ONE_SELECT}")
    return [column[0] for column in cursor.description], cursor.fetchall()

"""Numbers of many rows, a column each: a million rows without a million objects a column.

A question here gives numbers and NULLs only (`frames_table` makes numbers of the words it needs); all of them come as
float64, which is exact for whole numbers below 2^53, and NULL is NaN. From PostgreSQL they come through ADBC where
that is installed (`pip install 'perftrack[adbc]'`). From a SQLite file they never do: ADBC brings a SQLite of its
own, and when that closes the file in a process that has it open too, it drops this process's locks and removes the
log with what was committed there (sqlite.org/howtocorrupt.html, 2.2.1).
"""

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import sqlalchemy as sa

from perftrack.store.adbc import statement
from perftrack.store.schema import result
from perftrack.store.store import Store

Floats = npt.NDArray[np.float64]

_NULL = {"sqlite": "9e999", "postgresql": "'Infinity'::float8"}
"""What stands for NULL on the way: no measured number can be it, and NumPy takes no None."""


def fetch(store: Store, question: sa.Select[*tuple[Any, ...]]) -> dict[str, Floats]:
    """Column → values, in the order in which the database gives the rows."""
    names = [column.name for column in question.selected_columns]
    parts = store.parts(question, _columns)
    if parts is not None:
        return {name: np.concatenate([np.empty(0), *(part.pop(0) for part in parts)]) for name in names}
    table = store.read(lambda connection: _table(connection, question))
    return {name: _without_marks(table[:, at]) for at, name in enumerate(names)}


def _table(connection: sa.Connection, question: sa.Select[*tuple[Any, ...]]) -> Floats:
    """All numbers of the answer, taken one by one from the driver's rows, none of which is kept."""
    mark = sa.literal_column(_NULL[connection.dialect.name])
    columns = list(question.selected_columns)
    marked = question.with_only_columns(*(_marked(column, mark) for column in columns))
    raw: Any = connection.connection.dbapi_connection
    cursor = raw.cursor() if connection.dialect.name == "sqlite" else raw.cursor(binary=True)
    cursor.execute(statement(connection.dialect, marked))
    table = np.fromiter(itertools.chain.from_iterable(cursor), dtype=np.float64)
    cursor.close()
    return table.reshape(-1, len(columns))


def _marked(column: sa.ColumnElement[Any], mark: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """A number or the mark; by the table's own word some are never NULL, if no outer join makes them so."""
    of = column.element if isinstance(column, sa.Label) else column
    if isinstance(of, sa.Column) and of.table is result and not of.nullable:
        return column
    return sa.func.coalesce(column, mark)


def _without_marks(column: Floats) -> Floats:
    values = column.copy()
    values[np.isinf(values)] = np.nan
    return values


def _columns(part: Any) -> list[Floats]:
    """Copies, since a batch of Arrow stays in memory as long as one of its columns."""
    return [np.array(column.to_numpy(zero_copy_only=False), np.float64) for column in part.columns]


def ids(column: Floats) -> npt.NDArray[np.int64]:
    """Row numbers as integers; -1 for none."""
    there = ~np.isnan(column)
    made = np.full(len(column), -1, dtype=np.int64)
    np.copyto(made, column, casting="unsafe", where=there)
    return made


def distinct(numbers: npt.NDArray[np.int64]) -> list[int]:
    """The row numbers that occur, in order."""
    there = numbers if numbers.min(initial=0) >= 0 else numbers[numbers >= 0]
    if not len(there):
        return []
    if int(there.max()) < 50_000_000:  # a count of each is ten times as fast as sorting them
        return np.flatnonzero(np.bincount(there)).tolist()
    return np.unique(there).tolist()


def places(numbers: npt.NDArray[np.int64], known: Mapping[int, int]) -> npt.NDArray[np.intp]:
    """Of each row number the place that it has in `known`; -1 for none."""
    if not known:
        return np.full(len(numbers), -1, dtype=np.intp)
    keys = np.array(sorted(known), dtype=np.int64)
    values = np.array([known[int(key)] for key in keys], dtype=np.intp)
    at = np.searchsorted(keys, numbers)
    np.minimum(at, len(keys) - 1, out=at)
    unknown = keys[at] != numbers
    at = values[at]
    at[unknown] = -1
    return at

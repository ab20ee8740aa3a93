"""Numbers of many rows, a column each: a million rows without a million objects a column.

A question here gives numbers and NULLs only (`frames_table` makes numbers of the words it needs); all of them come as
float64, which is exact for whole numbers below 2^53, and NULL is NaN. From PostgreSQL they come through ADBC where
that is installed (`pip install 'perftrack[adbc]'`). From a SQLite file they never do: ADBC brings a SQLite of its
own, and when that closes the file in a process that has it open too, it drops this process's locks and removes the
log with what was committed there (sqlite.org/howtocorrupt.html, 2.2.1).
"""

import itertools
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import sqlalchemy as sa

from perftrack.store.schema import result
from perftrack.store.store import Store
from perftrack.store.written import Question, filled

Floats = npt.NDArray[np.float64]

_NULL = {"sqlite": "9e999", "postgresql": "'Infinity'::float8"}
"""What stands for NULL on the way: no measured number can be it, and NumPy takes no None."""


def fetch(store: Store, question: Question, rows: str = "") -> dict[str, Floats]:
    """Column → values, in the order in which the database gives the rows.

    `question` is the same object at every call, and has ROWS among its conditions where `rows` are `conditions`.
    """
    columns, dialect = list(question.selected_columns), store.dialect
    parts = None if dialect.name == "sqlite" else store.parts(filled(dialect, question, rows), _columns)
    if parts is not None:
        return {column.name: np.concatenate([np.empty(0), *(part.pop(0) for part in parts)]) for column in columns}
    text = filled(dialect, _marked(question, dialect.name), rows)
    table = store.read(lambda connection: _table(connection, text)).reshape(-1, len(columns))
    return {column.name: _column(table[:, at], marked=not _is_never_null(column)) for at, column in enumerate(columns)}


def _table(connection: sa.Connection, text: str) -> Floats:
    """All numbers of the answer, taken one by one from the driver's rows, none of which is kept."""
    raw: Any = connection.connection.dbapi_connection
    cursor = raw.cursor() if connection.dialect.name == "sqlite" else raw.cursor(binary=True)
    cursor.execute(text)
    table = np.fromiter(itertools.chain.from_iterable(cursor), dtype=np.float64)
    cursor.close()
    return table


@lru_cache(maxsize=256)
def _marked(question: Question, engine: str) -> Question:
    """The same with the mark where a number is NULL."""
    mark = sa.literal_column(_NULL[engine])
    columns = list(question.selected_columns)
    return question.with_only_columns(
        *(column if _is_never_null(column) else sa.func.coalesce(column, mark) for column in columns)
    )


def _is_never_null(column: sa.ColumnElement[Any]) -> bool:
    """By the table's own word, if no outer join makes it so."""
    of = column.element if isinstance(column, sa.Label) else column
    return isinstance(of, sa.Column) and of.table is result and not of.nullable


def _column(column: Floats, *, marked: bool) -> Floats:
    """A copy, so that it may go before the others do."""
    values = column.copy()
    if marked:
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


def places(numbers: npt.NDArray[np.int64], known: Sequence[int]) -> npt.NDArray[np.intp]:
    """Of each row number the place that it has in `known`; -1 for none."""
    keys = np.array(known, dtype=np.int64)
    most = int(keys.max(initial=-1))
    if most < _DENSE * (len(numbers) + len(keys)):  # a look at each is ten times as fast as a search
        place = np.full(most + 2, -1, dtype=np.intp)
        place[keys] = np.arange(len(keys))
        return place[np.where((numbers < 0) | (numbers > most), -1, numbers)]
    order = np.argsort(keys)
    at = np.searchsorted(keys, numbers, sorter=order).clip(max=len(keys) - 1)
    return np.where(keys[order[at]] == numbers, order[at], -1)


_DENSE = 16

"""Questions as text, written once: SQLAlchemy takes longer to write some of them than the database to answer them.

What changes from call to call are conditions on the numbers of rows; they are put where the question has `ROWS`.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import sqlalchemy as sa

Question = sa.Select[*tuple[Any, ...]]
Conditions = Sequence[sa.ColumnElement[bool]]

_ROWS, _RESULTS = "/* rows */", "/* results */"
ROWS, RESULTS = sa.text(_ROWS), sa.text(_RESULTS)
"""Places for conditions."""

_OPTIONS = {"literal_binds": True, "render_postcompile": True}


def statement(dialect: sa.Dialect, question: Question) -> str:
    """Without parameters."""
    return str(question.compile(dialect=dialect, compile_kwargs=_OPTIONS))


def conditions(dialect: sa.Dialect, all_of: Conditions) -> str:
    """As the text that `filled` takes."""
    return str(sa.and_(sa.true(), *all_of).compile(dialect=dialect, compile_kwargs=_OPTIONS))


def filled(dialect: sa.Dialect, question: Question, rows: str, results: str = "") -> str:
    """The text of a question that is the same object at every call, with conditions in its places."""
    return _template(question, _Dialect(dialect)).replace(_ROWS, rows).replace(_RESULTS, results)


class _Dialect:
    """One is as good as another of the same database."""

    def __init__(self, dialect: sa.Dialect) -> None:
        self.dialect = dialect

    def __hash__(self) -> int:
        return hash(self.dialect.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Dialect) and other.dialect.name == self.dialect.name


@lru_cache(maxsize=256)
def _template(question: Question, of: _Dialect) -> str:
    return statement(of.dialect, question)

"""What tables are made of: kinds of columns, and the checks that refuse what must not be stored."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

import sqlalchemy as sa

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# SQLite's STRICT tables know only INTEGER, REAL, TEXT and BLOB; `Double` is 8 bytes on both engines.
DOUBLE = sa.Double().with_variant(sa.REAL(), "sqlite")
BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
SMALL = sa.SmallInteger().with_variant(sa.Integer(), "sqlite")


def table(name: str, *parts: sa.schema.SchemaItem, with_rowid: bool = True) -> sa.Table:
    """A strict table; `with_rowid=False`: the key is the table, on SQLite."""
    return sa.Table(name, metadata, *parts, sqlite_strict=True, sqlite_with_rowid=with_rowid)


def row_id() -> sa.Column[int]:
    """The number of a row."""
    return sa.Column("id", BIG, primary_key=True)


def text(name: str) -> sa.Column[str]:
    """Never NULL."""
    return sa.Column(name, sa.Text, nullable=False)


def count(name: str) -> sa.Column[int]:
    """A large whole number, or microseconds UTC; never NULL."""
    return sa.Column(name, BIG, nullable=False)


def small(name: str, *, nullable: bool = False) -> sa.Column[int]:
    """A small whole number or a flag."""
    return sa.Column(name, SMALL, nullable=nullable)


def whole(name: str) -> sa.Column[int]:
    """A whole number below 2^31, or NULL."""
    return sa.Column(name, sa.Integer)


def refers(
    name: str, table: str, *, nullable: bool = False, primary_key: bool = False, kind: Any = BIG
) -> sa.Column[int]:
    """The number of a row of another table."""
    key = sa.ForeignKey(f"{table}.id")
    return sa.Column(name, kind, key, nullable=nullable, primary_key=primary_key, autoincrement=False)


def number(name: str, *, nullable: bool = True) -> sa.Column[float]:
    """A double."""
    return sa.Column(name, DOUBLE, nullable=nullable)


def interval(name: str) -> list[sa.Column[float]]:
    """A ratio and its confidence bounds."""
    return [number(name), number(f"{name}_low"), number(f"{name}_high")]


def positive(*names: str) -> list[sa.CheckConstraint]:
    """Above zero and finite, or NULL. The upper bound is what refuses infinity, and NaN on PostgreSQL."""
    return [sa.CheckConstraint(f"{name} > 0 AND {name} < 1e300", name=name) for name in names]


def non_negative(*names: str) -> list[sa.CheckConstraint]:
    """At least zero and finite, or NULL."""
    return [sa.CheckConstraint(f"{name} >= 0 AND {name} < 1e300", name=name) for name in names]


def natural(*names: str) -> list[sa.CheckConstraint]:
    """Whole numbers that are at least zero, or NULL."""
    return [sa.CheckConstraint(f"{name} >= 0", name=name) for name in names]


def flag(name: str) -> sa.CheckConstraint:
    """0 or 1."""
    return sa.CheckConstraint(f"{name} IN (0, 1)", name=name)


def one_of(name: str, words: type[StrEnum] | tuple[str, ...]) -> sa.CheckConstraint:
    """One of these words."""
    values = words if isinstance(words, tuple) else tuple(word.value for word in words)
    return sa.CheckConstraint(f"{name} IN ({', '.join(repr(value) for value in values)})", name=name)


def is_one_of(column: sa.Column[int], numbers: Sequence[int]) -> sa.ColumnElement[bool]:
    """Written into the statement as one text: there may be more of them than values can be bound."""
    return sa.literal_column(f"{_name(column)} IN {_list(numbers)}") if len(numbers) else sa.false()


def is_among(column: sa.Column[int], numbers: Sequence[int]) -> sa.ColumnElement[bool]:
    """The same of sorted ones: a range but for its holes where most are in it, which is read in one go."""
    if not numbers or numbers[-1] - numbers[0] >= 2 * len(numbers):
        return is_one_of(column, numbers)
    name, holes = _name(column), sorted(set(range(numbers[0], numbers[-1])).difference(numbers))
    but_for = f" AND {name} NOT IN {_list(holes)}" if holes else ""
    return sa.literal_column(f"({name} BETWEEN {int(numbers[0])} AND {int(numbers[-1])}{but_for})")


def _name(column: sa.Column[int]) -> str:
    return f"{column.table.name}.{column.name}"


def _list(numbers: Sequence[int]) -> str:
    return f"({','.join(map(str, map(int, numbers)))})"

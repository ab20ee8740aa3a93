"""Many rows that differ in a few columns, made in the database: a store that is years old, in a second."""

from typing import Any

import sqlalchemy as sa

from perftrack.store import Store, schema


def copy_rows(store: Store, table: str, count: int, **changed: Any) -> None:
    """Add so many copies of the first row of a table, each column of `changed` as that makes of 1, 2, …"""
    of = schema.metadata.tables[table]
    numbers = sa.select(sa.literal(1).label("number")).cte(recursive=True)
    numbers = numbers.union_all(sa.select(numbers.c.number + 1).where(numbers.c.number < count))
    one = sa.select(of).limit(1).subquery()
    values = [
        changed[column.name](numbers.c.number) if column.name in changed else one.c[column.name] for column in of.c
    ]
    rows = sa.select(*values).select_from(one.join(numbers, sa.true()))
    store._door.write(lambda connection: connection.execute(sa.insert(of).from_select(list(of.c), rows)))


def word(number: Any) -> Any:
    """Another one for each number."""
    return sa.cast(number, sa.Text)


def beside(number: Any) -> Any:
    """A number of a row that no row has yet."""
    return number + 1000

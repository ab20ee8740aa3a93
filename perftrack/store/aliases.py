"""Renamed cases: under which name a case's history is shown.

A run keeps the names that its trees declared. What is read across runs (results, history, compare) has the names of
today.
"""

import difflib
from typing import Any

import sqlalchemy as sa

from perftrack.errors import UsageError
from perftrack.store import glob
from perftrack.store.schema import case_alias, kernel_case, suite

CURRENT = kernel_case.alias("shown")
"""The case under whose name another one is shown, in a question that went through `beside`."""

KEY: sa.ColumnElement[str] = sa.func.coalesce(CURRENT.c.key, kernel_case.c.key)
"""The name of today, in a question that went through `beside`."""


def beside(question: sa.Select[*tuple[Any, ...]]) -> sa.Select[*tuple[Any, ...]]:
    """A question to `kernel_case`, joined with the case under whose name it is shown."""
    return question.join(case_alias, case_alias.c.case_id == kernel_case.c.id, isouter=True).join(
        CURRENT, CURRENT.c.id == case_alias.c.current_id, isouter=True
    )


def names(connection: sa.Connection) -> dict[tuple[str, str], str]:
    """Suite and former key → key of today, of the renamed ones."""
    question = beside(sa.select(suite.c.name, kernel_case.c.key, KEY).join_from(kernel_case, suite))
    return {(name, old): new for name, old, new in connection.execute(question.where(CURRENT.c.id.is_not(None)))}


def numbers(connection: sa.Connection, pattern: str) -> list[int]:
    """Rows of the cases shown under a key that is `pattern` or matches it; a former key means the one of today."""
    question = beside(sa.select(kernel_case.c.id, kernel_case.c.key, KEY.label("shown")))
    found = list(connection.execute(question))
    fitting = set(glob.matching(pattern, {row.shown for row in found}))
    fitting = fitting or {row.shown for row in found if row.key == pattern}
    return [row.id for row in found if row.shown in fitting]


def of_key(connection: sa.Connection, key: str) -> list[int]:
    """Rows of the cases that are shown under a key; a former key means the one of today."""
    question = beside(sa.select(kernel_case.c.id)).where(KEY.in_([key]) | (kernel_case.c.key == key))
    there = list(connection.scalars(question))
    shown = sa.func.coalesce(case_alias.c.current_id, kernel_case.c.id)
    today = beside(sa.select(shown)).where(kernel_case.c.id.in_(there))
    return list(connection.scalars(beside(sa.select(kernel_case.c.id)).where(shown.in_(today))))


def rename(connection: sa.Connection, old: str, new: str, suite_name: str | None = None) -> list[tuple[str, str, str]]:
    """Show the history of `old` under the name `new`: suite, former and new key of each case.

    Both are keys of stored cases, or names of benchmarks, which stand for all their cases. A case called by its own
    name has that again. UsageError where one of them is unknown, or both would be the name of the other.
    """
    question = sa.select(kernel_case.c.id, kernel_case.c.key, suite.c.name).join_from(kernel_case, suite)
    if suite_name is not None:
        question = question.where(suite.c.name == suite_name)
    known = {(row.name, row.key): row.id for row in connection.execute(question)}
    pairs = _pairs(known, old, new)
    shown: dict[int, int] = {row.case_id: row.current_id for row in connection.execute(sa.select(case_alias))}
    for name, before, after in pairs:
        number, target = known[name, before], known[name, after]
        connection.execute(sa.delete(case_alias).where(case_alias.c.case_id == number))
        if number == target:
            continue
        target = shown.get(target, target)
        if target == number:
            raise UsageError(
                f"{name}: {after} is shown as {before} already; `perftrack db alias '{after}' '{after}'` ends that"
            )
        change = sa.update(case_alias).where(case_alias.c.current_id == number).values(current_id=target)
        connection.execute(change)
        connection.execute(sa.insert(case_alias).values(case_id=number, current_id=target))
    return pairs


def _pairs(known: dict[tuple[str, str], int], old: str, new: str) -> list[tuple[str, str, str]]:
    from_keys = {(name, key): new for name, key in known if key == old} or {
        (name, key): new + key.removeprefix(old) for name, key in known if key.startswith(f"{old}[")
    }
    if not from_keys:
        raise UsageError(f"no stored case or benchmark is called {old!r}{_hint(old, known)}")
    pairs = sorted((name, key, to) for (name, key), to in from_keys.items() if (name, to) in known)
    if not pairs:
        raise UsageError(
            f"no stored case or benchmark of {', '.join(sorted({name for name, _ in from_keys}))} is called {new!r}"
            f"{_hint(new, known)}: measure it first"
        )
    return pairs


def _hint(text: str, known: dict[tuple[str, str], int]) -> str:
    words = {key for _, key in known} | {key.partition("[")[0] for _, key in known}
    close = difflib.get_close_matches(text, sorted(words), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""

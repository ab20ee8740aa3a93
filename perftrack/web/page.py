"""One page before it is HTML, JSON or CSV, and the question that it answers."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from perftrack.errors import UsageError
from perftrack.foreign import plain

LONGEST = 30_000
"""Letters of one value in a question."""

_FORMULA = ("=", "+", "-", "@")
"""What a spreadsheet takes for a formula when a cell begins with it."""


class BadQuestionError(UsageError):
    """A value in the address of a page cannot be right, whatever the store has."""


@dataclass(frozen=True, slots=True)
class Query:
    """The values after the `?` of an address; those that a page does not know are ignored."""

    values: Mapping[str, str]

    def text(self, name: str) -> str:
        """Empty where it is absent; BadQuestionError where no name can be so."""
        value = self.values.get(name, "")
        if len(value) > LONGEST:
            raise BadQuestionError(f"{name} has {len(value)} letters; give at most {LONGEST}")
        if "\0" in value:
            raise BadQuestionError(f"{name} has a NUL character, which no stored name has")
        return value

    def needed(self, name: str, remedy: str) -> str:
        """The same; BadQuestionError where it is absent."""
        value = self.text(name)
        if name not in self.values:
            raise BadQuestionError(f"{name} is missing: {remedy}")
        return value

    def number(self, name: str, default: int, *, high: int) -> int:
        """A whole number from 1 to `high`; BadQuestionError for anything else."""
        value = self.values.get(name, "")
        if not value:
            return default
        if not (value.isascii() and value.isdecimal() and len(value) < 10 and 1 <= int(value) <= high):
            raise BadQuestionError(f"{name} is {plain(value[:40])!r}; give a whole number from 1 to {high}")
        return int(value)

    def choice(self, name: str, choices: Sequence[str]) -> str:
        """One of `choices`, the first where it is absent; BadQuestionError for anything else."""
        value = self.values.get(name, "") or choices[0]
        if value not in choices:
            raise BadQuestionError(f"{name} is {plain(value[:40])!r}; give one of {', '.join(choices)}")
        return value


@dataclass(frozen=True, slots=True)
class Page:
    """What a page shows. `data` is its JSON, `header` and `rows` its CSV, `extra` what only the template needs."""

    template: str
    title: str
    data: Any
    header: Sequence[str]
    rows: Iterable[Sequence[Any]]
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])


def as_json(page: Page) -> str:
    """Indented, with a last line end."""
    return msgspec.json.format(msgspec.json.encode(page.data), indent=2).decode() + "\n"


def as_csv(page: Page) -> str:
    """RFC 4180; a text that a spreadsheet would take for a formula gets a ' in front of it."""
    written = io.StringIO()
    writer = csv.writer(written)
    writer.writerow(page.header)
    writer.writerows([_cell(value) for value in row] for row in page.rows)
    return written.getvalue()


def _cell(value: Any) -> Any:
    if not isinstance(value, str):
        return "" if value is None else value
    shown = plain(value)
    return f"'{shown}" if shown.startswith(_FORMULA) else shown

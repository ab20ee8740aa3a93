"""Long lists in parts, so that a page stays quick and nothing is left out."""

from collections.abc import Sequence
from typing import Generic, TypeVar

import msgspec

from perftrack.web.page import Query

T = TypeVar("T")


class Part(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """One part of a list, as the page's picture shows it; its JSON and CSV have the whole."""

    items: Sequence[T]
    number: int
    """From 1."""
    pages: int
    total: int


def part(query: Query, whole: Sequence[T], size: int) -> Part[T]:
    """The part that `page` asks for, the last one where there are fewer."""
    pages = count(len(whole), size)
    number = min(query.number("page", 1, high=100_000), pages)
    return Part(items=whole[(number - 1) * size : number * size], number=number, pages=pages, total=len(whole))


def count(total: int, size: int) -> int:
    """Pages that so many items take; at least one."""
    return max(1, -(-total // size))

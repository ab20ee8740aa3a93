"""A JSON file of results, read twice: once for what is said beside the records, once for the records."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from perftrack.errors import UsageError
from perftrack.interop.scan import MAX_RECORD_BYTES, Member, Pattern, Scanner, TornError
from perftrack.interop.source import Chunks
from perftrack.interop.value import BadRecordError, Notes, Reading


class Hints(msgspec.Struct, frozen=True, kw_only=True):
    """What the user says of files that do not say it themselves; empty is nothing."""

    suite: str = ""
    device: str = ""


class Document:
    """One file and the paths of its records."""

    def __init__(self, path: Path, notes: Notes, *patterns: Pattern, exact: bool = False) -> None:
        self.path = path
        self.notes = notes
        self._patterns = patterns
        self._exact = exact

    def rest(self, visit: Callable[[Member], object] | None = None) -> Mapping[str, Any]:
        """The document without its records, which `visit` sees; of a torn file what comes before the tear."""
        with self.path.open("rb") as file:
            scanner = Scanner(Chunks(file, MAX_RECORD_BYTES), self._patterns)
            try:
                for member in scanner.members():
                    if visit is not None:
                        visit(member)
            except TornError:
                pass  # the second pass says so
            rest = scanner.rest()
        return rest if isinstance(rest, dict) else {}

    def rest_and_first(self) -> tuple[Mapping[str, Any], Any]:
        """The same, and the first record that can be read (None where there is none)."""
        found: list[Any] = []

        def visit(member: Member) -> None:
            if not found:
                with suppress(BadRecordError):
                    found.append(member.decode(exact=self._exact))

        return self.rest(visit), found[0] if found else None

    def members(self) -> Iterator[Member]:
        """The records; where the structure breaks that is reported, and they end."""
        try:
            with self.path.open("rb") as file:
                yield from Scanner(Chunks(file, MAX_RECORD_BYTES), self._patterns).members()
        except TornError as error:
            self.notes.report(None, str(error), at=error.at)
        except OSError as error:
            raise UsageError(f"{self.path} cannot be read: {error.strerror}") from error

    def readings(self, convert: Callable[[Any, Member], Iterable[Reading]]) -> Iterator[Reading]:
        """Every record's readings; a record that has none is reported, and the next one read.

        Where a record has several, `convert` reads each in a `part`, so that a bad one keeps none from going in.
        """
        for member in self.members():
            with self.part(member):
                yield from convert(member.decode(exact=self._exact), member)

    @contextmanager
    def part(self, member: Member, case: str = "") -> Generator[None]:
        """Around what reads a part of a record: where that fails it is reported, under the `case`."""
        try:
            yield
        except BadRecordError as error:
            self.notes.report(member.number, f"{case}: {error}" if case else str(error), at=member.at)

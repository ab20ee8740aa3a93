"""A large JSON file in pieces: its records one by one, and the rest of it as one small document.

A parser of whole documents needs the file in memory, and stops for good at the first broken byte. Here only
brackets and strings are looked at: a record whose inside is no JSON is still told from the next one, and its
place is known. `NaN` and `Infinity`, which several tools write, are read as Python's json reads them.
"""

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, NamedTuple

from perftrack.interop.source import Chunks
from perftrack.interop.value import BadRecordError

MAX_RECORD_BYTES = 64 * 2**20
"""A larger record is left out, and said so."""
MAX_REST_BYTES = 64 * 2**20
"""What a file may hold beside its records."""

_TOKEN = re.compile(rb'[{}\[\]:,]|"|[^\s{}\[\]:,"]+')
_NO_BRACKET = re.compile(rb'(?:[^"{}\[\]]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+', re.DOTALL)
"""Whole texts and everything that is neither bracket nor quote."""
_INSIDE_STRING = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL)
_AFTER = re.compile(rb"[\s;]*")
"""What may stand behind the document: a script's last semicolon."""
_CLOSERS = {b"{": b"}", b"[": b"]"}

Path = tuple[str | int, ...]
Pattern = tuple[str, ...]
"""Path of an array or object whose members are the records; `*` stands for any key or index."""


class TornError(Exception):
    """The file's structure ends, breaks or goes on at `at`; what came before it has been handed out."""

    def __init__(self, at: int, text: str) -> None:
        super().__init__(text)
        self.at = at


class Member(NamedTuple):
    """One record: raw, with its place."""

    path: Path
    at: int
    """Byte of the file at which it begins."""
    number: int
    """Among all records of the file, from 1."""
    data: bytes | None
    """None: larger than `MAX_RECORD_BYTES`."""

    def decode(self, *, exact: bool = False) -> Any:
        """The value; with `exact` its fractions are Decimals, as they stand there. Raises BadRecordError."""
        if self.data is None:
            raise BadRecordError(f"larger than {MAX_RECORD_BYTES >> 20} MiB")
        return decode(self.data, exact=exact)


def decode(data: bytes, *, exact: bool = False) -> Any:
    """JSON to values; bytes that are no UTF-8 become lone surrogates, which names spell out. BadRecordError."""
    text = data.decode("utf-8", "surrogateescape")
    try:
        return json.loads(text, parse_float=Decimal if exact else None)
    except json.JSONDecodeError as error:
        raise BadRecordError(f"no JSON: {error.msg} ({error.pos} characters into it)") from error
    except (ValueError, RecursionError) as error:
        raise BadRecordError(f"no JSON that can be read: {str(error).splitlines()[0]}") from error


class _Frame:
    """An open array or object outside of records."""

    __slots__ = ("awaits_key", "holds_records", "index", "key", "opener")

    def __init__(self, opener: bytes, *, holds_records: bool) -> None:
        self.opener = opener
        self.holds_records = holds_records
        self.index = 0
        self.key = ""
        self.awaits_key = opener == b"{"

    @property
    def step(self) -> str | int:
        return self.key if self.opener == b"{" else self.index


class Scanner:
    """One pass over a file. `rest` is complete after the last member, or as far as the file goes."""

    def __init__(self, chunks: Chunks, patterns: tuple[Pattern, ...]) -> None:
        self._chunks = chunks
        self._patterns = patterns
        self._rest = bytearray()
        self._stack: list[_Frame] = []
        self._dangling = False
        """The last thing in `rest` is a key."""
        self._count = 0

    def members(self) -> Iterator[Member]:
        """The records, in order. TornError where the structure ends too soon, breaks, or something follows it."""
        self._chunks.skip_assignment()
        while True:
            token, at = self._next_token()
            if token in (b"}", b"]"):
                self._close(token, at)
                if not self._stack:
                    return self._end()
            elif token in (b",", b":"):
                self._separate(token)
            elif self._stack and self._stack[-1].awaits_key:
                self._key(self._whole(token))
            elif self._stack and self._stack[-1].holds_records:
                self._count += 1
                yield Member(self._path(), at, self._count, self._record(token, at))
            elif token in _CLOSERS:
                path = self._path()
                self._stack.append(_Frame(token, holds_records=any(_fits(path, one) for one in self._patterns)))
                self._rest += token
            else:
                self._rest += self._whole(token)
                if not self._stack:
                    return self._end()

    def rest(self) -> Any:
        """Everything but the records, as values, whatever was still open closed; None where that is no JSON."""
        text = bytes(self._rest).rstrip()
        if self._dangling:
            text += b":"
        text = text + b"null" if text.endswith(b":") else text.removesuffix(b",")
        closers = b"".join(_CLOSERS[frame.opener] for frame in reversed(self._stack))
        try:
            return decode(text + closers)
        except BadRecordError:
            return None

    def _path(self) -> Path:
        return tuple(frame.step for frame in self._stack)

    def _separate(self, token: bytes) -> None:
        if not self._stack:
            return
        frame = self._stack[-1]
        self._dangling = False
        if token == b",":
            frame.index += 1
            frame.awaits_key = frame.opener == b"{"
        if not frame.holds_records:
            self._rest += token

    def _key(self, text: bytes) -> None:
        frame = self._stack[-1]
        frame.awaits_key = False
        try:
            frame.key = str(decode(text))
        except BadRecordError:
            frame.key = text.decode("utf-8", "backslashreplace")
        if not frame.holds_records:
            self._rest += text
            self._dangling = True

    def _close(self, token: bytes, at: int) -> None:
        if not self._stack or _CLOSERS[self._stack[-1].opener] != token:
            raise TornError(at, f"`{token.decode()}` closes nothing: the file cannot be read from here on")
        self._stack.pop()
        self._rest += token

    def _end(self) -> None:
        chunks = self._chunks
        while True:
            found = _AFTER.match(chunks.data, chunks.at)
            chunks.at = found.end() if found else chunks.at
            if chunks.at < len(chunks.data):
                raise TornError(
                    chunks.offset + chunks.at,
                    "the document ends before this, and the rest is not read: give a file of its own",
                )
            if not chunks.more():
                return

    def _next_token(self) -> tuple[bytes, int]:
        chunks = self._chunks
        while True:
            if len(self._rest) > MAX_REST_BYTES or len(chunks.data) > MAX_RECORD_BYTES:
                raise TornError(chunks.offset, f"more than {MAX_REST_BYTES >> 20} MiB beside its records")
            found = _TOKEN.search(chunks.data, chunks.at)
            # a word that touches the end of what was read may go on, and at the end of the file it may be cut
            if found and (found.end() < len(chunks.data) or found[0] in b'{}[]:,"'):
                chunks.at = found.end()
                return found[0], chunks.offset + found.start()
            if not chunks.more():
                raise TornError(chunks.offset + len(chunks.data), "the file ends here, in the middle of it")

    def _whole(self, token: bytes) -> bytes:
        """A string or another scalar, complete."""
        if token != b'"':
            return token
        self._chunks.hold(1)
        self._end_string()
        return self._chunks.release() or b'""'

    def _record(self, token: bytes, at: int) -> bytes | None:
        if token not in _CLOSERS:
            return self._whole(token)
        chunks = self._chunks
        chunks.hold(1)
        expected = [_CLOSERS[token]]
        while expected:
            before = _NO_BRACKET.match(chunks.data, chunks.at)
            chunks.at = before.end() if before else chunks.at
            mark = chunks.data[chunks.at : chunks.at + 1]
            if not mark:
                if not chunks.more():
                    raise TornError(chunks.offset + len(chunks.data), f"the file ends in the record at byte {at}")
                continue
            chunks.at += 1
            if mark == b'"':  # a text that goes on beyond what was read
                self._end_string()
            elif mark in _CLOSERS:
                expected.append(_CLOSERS[mark])
            elif mark != expected.pop():
                raise TornError(chunks.offset + chunks.at - 1, f"`{mark.decode()}` closes nothing in it")
        return chunks.release()

    def _end_string(self) -> None:
        chunks = self._chunks
        while True:
            inside = _INSIDE_STRING.match(chunks.data, chunks.at)
            chunks.at = inside.end() if inside else chunks.at
            if chunks.data[chunks.at : chunks.at + 1] == b'"':
                chunks.at += 1
                return
            if not chunks.more():
                raise TornError(chunks.offset + len(chunks.data), "the file ends in a text")


def _fits(path: Path, pattern: Pattern) -> bool:
    return len(path) == len(pattern) and all(wanted in ("*", step) for step, wanted in zip(path, pattern, strict=True))

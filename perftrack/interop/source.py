"""The bytes of a file, chunk by chunk, as UTF-8 without a byte order mark, and what identifies them."""

import codecs
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from perftrack.errors import UsageError

CHUNK_BYTES = 2**20
MAX_FILE_BYTES = 4 * 2**30
"""A larger file is refused before it is read."""

_UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_ASSIGNMENT = re.compile(rb"\s*(?:(?:var|let|const)\s+)?[A-Za-z_$][\w$.]*\s*=\s*(?=[{\[])")


class Chunks:
    """A window on a file: `data[at:]` is what comes next, `offset` the file's byte that `data[0]` is.

    `data` keeps what is held; everything before `at` may go otherwise.
    """

    def __init__(self, file: BinaryIO, limit: int) -> None:
        self._parts = parts(file)
        self._limit = limit
        self._held: int | None = None
        self._lost = False
        self.data = b""
        self.at = 0
        self.offset = len(codecs.BOM_UTF8) if file.read(3) == codecs.BOM_UTF8 else 0
        file.seek(0)
        self.more()

    def more(self) -> bool:
        """Read on: at least as much as there is, so that a long text costs no more than twice its length."""
        keep = self.at if self._held is None else self._held
        if self._held is not None and len(self.data) - keep > self._limit:
            # too large to keep: its end is still looked for
            self._lost, keep = True, self.at
            self._held = self.at
        wanted = max(CHUNK_BYTES, len(self.data) - keep)
        read: list[bytes] = [self.data[keep:]]
        length = 0
        while length < wanted and (part := next(self._parts, b"")):
            read.append(part)
            length += len(part)
        self.data = b"".join(read)
        self.offset += keep
        self.at -= keep
        if self._held is not None:
            self._held -= keep
        return length > 0

    def hold(self, back: int) -> None:
        """Keep everything from `back` bytes before `at` on, until `release`."""
        self._held, self._lost = self.at - back, False

    def release(self) -> bytes | None:
        """What was held, up to `at`; None where it grew beyond the limit."""
        held, self._held = self._held, None
        return None if self._lost or held is None else self.data[held : self.at]

    def skip_assignment(self) -> None:
        """Go past `window.NAME =`, with which a JavaScript file begins."""
        found = _ASSIGNMENT.match(self.data, self.at)
        if found:
            self.at = found.end()


def parts(file: BinaryIO) -> Iterator[bytes]:
    """The file as UTF-8, without byte order mark; UTF-16 is recognised by its own."""
    first = file.read(CHUNK_BYTES)
    encoding = _UTF16.get(first[:2])
    if encoding is None:
        yield first.removeprefix(codecs.BOM_UTF8)
        while part := file.read(CHUNK_BYTES):
            yield part
        return
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    part = first[2:]
    while part:
        yield decoder.decode(part).encode("utf-8", "replace")
        part = file.read(CHUNK_BYTES)


def head(path: Path, size: int = CHUNK_BYTES) -> str:
    """The first characters; UsageError where the file cannot be read, is empty or too large."""
    try:
        length = path.stat().st_size
        if path.is_dir():
            raise UsageError(f"{path} is a folder; name the files in it")
        if length > MAX_FILE_BYTES:
            raise UsageError(f"{path} has {length / 2**30:.1f} GiB; at most {MAX_FILE_BYTES >> 30} GiB: split it")
        with path.open("rb") as file:
            text = next(parts(file), b"")[:size].decode("utf-8", "replace")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    if not text.strip("\ufeff\0 \t\r\n"):
        raise UsageError(f"{path} is empty; give a file with results")
    return text


def fingerprint(path: Path, *salt: str) -> str:
    """SHA-256 (hex) of the content: neither a byte order mark nor the kind of line ends matters."""
    made = hashlib.sha256("\0".join(salt).encode())
    with path.open("rb") as file:
        for part in parts(file):
            made.update(part.replace(b"\r", b""))
    return made.hexdigest()

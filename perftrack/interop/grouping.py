"""Readings of one case brought together in bounded memory, wherever in the file they stood."""

import heapq
import itertools
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

import msgspec

from perftrack.errors import InfrastructureError
from perftrack.interop.value import Reading

CHUNK_READINGS = 20_000
"""Kept in memory, each together with fifty raw times; more are sorted on disk."""
_TIMES_OF_A_READING = 50

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Reading)


_Key = tuple[str, str, str, int, str]


def groups(readings: Iterable[Reading], class_of: Mapping[str, str]) -> Iterator[list[Reading]]:
    """Readings of the same suite, case and device class, in the order of their records; groups in that of their names.

    `class_of` has the class of each device key.
    """

    def key(one: Reading) -> _Key:
        return (one.suite, one.case, class_of[one.device], one.record, one.variant)

    with tempfile.TemporaryDirectory(prefix="perftrack-import-") as folder:
        runs: list[Iterable[Reading]] = []
        files: list[BinaryIO] = []
        try:
            for chunk in _chunks(readings, key):
                # the first one may stay
                runs.append(_spilled(chunk, Path(folder, str(len(runs))), files) if runs else chunk)
            ordered = heapq.merge(*runs, key=key)
            for _, found in itertools.groupby(ordered, key=lambda one: key(one)[:3]):
                yield list(found)
        except OSError as error:
            raise InfrastructureError(f"sorting in {folder}: {error.strerror}; TMPDIR names another place") from error
        finally:
            for file in files:
                file.close()


def _chunks(readings: Iterable[Reading], key: Callable[[Reading], _Key]) -> Iterator[list[Reading]]:
    chunk: list[Reading] = []
    weight = 0
    for one in readings:
        chunk.append(one)
        weight += 1 + len(one.samples_s) // _TIMES_OF_A_READING
        if weight >= CHUNK_READINGS:
            yield sorted(chunk, key=key)
            chunk, weight = [], 0
    yield sorted(chunk, key=key)


def _spilled(chunk: list[Reading], path: Path, files: list[BinaryIO]) -> Iterator[Reading]:
    with path.open("wb") as file:
        for one in chunk:
            file.write(_ENCODER.encode(one) + b"\n")
    opened = path.open("rb")
    files.append(opened)
    return map(_DECODER.decode, opened)

"""Finished jobs while the database is away: a file beside it, replayed in order when it is back.

A line is one attempt as JSON, on the disk before the next job is measured. To store one twice is harmless, so a replay
that is interrupted begins again.
"""

import fcntl
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import msgspec
import platformdirs

from perftrack.errors import StoreAwayError, StoreError, StoreReadOnlyError
from perftrack.model import Case, Device, JobResult
from perftrack.store.store import Store
from perftrack.store.write import refuse_unfit

PAUSE_S = 30.0
"""Between attempts to reach a database that was away, which take their time."""

_AWAY = (StoreAwayError, StoreReadOnlyError)


class _Line(msgspec.Struct, frozen=True, kw_only=True):
    case: Case
    attempt: JobResult
    device: Device


class Spool:
    """Adds the attempts of one run to a store, or keeps them in `path` while that cannot be.

    `goes_on`: the command that goes on with the run, and so replays what is kept.
    """

    def __init__(self, store: Store, run_uid: str, folder: Path | None = None, *, goes_on: str) -> None:
        self._store = store
        self._run_uid, self._goes_on = run_uid, goes_on
        self.path = (folder or platformdirs.user_state_path("perftrack") / "spool") / f"{run_uid}.jsonl"
        self.problem = ""
        """Why the newest attempt was kept."""
        self._again_s = 0.0

    def add(self, case: Case, attempt: JobResult, device: Device) -> bool:
        """Store one attempt, after all that were kept before it; False where it was kept too.

        StoreError where it could not be stored anyway, or the file cannot be written either.
        """
        if time.monotonic() >= self._again_s:
            try:
                self._replay()
                self._store.add_job(self._run_uid, case, attempt, device)
            except _AWAY as error:
                self.problem = str(error)
                self._again_s = time.monotonic() + PAUSE_S
            else:
                self._again_s = 0.0
                return True
        refuse_unfit(case, attempt, device)
        self._keep(msgspec.json.encode(_Line(case=case, attempt=attempt, device=device), enc_hook=float) + b"\n")
        return False

    def replay(self) -> int:
        """Store everything that was kept, in order; how many attempts. StoreAwayError where that still cannot be."""
        try:
            return self._replay()
        except _AWAY as error:
            raise StoreAwayError(
                f"{error}; finished jobs are kept in {self.path}: {self._goes_on} stores them"
            ) from error

    def _replay(self) -> int:
        if not self.path.exists():
            return 0
        with self._locked() as file:
            # what follows the last line's end was being written when the program died
            lines = file.read().split(b"\n")[:-1]
            for number, line in enumerate(lines, 1):
                try:
                    one = msgspec.json.decode(line, type=_Line)
                    self._store.add_job(self._run_uid, one.case, one.attempt, one.device)
                except _AWAY:
                    raise
                except (StoreError, msgspec.DecodeError) as error:
                    raise StoreError(f"{self.path}, line {number}: {error}; without that line the rest goes") from error
            self.path.unlink()
        return len(lines)

    def _keep(self, line: bytes) -> None:
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._locked() as file:
                whole = file.read().rfind(b"\n") + 1
                try:
                    file.truncate(whole)
                    while line:  # what has no room is written in part, and only the next write says why
                        line = line[file.write(line) :]
                    os.fsync(file.fileno())
                except OSError:
                    os.ftruncate(file.fileno(), whole)
                    raise
            folder = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise StoreError(
                f"{self.problem}; and {self.path}, where the job would be kept, cannot be written: {error.strerror}"
            ) from error

    @contextmanager
    def _locked(self) -> Generator[BinaryIO]:
        """The file, at its beginning; writing adds to its end. No other process has it meanwhile."""
        while True:
            file = os.fdopen(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600), "r+b", buffering=0)
            with file:
                fcntl.flock(file, fcntl.LOCK_EX)
                if os.fstat(file.fileno()).st_nlink:  # else another process has just replayed and removed it
                    yield file
                    return

"""`perftrack import`: files of other tools → readings → jobs, whole batches of them, into the store."""

import hashlib
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from perftrack.errors import PerftrackError, UsageError
from perftrack.interop import fields
from perftrack.interop.assemble import Assembled, assemble
from perftrack.interop.document import Hints
from perftrack.interop.formats import sessions
from perftrack.interop.grouping import groups
from perftrack.interop.value import FormatName, Notes, Origin, Session
from perftrack.model import NO_COMMIT, Revision, Run, RunOptions
from perftrack.pipeline.synthetic import refuse
from perftrack.revision import Repository
from perftrack.store import FinishedJob, Store

BATCH_JOBS = 500
_BATCH_SAMPLES = 500_000

UNKNOWN_REPO = "unknown"

_WHOLE_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the user typed after `perftrack import`."""

    start: Path
    files: tuple[Path, ...]
    format: FormatName | None = None
    """None: told from each file."""
    repo: str = ""
    """This and the following are for files that do not say it themselves."""
    revision: str = ""
    suite: str = ""
    device: str = ""


@dataclass(slots=True, kw_only=True)
class FileReport:
    """What became of one file."""

    file: Path
    notes: Notes
    format: str = ""
    error: str = ""
    """Why it could not be read at all, in one sentence."""
    runs: list[str] = field(default_factory=list)
    """Uids that it became."""
    known: int = 0
    """Runs of it that were stored before."""
    results: int = 0
    """New ones."""
    revisions: list[str] = field(default_factory=list)
    devices: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What became of all files."""

    files: tuple[FileReport, ...]

    @property
    def exit_code(self) -> int:
        """2 where a file could not be read, 4 where a record could not or nothing was found, else 0."""
        if any(one.error for one in self.files):
            return 2
        found = any(one.runs or one.known for one in self.files)
        return 4 if not found or any(one.notes.bad_count for one in self.files) else 0


def import_files(request: Request, store: Store, *, head: Revision | None = None) -> ImportReport:
    """Read the files into the store; what is there already stays as it is.

    `head` is the revision where the caller knows it better than the files. A file that cannot be read keeps no
    other from being read; UsageError where it is the only one.
    """
    refuse(store)
    importer = _Importer(request, store, head)
    reports: list[FileReport] = []
    for path in request.files:
        report = FileReport(file=path, notes=Notes(fields.spelled(path.name)))
        try:
            importer.read(path, report)
        except UsageError as error:
            if len(request.files) == 1:
                raise
            report.error = str(error)
        reports.append(report)
    return ImportReport(tuple(reports))


class _Importer:
    def __init__(self, request: Request, store: Store, head: Revision | None) -> None:
        self._request = request
        self._store = store
        self._head = head
        self._repository = _repository(request.start)
        self._here = self._repository.name if self._repository else ""

    def read(self, path: Path, report: FileReport) -> None:
        hints = Hints(suite=self._request.suite, device=self._request.device)
        for session in sessions(path, self._request.format, report.notes, hints):
            report.format = session.format
            self._store_session(session, path, report)

    def _store_session(self, session: Session, path: Path, report: FileReport) -> None:
        uid = self._uid(session)
        if self._store.state(uid) == "complete":
            report.known += 1
            return
        measured_us = _measured_us(session, path)
        begun: Run | None = None
        for batch in _batches(_assembled(session, measured_us, report.notes)):
            if begun is None:
                begun = self._begin(uid, session, path, batch[0])
                report.runs.append(uid)
                _note_new(report.revisions, [begun.head.label])
            self._store.add_finished(uid, batch)
            report.results += sum(len(job.answers) for job in batch)
            _note_new(report.devices, [card.device_class for job in batch for _, card in job.attempts])
        if begun is not None:
            problems = [str(one) for one in report.notes.bad]
            self._store.close_finished(uid, finished_us=time.time_ns() // 1000, problems=problems)

    def _begin(self, uid: str, session: Session, path: Path, first: FinishedJob) -> Run:
        """An import that was interrupted is taken up where its run stands."""
        measured_us = _measured_us(session, path)
        run = Run(
            uid=uid,
            repo=self._repo(session.origin),
            head=self._head or self._revision(session, path, measured_us),
            base=None,
            base_note=f"imported from {fields.spelled(path.name)} ({session.format})",
            options=RunOptions(
                rounds=1, confirm_rounds=0, suite_paths=(), methods={first.case.backend: first.answers[0][1]}
            ),
            started_us=measured_us,
        )
        if self._store.state(uid) is None:
            self._store.begin_run(run)
        return run

    def _uid(self, session: Session) -> str:
        """Of the content, and of what the user adds to it: the same figures may be those of two commits."""
        request, origin = self._request, session.origin
        added = (
            "" if origin.repo else request.repo,
            "" if origin.commit else request.revision and self._named_revision(0).sha,
            request.suite,
            request.device if any(one.name == request.device for one in session.devices.values()) else "",
        )
        return hashlib.sha256("\0".join((session.identity, *added)).encode()).hexdigest()[:32]

    def _repo(self, origin: Origin) -> str:
        if self._head is not None and self._here:
            return self._here
        return origin.repo or self._request.repo or self._here or UNKNOWN_REPO

    def _revision(self, session: Session, path: Path, measured_us: int) -> Revision:
        origin = session.origin
        if not origin.commit and self._request.revision:
            return self._named_revision(measured_us)
        if not origin.commit:
            return _no_commit(session, path, measured_us)
        known = self._known(origin.commit) if self._repo(origin) == self._here else None
        if known is None:
            return _bare(origin.commit, origin, measured_us)
        tree = "" if origin.dirty else known.tree
        return msgspec.structs.replace(known, dirty=origin.dirty, tree=tree, branch=origin.branch or known.branch)

    def _known(self, name: str) -> Revision | None:
        """As git knows it here; None where it does not."""
        try:
            return self._repository.revision(name) if self._repository else None
        except PerftrackError:
            return None

    def _named_revision(self, measured_us: int) -> Revision:
        """What `--revision` means; UsageError where git does not know it here and it is no whole commit id."""
        name = self._request.revision
        known = self._known(name)
        if known is not None:
            return known
        if _WHOLE_ID.fullmatch(name):
            return _bare(name, Origin(), measured_us)
        if self._repository is not None:
            return self._repository.revision(name)  # which says what is wrong with it
        raise UsageError(f"--revision {name}: {self._request.start} is in no git repository; give all 40 digits")


def _bare(sha: str, origin: Origin, measured_us: int) -> Revision:
    """A commit of which only the file knows something."""
    return Revision(
        sha=sha,
        tree="",
        dirty=origin.dirty,
        parent=None,
        position=None,
        committed_us=origin.committed_us or measured_us,
        subject=origin.subject,
        branch=origin.branch,
    )


def _measured_us(session: Session, path: Path) -> int:
    origin = session.origin
    return origin.measured_us or origin.committed_us or path.stat().st_mtime_ns // 1000


def _repository(start: Path) -> Repository | None:
    try:
        return Repository.discover(start)
    except PerftrackError:
        return None


def _no_commit(session: Session, path: Path, measured_us: int) -> Revision:
    """Of a file that names none: a revision of its own, which no commit can be taken for."""
    return Revision(
        sha=f"{NO_COMMIT}{session.identity[:16]}",
        tree="",
        dirty=False,
        parent=None,
        position=None,
        committed_us=measured_us,
        subject=f"{fields.spelled(path.name)} names no commit",
    )


def _assembled(session: Session, started_us: int, notes: Notes) -> Iterator[Assembled]:
    class_of = {key: one.device_class for key, one in session.devices.items()}
    for found in groups(session.readings(), class_of):
        made = assemble(found, session, started_us, notes)
        if made is not None:
            yield made


def _batches(jobs: Iterator[Assembled]) -> Iterator[list[FinishedJob]]:
    batch: list[FinishedJob] = []
    samples = 0
    for made in jobs:
        batch.append(FinishedJob(case=made.case, attempts=made.attempts, answers=made.answers))
        samples += sum(len(one.samples_s) for result, _ in made.attempts for one in result.measurements)
        if len(batch) == BATCH_JOBS or samples >= _BATCH_SAMPLES:
            yield batch
            batch, samples = [], 0
    if batch:
        yield batch


def _note_new(known: list[str], names: Sequence[str]) -> None:
    known += [name for name in dict.fromkeys(names) if name not in known]

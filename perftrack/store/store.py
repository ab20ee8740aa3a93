"""The store as the rest of perftrack sees it: structs in, structs out."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeVar, Unpack

import sqlalchemy as sa

from perftrack.errors import UsageError
from perftrack.judge.life import CaseId, Mark, Regression
from perftrack.judge.sightings import Seen
from perftrack.judge.value import Finding, Summary
from perftrack.model import Case, Device, JobResult, Run
from perftrack.store import (
    address,
    adhoc,
    aliases,
    attempts,
    bulk,
    costs,
    engine,
    glob,
    health,
    migrate,
    overview,
    owner,
    pack,
    read,
    regressions,
    retention,
)
from perftrack.store.attempts import Identity
from perftrack.store.door import Door, translated
from perftrack.store.schema import device_class, run, series, suite
from perftrack.store.tracks import Chosen, Track, tracks
from perftrack.store.value import DeviceUse, FinishedJob, RunEntry, StoredRevision, StoredRun, StoredSummary
from perftrack.store.write import Writer

T = TypeVar("T")


class Store:
    """One database of runs. Any number of threads and processes may write; none may cross a fork."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._writer = Writer(door)

    @classmethod
    def open(cls, url: str, *, create: bool = True, checked: bool = True) -> Self:
        """Open the database at `url` (`sqlite:///FILE`, `postgresql://…` or a path).

        `create` makes file and tables where there are none, and tries now whether it can be written, so that a
        run does not measure for nothing. Without `checked` any schema will do: only `current` and `upgrade`
        may be called then. Raises UsageError, StoreError or SchemaOutdatedError.
        """
        parsed = address.parse(url)
        if parsed.path is not None:
            engine.prepare_folder(parsed.path, create=create)
        door = Door(parsed)
        try:
            if create:
                migrate.create_if_empty(door)
            else:
                found = door.probe(migrate.version)
                if checked:
                    migrate.check(found, parsed)
        except BaseException:
            door.close()
            raise
        return cls(door)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the connections back."""
        self._door.close()

    @property
    def label(self) -> str:
        """Where it is, for people: no password."""
        return self._door.address.label

    # Schema

    def current(self) -> str | None:
        """The schema the database has; None where it is empty."""
        return self._door.read(migrate.version)

    def upgrade(self) -> migrate.Upgraded:
        """Bring the database to the schema of this program; a SQLite file with data is copied first."""
        self._door.close()
        return migrate.upgrade(self._door.address)

    # Upkeep

    def problems(self) -> list[str]:
        """A line for each thing that is wrong with the database itself; none where it is sound."""
        return self._door.read(health.problems)

    def back_up(self, file: Path) -> None:
        """Copy a SQLite database, as it is at one instant, while others write; UsageError for PostgreSQL."""
        place = self._door.address
        if place.path is None:
            raise UsageError(f"{place.label} is on a server, which copies it itself: pg_dump --format=custom -f {file}")
        with translated(place):
            engine.back_up(place.path, file)

    def expiring(self, before_us: int) -> retention.Expiry:
        """What `expire` would take."""
        return self.read(lambda connection: retention.plan(connection, before_us))

    def expire(self, before_us: int) -> retention.Expiry:
        """Take the raw samples of complete runs that started before an instant; their quantiles stay."""
        return retention.expire(self._door, before_us)

    def rename(self, old: str, new: str, suite_name: str | None = None) -> list[tuple[str, str, str]]:
        """Show the history of a case, or of all cases of a benchmark, under another name: suite, former and new key."""
        return self._door.write(lambda connection: aliases.rename(connection, old, new, suite_name))

    # Writing

    def begin_run(self, new: Run) -> bool:
        """Store a run; False, and nothing changed, where it is stored already."""
        return self._writer.begin_run(new)

    def declare(self, cases: Collection[Case]) -> None:
        """Make the cases known whose jobs will be added; only faster than leaving that to `add_job`."""
        self._writer.declare(cases)

    def add_job(self, run_uid: str, case: Case, attempt: JobResult, device: Device) -> bool:
        """Store one attempt in one transaction; False where it is stored already, StoreError where another one is."""
        return self._writer.add_job(run_uid, case, attempt, device)

    def finish_run(
        self,
        run_uid: str,
        *,
        state: Literal["running", "complete", "interrupted"],
        finished_us: int,
        summaries: Sequence[Summary],
        findings: Sequence[Finding],
        problems: Sequence[str] | None = None,
    ) -> None:
        """Store the answers of a run and how it ended. Doing it again replaces them: they follow from the attempts."""
        self._writer.finish_run(
            run_uid, state=state, finished_us=finished_us, summaries=summaries, findings=findings, problems=problems
        )

    def remember(self, run_uid: str, seen: Sequence[Seen], *, moved: Sequence[int] = ()) -> None:
        """Store what a finished run says of regressions, replacing what it said; new ones are made.

        The regressions `moved` were found at a commit that was amended into the run's head: they are the head's now.
        """
        self._door.write(lambda connection: regressions.remember(connection, run_uid, seen, moved=moved))

    def mark(self, regression: int, marks: Sequence[Mark]) -> None:
        """Store what a person said of cases of a regression."""
        pack.refuse_unstorable(marks, f"marks of regression {regression}")
        self._door.write(lambda connection: regressions.add_marks(connection, regression, marks))

    def add_finished(self, run_uid: str, jobs: Sequence[FinishedJob]) -> int:
        """Store finished jobs of a run with their answers, in one transaction; how many attempts were new.

        StoreError where one of them is stored with other content.
        """
        return bulk.add(self._door, self._writer.dimensions, self._writer.header(run_uid), jobs)

    def close_finished(self, run_uid: str, *, finished_us: int, problems: Sequence[str]) -> None:
        """Say that all finished jobs of a run have been added."""
        bulk.finish(self._door, self._writer.header(run_uid).id, finished_us=finished_us, problems=problems)

    def own(self, run_uid: str) -> AbstractContextManager[Callable[[], None]]:
        """Be the only process that carries out a run; UsageError where another one does."""
        return owner.own(self._door, run_uid)

    def owned(self, run_uid: str) -> bool:
        """Whether some process carries the run out now."""
        return owner.owned(self._door, run_uid)

    def reopen(self, run_uid: str) -> None:
        """Say that an interrupted run goes on."""
        self._door.write(lambda connection: owner.reopen(connection, run_uid))

    def interrupt(self, run_uid: str, now_us: int) -> bool:
        """Ask whoever carries a run out to stop; False where it was not running."""
        return self._door.write(lambda connection: owner.interrupt(connection, run_uid, now_us))

    def state(self, run_uid: str) -> str | None:
        """How far a run is (`running`, `complete`, `interrupted`); None where it is not stored."""
        question = sa.select(run.c.state).where(run.c.uid == run_uid)
        return self.read(lambda connection: connection.execute(question).scalar())

    def read(self, work: Callable[[sa.Connection], T]) -> T:
        """Call `work` with a connection, in a transaction that only reads."""
        return self._door.read(work)

    def stream(self, question: sa.Select[*tuple[Any, ...]], size: int) -> Iterator[Sequence[Any]]:
        """The rows of a question in parts of at most `size`, all of one instant."""
        return self._door.stream(question, size)

    @property
    def dialect(self) -> sa.Dialect:
        """What the database speaks."""
        return self._door.dialect

    def parts(self, text: str, keep: Callable[[Any], T]) -> list[T] | None:
        """What `keep` makes of each `pyarrow.RecordBatch` of the answer where ADBC gives it (PostgreSQL), else None."""
        return self._door.parts(text, keep)

    def ask(self, query: str) -> adhoc.Answer:
        """What one SELECT gives: names and rows; UsageError for any other statement."""
        return self._door.read(lambda connection: adhoc.ask(connection, query))

    # Reading one run

    def find_run(self, text: str) -> str:
        """The uid that `text` means: `latest`, or the first digits of one; UsageError otherwise."""
        if text == "latest":
            newest = self.latest_run()
            if newest is None:
                raise UsageError(f"{self.label} has no run yet: `perftrack submit` makes one")
            return newest
        found = self.read(lambda connection: read.newest_runs(connection, repo=None, prefix=text)) if text else []
        if len(found) == 1:
            return found[0]
        if found:
            raise UsageError(f"run {text!r} is ambiguous: {_some(found)}; give more digits")
        last = [uid[:8] for uid in self.read(lambda connection: read.newest_runs(connection, repo=None, last=3))]
        there = f"the newest are {_some(last)}" if last else "it has none yet"
        raise UsageError(f"{self.label} has no run {text!r}; {there}")

    def latest_run(self, repo: str | None = None) -> str | None:
        """Uid of the run that started last, of `repo` or of any; None where there is none."""
        return next(iter(self.read(lambda connection: read.newest_runs(connection, repo=repo, last=1))), None)

    def load_run(self, uid: str) -> StoredRun:
        """Everything of a run but its samples; UsageError where it is unknown."""
        return self._of_run(uid, read.stored_run)

    def jobs(self, uid: str) -> list[JobResult]:
        """The attempts that count, whole: of each job the last one that the machine did not spoil."""
        return self._of_run(uid, lambda connection, number, _: attempts.jobs(connection, number))

    def attempts(self, uid: str) -> list[tuple[JobResult, bool]]:
        """Every attempt, whole, and whether it counts."""
        return self._of_run(uid, lambda connection, number, _: attempts.attempts(connection, number))

    def kept(self, uid: str) -> retention.Kept:
        """What is left of the samples of a run that have expired; empty where none has."""
        return self._of_run(uid, lambda connection, number, _: retention.kept(connection, number))

    def busy(self, uid: str) -> dict[str, tuple[int, float]]:
        """Device UUID → attempts of a run, those included that were repeated, and the seconds they took."""
        return self._of_run(uid, lambda connection, number, _: costs.busy(connection, number))

    def costs(self, repo: str) -> costs.Costs:
        """Seconds of a job for each side, by (suite, case key, device class), of what was measured of late."""
        return self.read(lambda connection: costs.costs(connection, repo))

    def done_jobs(self, uid: str) -> set[Identity]:
        """Identities (suite, case key, device class, round) of the jobs that need no further attempt."""
        return self._of_run(uid, lambda connection, number, _: attempts.done(connection, number))

    def last_attempts(self, uid: str) -> dict[Identity, int]:
        """The number of the last stored attempt of each job, whatever became of it."""
        return self._of_run(uid, lambda connection, number, _: attempts.last(connection, number))

    def _of_run(self, uid: str, work: Callable[[sa.Connection, int, Run], T]) -> T:
        def whole(connection: sa.Connection) -> T:
            found = read.run_row(connection, uid)
            if found is None:
                raise UsageError(f"{self.label} has no run {uid}")
            return work(connection, *found)

        return self.read(whole)

    # Reading across runs

    def find_revision(self, repo: str | None, prefix: str) -> StoredRevision:
        """The stored revision whose commit (or dirty tree) begins with `prefix`; a clean one goes before a dirty one.

        UsageError where there is none, or more than one.
        """
        found = self._matching(repo, prefix)
        if not found:
            raise UsageError(f"{self.label} has no results of a revision {prefix!r}: give the first digits of a commit")
        return found[0]

    def _matching(self, repo: str | None, prefix: str) -> list[StoredRevision]:
        """At most one; UsageError where `prefix` means several."""
        dirty = prefix.endswith("+dirty")
        found = self.read(lambda connection: read.revisions(connection, repo, prefix.removesuffix("+dirty")))
        kind = [one for one in found if one.revision.dirty is dirty] or found
        if len(kind) > 1:
            names = _some([f"{one.repo} {one.revision.label} (tree {one.revision.tree[:7]})" for one in kind])
            raise UsageError(f"revision {prefix!r} is ambiguous: {names}; give more digits, or those of a dirty tree")
        return kind

    def summaries(self, of: StoredRevision | str, device: str | None = None) -> list[StoredSummary]:
        """All summaries of one revision, of every run, the oldest run first; none where the revision is unknown.

        `device` is a device class or a pattern with * and ?.
        """
        matching = self._matching(None, of) if isinstance(of, str) else [of]
        its = self.read(lambda connection: read.of_revisions(connection, [one.id for one in matching]))
        return self.read(lambda connection: read.summaries(connection, its, *self._device_filter(device), today=True))

    def history(
        self,
        case: str,
        *,
        device: str | None = None,
        variant: str | None = None,
        suite_name: str | None = None,
        last: int | None = None,
    ) -> list[StoredSummary]:
        """All summaries of the case of this key, in topological order of their revisions.

        A renamed case is found by either name and has that of today. `last`: so many of each series.
        """
        cases = series.c.case_id.in_(self.read(lambda connection: aliases.of_key(connection, case)))
        where = [cases, *self._device_filter(device)]
        if suite_name is not None:
            where.append(suite.c.name == suite_name)
        if variant is not None:
            where.append(series.c.variant == variant)
        if last is not None:
            where.append(read.of_newest(last, *where))
        return self.read(lambda connection: read.summaries(connection, *where, today=True))

    def tracks(self, of: str = "*", **chosen: Unpack[Chosen]) -> list[Track]:
        """The times of each candidate variant of a suite, or of cases that match, one a commit: `tracks.tracks`."""
        return self.read(lambda each: tracks(each, of=of, **chosen))

    def _device_filter(self, pattern: str | None) -> list[sa.ColumnElement[bool]]:
        if not pattern:
            return []
        known = self.read(read.device_class_names)
        return [device_class.c.id.in_([known[name] for name in glob.matching(pattern, known)])]

    def findings(self, base: StoredRevision, head: StoredRevision) -> list[Finding]:
        """Of the newest complete run that compared the two side by side; none where there is no such run."""
        question = (
            sa.select(run.c.id)
            .where(run.c.head_id == head.id, run.c.base_id == base.id, run.c.state == "complete")
            .order_by(run.c.started_us.desc(), run.c.id.desc())
            .limit(1)
        )

        def work(connection: sa.Connection) -> list[Finding]:
            number = connection.execute(question).scalar()
            return [] if number is None else read.findings(connection, number, today=True)

        return self.read(work)

    def regressions(self, *, repo: str | None = None, run_uid: str | None = None) -> list[Regression]:
        """All regressions, the oldest first; of one repository, or those of which one run says something."""
        return self.read(lambda connection: regressions.regressions(connection, repo=repo, run_uid=run_uid))

    def segments(self, run_uid: str) -> dict[tuple[CaseId, str], tuple[int, int]]:
        """Environment and method, as numbers, in which a run timed its head: by case and device class."""
        return self.read(lambda connection: regressions.segments(connection, run_uid))

    def devices(self) -> list[DeviceUse]:
        """Every device that ever did a job, by class and UUID."""
        return self.read(read.device_uses)

    def runs(self, *, repo: str | None = None, last: int | None = None, skip: int = 0) -> list[RunEntry]:
        """The newest runs, the newest first, but for the first `skip`."""
        return self.read(lambda connection: read.run_entries(connection, repo=repo, last=last, skip=skip))

    def runs_of(self, head: StoredRevision) -> list[RunEntry]:
        """The runs that have this revision as their head, the newest first."""
        return self.read(lambda connection: read.run_entries(connection, repo=None, last=None, head=head.id))

    def tallies(self, uids: Sequence[str]) -> list[overview.Tally]:
        """How many candidates of each of these runs have which verdict, by device class."""
        return self.read(lambda connection: overview.tallies(connection, uids))

    def series_names(self) -> list[overview.SeriesName]:
        """Every variant of every case on every device class that has results."""
        return self.read(overview.series_names)

    def newest_points(self, names: Sequence[overview.SeriesName], *, runs: int) -> list[StoredSummary]:
        """What the newest `runs` say of some series, in topological order of their heads."""
        ids = [number for one in names for number in one.ids]
        return self.read(lambda connection: overview.points(connection, ids, runs=runs))


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")

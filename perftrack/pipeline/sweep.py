"""`perftrack sweep`: chosen commits of a line of history, each measured by itself, so that its series have the points.

A run is one commit on one device class, without a base. What is stored is never measured again: a sweep that was
broken off goes on where it was, and the next one begins where the last one ended.
"""

import itertools
import secrets
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from perftrack import config
from perftrack.errors import (
    IncompleteError,
    InfrastructureError,
    PerftrackError,
    PoolError,
    StoppedError,
    UsageError,
)
from perftrack.measure.methods import default_method, quick_method
from perftrack.model import Run, RunOptions, Status, SweepPart, digest
from perftrack.pipeline import plan
from perftrack.pipeline.backlog import TRIES, choose, plain, same
from perftrack.pipeline.execution import Execution, Known
from perftrack.pipeline.known import LOST, backend, covered, known, lost
from perftrack.pipeline.outside import carry_out, job_name, ship
from perftrack.pipeline.reach import Reach
from perftrack.pipeline.select import of_axes
from perftrack.pipeline.synthetic import refuse
from perftrack.pipeline.talk import Talk
from perftrack.pipeline.trees import Compared, Trees, export
from perftrack.pool.jobs import Jobs, is_jobs_address
from perftrack.report.sweep import Outcome, SweepReport, Swept
from perftrack.report.words import counted
from perftrack.revision import Commit, Repository
from perftrack.store import Store, default_url

_UNNAMED = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the user typed after `perftrack sweep`; None and empty: as the settings say."""

    start: Path
    name: str = ""
    since: str | None = None
    steps: int | None = None
    fill_gaps: bool = False
    budget: str = ""
    device: str = ""
    database: str | None = None
    address: str | None = None
    detach: bool = False
    """Leave the work to the cluster; only where the address is that of a dashboard."""


def sweep(request: Request, talk: Talk) -> SweepReport:
    """Measure the commits that a named sweep asks for, the most wanted first, until its time is used up.

    UsageError for a name or a revision that is not there, PoolError and StoreError where nothing can be measured now.
    """
    repository = Repository.discover(request.start)
    settings = config.resolve(repository.root)
    if request.detach and not is_jobs_address(request.address):
        raise UsageError("--detach leaves the work to a cluster: give its dashboard, RAY_ADDRESS=http://head:8265")
    name, wanted = _wanted(request, settings)
    url = config.database_url(request.database, settings) or default_url()
    with Store.open(url) as store, tempfile.TemporaryDirectory(prefix="perftrack-") as scratch:
        refuse(store)
        questions = [_question(settings, wanted, device) for device in wanted.devices]
        chosen = choose(repository, store, name, wanted, questions)
        talk.say(f"sweep   {name}: {len(chosen.commits)} of {chosen.of} commits since {chosen.since}")
        part = SweepPart(name=name, commits=tuple(commit.sha for commit in chosen.commits))
        options = [msgspec.structs.replace(one, sweep=part) for one in questions]
        sweeping = _Sweeping(repository, store, talk, Path(scratch), request.address, _until(wanted))
        if request.detach:
            sweeping.parcel = []
        swept = tuple(sweeping.all(chosen.commits, options))
        sweeping.ship()
    if sweeping.errors and all(one.outcome == "left" for one in swept):
        raise sweeping.errors[0]
    problems = dict.fromkeys(str(one) for one in sweeping.errors if isinstance(one, InfrastructureError))
    return SweepReport(name=name, of=chosen.of, since=chosen.since, commits=swept, problems=tuple(problems))


def _wanted(request: Request, settings: config.Settings) -> tuple[str, config.Sweep]:
    """Name and settings of the sweep, with what was typed in place of what is written."""
    there = settings.sweeps
    name = request.name or (next(iter(there)) if len(there) == 1 else "" if there else _UNNAMED)
    if not name:
        raise UsageError(f"which sweep? [tool.perftrack.sweeps] has {', '.join(there)}: type `perftrack sweep NAME`")
    if request.name and name not in there:
        known = f"there are {', '.join(there)}" if there else "it has none; add [tool.perftrack.sweeps.NAME]"
        raise UsageError(f"no sweep is called {name!r} in [tool.perftrack.sweeps]: {known}")
    typed = {
        "since": request.since,
        "steps": request.steps,
        "fill_gaps": request.fill_gaps or None,
        "budget": request.budget or None,
        "devices": (request.device,) if request.device else None,
    }
    given = {key: value for key, value in typed.items() if value is not None}
    try:
        return name, msgspec.structs.replace(there.get(name, config.Sweep()), **given)
    except ValueError as error:
        raise UsageError(f"perftrack sweep: {error}") from error


def _until(wanted: config.Sweep) -> float:
    return time.monotonic() + config.seconds(wanted.budget) if wanted.budget else float("inf")


def _question(settings: config.Settings, wanted: config.Sweep, device: str) -> RunOptions:
    make = quick_method if wanted.quick else default_method
    return RunOptions(
        suites=wanted.suites,
        expression=of_axes(wanted.axes, wanted.expression),
        device=device,
        rounds=wanted.rounds or settings.rounds,
        confirm_rounds=0,
        suite_paths=settings.suites,
        methods={"cuda": make("cuda"), "cpu": make("cpu")},
        case_timeout_s=settings.case_timeout,
        seed=secrets.randbits(32),
    )


@dataclass
class _Sweeping:
    """The commits of one sweep, one after the other."""

    repository: Repository
    store: Store
    talk: Talk
    scratch: Path
    address: str | None
    until: float
    parcel: list[Execution] | None = None
    """Where the cluster shall do it alone: what it will be sent."""
    errors: list[PerftrackError] = field(default_factory=list[PerftrackError])
    """What kept commits from being measured."""
    exported: dict[str, Trees] = field(default_factory=dict[str, Trees])
    """The newest commit's alone: its next device needs them too."""
    reach: Reach = field(default_factory=Reach)
    why: str = ""
    """What all that is left is left for."""

    def ship(self) -> None:
        """Leave to the cluster what was put aside for it."""
        if self.parcel:
            jobs, name = Jobs(self.address or ""), job_name(self.parcel[0].run)
            ship(jobs, name, self.parcel)
            self.talk.say(f"job     {name} at {jobs.address} measures {counted(len(self.parcel), 'run')}")

    def all(self, chosen: Sequence[Commit], options: Sequence[RunOptions]) -> Iterator[Swept]:
        """What became of each; once one was stopped, or the store is away, the rest is left."""
        for commit in chosen:
            for one in options:
                if not self.why and time.monotonic() > self.until:
                    self.why = "the budget is used up"
                if why := self.why or self.reach.why_not(one.device):
                    yield self._swept(commit, one, "left", why=why)
                    continue
                try:
                    yield self._one(commit, one)
                except InfrastructureError as error:
                    self.errors.append(error)
                    self.why = str(error)
                    yield self._swept(commit, one, "left", why=self.why)

    def _one(self, commit: Commit, options: RunOptions) -> Swept:
        asked = self._asked(commit, options)
        complete = [run for run in asked if run.state == "complete"]
        if complete and (len(complete) >= TRIES or not self._lost(complete[0].uid)):
            return self._swept(commit, options, "stored", run=complete[0])
        run = next((run for run in asked if run.state != "complete"), None)
        try:
            trees = self._trees(commit, options)
        except UsageError as error:
            if run is not None:  # it had something to measure once, which is kept
                return self._swept(commit, options, "left", run=run, why=str(error))
            return self._impossible(commit, options, str(error))
        of = known(self.store, self.repository.name, commit.sha)
        if run is None and covered(trees, options, of):
            return self._swept(commit, options, "stored", why="by other runs")
        swept = self._measured(commit, run or self._new_run(commit, options, trees), trees, of)
        if swept.outcome == "measured" and len(complete) + 1 < TRIES and self._lost(swept.run):
            return msgspec.structs.replace(swept, outcome="partial")
        return swept

    def _trees(self, commit: Commit, options: RunOptions) -> Trees:
        """UsageError where the commit has nothing of what was asked for."""
        trees = self.exported.get(commit.sha)
        if trees is None:
            compared = Compared(self.repository, self.repository.revision(commit.sha), None, _note(options))
            trees = export(compared, options.suite_paths, self.scratch)
            self.exported = {commit.sha: trees}
        plan.check_selection(trees, options)
        cases = plan.selected(trees, options, "head")
        if not cases:
            raise UsageError("; ".join(trees.problems))
        kind = backend(options.device)
        if kind and not trees.problems and not any(case.backend == kind for case in cases):
            raise UsageError(f"no selected case can run on {options.device}: the suites declare none for this backend")
        return trees

    def _measured(self, commit: Commit, run: Run, trees: Trees, of: Known) -> Swept:
        if self.parcel is not None:
            self.parcel.append(self._execution(run, trees, of))
            return self._swept(commit, run.options, "submitted", run=run)
        self.talk.say(f"measure {run.head.label} {run.head.subject}, run {run.uid[:8]}")
        try:
            done = carry_out(self._execution(run, trees, of), self.address)
        except StoppedError as error:
            self.why = str(error)
            return self._swept(commit, run.options, "stopped", run=run, why=self.why)
        except (UsageError, PoolError, IncompleteError) as error:
            return self._broken_off(commit, run, error)
        self.reach.worked(run.options.device)
        if done:
            return self._swept(commit, run.options, "measured", run=run)
        return self._swept(commit, run.options, "stored", why="by other runs")

    def _broken_off(self, commit: Commit, run: Run, error: PerftrackError) -> Swept:
        """Measuring failed for now, or for good where no device of the kind has anything to do."""
        begun, elsewhere = self.store.state(run.uid) is not None, self.store.owned(run.uid)
        if isinstance(error, IncompleteError) and not begun:
            return self._impossible(commit, run.options, str(error))
        self.talk.say(f"problem {run.head.label}: {error}")
        if not (elsewhere and isinstance(error, UsageError)):  # else another process is at it, and all is well
            self.errors.append(error)
        if not elsewhere:
            self.reach.failed(run.options.device, error, begun=begun)
        outcome: Outcome = "stopped" if begun and not elsewhere else "left"
        return self._swept(commit, run.options, outcome, run=run, why=str(error))

    def _execution(self, run: Run, trees: Trees, of: Known) -> Execution:
        return Execution(run, trees, self.store, self.talk, known=of, until=self.until)

    def _swept(
        self, commit: Commit, options: RunOptions, outcome: Outcome, *, run: Run | None = None, why: str = ""
    ) -> Swept:
        revision = run.head if run else self.repository.revision(commit.sha)
        jobs, lacking = self._lacking(run) if run else (0, ())
        return Swept(
            commit=revision.label,
            sha=revision.sha,
            subject=revision.subject,
            device=options.device,
            outcome=outcome,
            jobs=jobs,
            run=run.uid if run else "",
            why=why or next(iter(run.problems if run and not jobs else ()), ""),
            lacking=lacking,
        )

    def _lacking(self, run: Run) -> tuple[int, tuple[str, ...]]:
        """How many jobs a run has, and what of it has no time."""
        try:
            stored = self.store.load_run(run.uid)
        except UsageError:  # stopped before it was begun
            return 0, ()
        texts = [
            f"{one.suite}: {one.case_key} {one.variant} {one.status.value}: {one.message.partition(chr(10))[0]}"
            for one in stored.summaries
            if one.status is not Status.OK
        ]
        texts += [
            f"{one.suite}: {one.case} infra: {one.message.partition(chr(10))[0]}" for one in lost(self.store, [run.uid])
        ]
        return sum(count for count, _ in self.store.busy(run.uid).values()), (*stored.run.problems, *texts)

    def _lost(self, uid: str) -> bool:
        statuses = {one.status for one in self.store.load_run(uid).summaries}
        return bool(statuses & LOST or lost(self.store, [uid]))

    def _asked(self, commit: Commit, options: RunOptions) -> list[Run]:
        """The runs of this very question, whole or not, the newest first."""
        try:
            revision = self.store.find_revision(self.repository.name, commit.sha)
        except UsageError:  # nothing is stored of it
            return []
        runs = [entry.run for entry in self.store.runs_of(revision)]
        return [run for run in runs if not run.head.dirty and run.base is None and same(run.options, options)]

    def _impossible(self, commit: Commit, options: RunOptions, why: str) -> Swept:
        """Stored as a run without jobs, so that it is not tried again and its reason can be read."""
        run = msgspec.structs.replace(self._new_run(commit, options, None), problems=(why,))
        self.store.begin_run(run)
        now_us = time.time_ns() // 1000
        self.store.finish_run(run.uid, state="complete", finished_us=now_us, summaries=[], findings=[])
        return self._swept(commit, options, "impossible", run=run, why=why)

    def _new_run(self, commit: Commit, options: RunOptions, trees: Trees | None) -> Run:
        """Two sweeps give the same commit the same uid, so that only one of them measures it."""
        uid = self._uid(commit, options)
        if self.store.state(uid) is not None:  # another one has begun it just now
            return self.store.load_run(uid).run
        return Run(
            uid=uid,
            repo=self.repository.name,
            head=self.repository.revision(commit.sha),
            base=None,
            base_note=_note(options),
            options=options,
            started_us=time.time_ns() // 1000,
            problems=trees.problems if trees else (),
        )

    def _uid(self, commit: Commit, options: RunOptions) -> str:
        """Of the next run of this question."""
        question = [self.repository.name, commit.sha, plain(options)]
        names = (digest([*question, number])[:32] for number in itertools.count())
        return next(uid for uid in names if self.store.state(uid) != "complete")


def _note(options: RunOptions) -> str:
    return f"not asked for (sweep {options.sweep.name if options.sweep else ''})"

"""`perftrack sweep`: chosen commits of a line of history, each measured by itself, so that its series have the points.

A run is one commit on one device class, without a base. What is stored is never measured again: a sweep that was
broken off goes on where it was, and the next one begins where the last one ended.
"""

import secrets
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from perftrack import config
from perftrack.errors import IncompleteError, StoppedError, UsageError
from perftrack.measure.methods import default_method, quick_method
from perftrack.model import Method, Run, RunOptions, Status, SweepPart
from perftrack.pipeline import commits, plan
from perftrack.pipeline.execution import Execution, Known
from perftrack.pipeline.outside import carry_out, job_name, ship
from perftrack.pipeline.select import of_axes
from perftrack.pipeline.synthetic import refuse
from perftrack.pipeline.talk import Talk
from perftrack.pipeline.trees import Compared, Trees, export
from perftrack.pool.jobs import Jobs, is_jobs_address
from perftrack.report.sweep import Outcome, SweepReport, Swept
from perftrack.report.words import counted
from perftrack.revision import Commit, Repository
from perftrack.store import Store, default_url

LAST_SWEEP = "last-sweep"
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
        chosen = _choose(repository, store, name, wanted)
        talk.say(f"sweep   {name}: {len(chosen.commits)} of {chosen.of} commits since {chosen.since}")
        part = SweepPart(name=name, commits=tuple(commit.sha for commit in chosen.commits))
        options = [_options(settings, wanted, device, part) for device in wanted.devices]
        sweeping = _Sweeping(repository, store, talk, Path(scratch), request.address, _until(wanted))
        if request.detach:
            sweeping.parcel = []
        swept = tuple(sweeping.all(chosen.commits, options))
        sweeping.ship()
    return SweepReport(name=name, of=chosen.of, since=chosen.since, commits=swept)


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


def _options(settings: config.Settings, wanted: config.Sweep, device: str, part: SweepPart) -> RunOptions:
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
        sweep=part,
    )


@dataclass(frozen=True, slots=True)
class _Chosen:
    commits: list[Commit]
    of: int
    since: str


def _choose(repository: Repository, store: Store, name: str, wanted: config.Sweep) -> _Chosen:
    """What earlier sweeps of this name still owe, then what the range asks for."""
    whole = repository.first_parents(wanted.head)
    places = {commit.sha: place for place, commit in enumerate(whole)}
    runs = [entry.run for entry in store.runs(repo=repository.name) if entry.run.head.sha in places]
    own = [(run, run.options.sweep) for run in runs if run.options.sweep and run.options.sweep.name == name]
    planned = [sha for _, part in own for sha in part.commits if sha in places]
    behind = max((places[sha] for sha in planned), default=None)
    line, since = _range(repository, whole, behind, wanted)
    finished = {run.head.sha for run, _ in own if run.state == "complete"}
    found = (commits.gaps(line, finished, wanted.steps)) if wanted.fill_gaps else commits.steps(line, wanted.steps)
    begun = {run.head.sha for run, _ in own}
    elsewhere = {run.head.sha for run in runs if run.state == "complete" and not run.head.dirty} - begun
    owed = [whole[places[sha]] for sha in planned if sha not in finished | elsewhere]
    return _Chosen(list({commit.sha: commit for commit in [*owed, *found]}.values()), len(line), since)


def _range(
    repository: Repository, whole: list[Commit], behind: int | None, wanted: config.Sweep
) -> tuple[list[Commit], str]:
    """The commits to choose from, and after what they begin, in words. `behind`: where earlier sweeps ended."""
    if wanted.since != LAST_SWEEP:
        return repository.first_parents(wanted.head, wanted.since), wanted.since
    if wanted.fill_gaps:
        return whole, "the first commit"
    if behind is not None:
        return whole[behind + 1 :], f"the last sweep, which ended at {whole[behind].sha[:7]}"
    # without a number of steps the first sweep of all is of the newest commit, not of the whole history
    return (whole if wanted.steps else whole[-1:]), "the first commit, as there was no sweep yet"


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

    def ship(self) -> None:
        """Leave to the cluster what was put aside for it."""
        if self.parcel:
            jobs, name = Jobs(self.address or ""), job_name(self.parcel[0].run)
            ship(jobs, name, self.parcel)
            self.talk.say(f"job     {name} at {jobs.address} measures {counted(len(self.parcel), 'run')}")

    def all(self, chosen: Sequence[Commit], options: Sequence[RunOptions]) -> Iterator[Swept]:
        """What became of each; once one was stopped, the rest is left."""
        why = ""
        for commit in chosen:
            for one in options:
                if not why and time.monotonic() > self.until:
                    why = "the budget is used up"
                swept = self._swept(commit, one, "left", why=why) if why else self._one(commit, one)
                if swept.outcome == "stopped":
                    why = swept.why
                yield swept

    def _one(self, commit: Commit, options: RunOptions) -> Swept:
        run = self._stored(commit, options)
        if run is not None and run.state == "complete":
            return self._swept(commit, options, "stored", run=run)
        try:
            trees = self._trees(commit, options)
        except UsageError as error:
            return self._impossible(commit, options, str(error))
        known = self._known(commit)
        if run is None and _covered(trees, options, known):
            return self._swept(commit, options, "stored", why="by other runs")
        return self._measured(commit, run or self._new_run(commit, options, trees), trees, known)

    def _trees(self, commit: Commit, options: RunOptions) -> Trees:
        """UsageError where the commit has nothing of what was asked for."""
        compared = Compared(self.repository, self.repository.revision(commit.sha), None, _note(options))
        trees = export(compared, options.suite_paths, self.scratch)
        plan.check_selection(trees, options)
        if not plan.selected(trees, options, "head"):
            raise UsageError("; ".join(trees.problems))
        return trees

    def _measured(self, commit: Commit, run: Run, trees: Trees, known: Known) -> Swept:
        if self.parcel is not None:
            self.parcel.append(self._execution(run, trees, known))
            return self._swept(commit, run.options, "submitted", run=run)
        self.talk.say(f"measure {run.head.label} {run.head.subject}, run {run.uid[:8]}")
        try:
            if carry_out(self._execution(run, trees, known), self.address):
                return self._swept(commit, run.options, "measured", run=run)
        except StoppedError as error:
            return self._swept(commit, run.options, "stopped", run=run, why=str(error))
        except IncompleteError as error:
            return self._impossible(commit, run.options, str(error))
        return self._swept(commit, run.options, "stored", why="by other runs")

    def _execution(self, run: Run, trees: Trees, known: Known) -> Execution:
        return Execution(run, trees, self.store, self.talk, known=known, until=self.until)

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
        return sum(count for count, _ in self.store.busy(run.uid).values()), (*stored.run.problems, *texts)

    def _stored(self, commit: Commit, options: RunOptions) -> Run | None:
        """The newest run of this very question, whole or not."""
        for entry in self.store.runs(repo=self.repository.name):
            run = entry.run
            if run.head.sha == commit.sha and not run.head.dirty and run.base is None and _same(run.options, options):
                return run
        return None

    def _known(self, commit: Commit) -> Known:
        """What other runs say of the commit: that need not be measured again."""
        found: dict[tuple[str, str, str, str], set[Status]] = {}
        with suppress(UsageError):  # nothing is stored of it
            for point in self.store.summaries(self.store.find_revision(self.repository.name, commit.sha)):
                one = point.summary
                key = (one.suite, one.case_key, one.device_class, point.method_digest)
                found.setdefault(key, set()).add(one.status)
        return {key for key, statuses in found.items() if not statuses & {Status.INFRA, Status.UNSTABLE}}

    def _impossible(self, commit: Commit, options: RunOptions, why: str) -> Swept:
        """Stored as a run without jobs, so that it is not tried again and its reason can be read."""
        run = msgspec.structs.replace(self._new_run(commit, options, None), problems=(why,))
        self.store.begin_run(run)
        now_us = time.time_ns() // 1000
        self.store.finish_run(run.uid, state="complete", finished_us=now_us, summaries=[], findings=[])
        return self._swept(commit, options, "impossible", run=run, why=why)

    def _new_run(self, commit: Commit, options: RunOptions, trees: Trees | None) -> Run:
        return Run(
            uid=secrets.token_hex(16),
            repo=self.repository.name,
            head=self.repository.revision(commit.sha),
            base=None,
            base_note=_note(options),
            options=options,
            started_us=time.time_ns() // 1000,
            problems=trees.problems if trees else (),
        )


def _note(options: RunOptions) -> str:
    return f"not asked for (sweep {options.sweep.name if options.sweep else ''})"


def _same(one: RunOptions, other: RunOptions) -> bool:
    """The same question, whatever sweep it was part of."""
    plain = [msgspec.structs.replace(options, seed=0, sweep=None) for options in (one, other)]
    return plain[0] == plain[1]


def _covered(trees: Trees, options: RunOptions, known: Known) -> bool:
    """Whether every selected case is known on some device of the kind that is asked for: no pool is needed to see."""
    there = {(suite, key, digest) for suite, key, _, digest in known}

    def is_known(case: plan.Case) -> bool:
        method = options.methods.get(case.backend, Method()).of(case)
        return (case.suite, case.key, method.digest) in there

    cases = plan.selected(trees, options, "head")
    kinds = (
        {"cpu"}
        if options.device == "cpu"
        else {"cuda"}
        if options.device
        else {c.backend for c in filter(is_known, cases)}
    )
    wanted = [case for case in cases if case.backend in kinds]
    return bool(wanted) and all(map(is_known, wanted))

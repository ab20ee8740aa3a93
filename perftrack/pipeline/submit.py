"""`perftrack submit`: measure head (and base beside it), judge, ask its history, look twice, store, report."""

import secrets
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from perftrack import config
from perftrack.errors import PerftrackError, UsageError
from perftrack.measure.methods import default_method, quick_method
from perftrack.model import Run, RunOptions
from perftrack.pipeline import plan
from perftrack.pipeline.execution import Execution
from perftrack.pipeline.life import remember
from perftrack.pipeline.looking_back import look_back
from perftrack.pipeline.outside import carry_out
from perftrack.pipeline.past import History
from perftrack.pipeline.reports import report_of
from perftrack.pipeline.synthetic import refuse
from perftrack.pipeline.talk import Talk
from perftrack.pipeline.trees import Compared, Trees, export, revisions, revisions_of
from perftrack.report.value import Report
from perftrack.revision import Repository
from perftrack.store import Store, default_url
from perftrack.trailers import Accepted


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the user typed after `perftrack submit`."""

    start: Path
    suites: tuple[str, ...] = ()
    expression: str = ""
    head: str | None = None
    """None: the work tree as it is."""
    base: str = "auto"
    device: str = ""
    rounds: int | None = None
    quick: bool = False
    database: str | None = None
    address: str | None = None
    """Of a Ray cluster; None starts Ray here."""
    resume: str | None = None


def submit(request: Request, talk: Talk) -> Report:
    """Run the whole line and return the report; its `exit_code` is the command's.

    A run that is interrupted keeps what was measured; `resume` finishes it. Raises the errors of `errors`.
    """
    repository = Repository.discover(request.start)
    settings = config.resolve(repository.root)
    url = config.database_url(request.database, settings) or default_url()
    with Store.open(url) as store, tempfile.TemporaryDirectory(prefix="perftrack-") as scratch:
        refuse(store)
        resumed = _resumed(store, request.resume) if request.resume else None
        context = (
            revisions_of(repository, resumed)
            if resumed
            else revisions(repository, request.head, request.base, settings.main_branch)
        )
        with context as compared:
            options = resumed.options if resumed else _options(request, settings)
            trees = export(compared, options.suite_paths, Path(scratch))
            run = resumed or _new_run(repository, compared, options, trees)
        plan.check_selection(trees, options)
        accepted = repository.accepted(run.head, run.base)
        _announce(run, trees, talk, resumed=resumed is not None)
        execution = Execution(run, trees, store, talk, history=History(store, run, repository.line))
        carry_out(execution, request.address)
        return conclude(execution, repository, accepted, Path(scratch), request.address)


def conclude(
    execution: Execution,
    repository: Repository,
    accepted: Sequence[Accepted],
    scratch: Path,
    address: str | None,
) -> Report:
    """Look back from a run that is judged, remember it, and report.

    A look that is broken off takes nothing of the run itself with it: that is remembered all the same, and where it is
    red already the error is only said, for no look could make it better. `--resume` makes the look again.
    """
    store, uid, broken = execution.store, execution.run.uid, None
    try:
        look_back(execution, repository, scratch, address)
    except PerftrackError as error:
        broken = error
    finally:
        # after the looks: a regression's base is that of the run which told of it first, the level that it has left
        remember(store, uid, repository, accepted)
    report = report_of(store, uid)
    if broken is not None:
        if report.exit_code != 1:
            raise broken
        execution.talk.say(f"problem {broken}")
    return report


def _options(request: Request, settings: config.Settings) -> RunOptions:
    make = quick_method if request.quick else default_method
    rounds = request.rounds if request.rounds is not None else settings.rounds
    if rounds < 1:
        raise UsageError(f"--rounds is {rounds}; at least one round is needed")
    return RunOptions(
        suites=request.suites,
        expression=request.expression,
        device=request.device,
        rounds=rounds,
        confirm_rounds=settings.confirm_rounds,
        confirm_s=60 * settings.confirm_minutes,
        suite_paths=settings.suites,
        methods={"cuda": make("cuda"), "cpu": make("cpu")},
        case_timeout_s=settings.case_timeout,
        seed=secrets.randbits(32),
    )


def _resumed(store: Store, text: str) -> Run:
    """The run to go on with; what is judged from samples cannot be judged again without them."""
    uid = store.find_run(text)
    run = store.load_run(uid).run
    if not run.options.rounds:
        raise UsageError(f"run {uid[:8]} is part of another submission ({run.base_note}): resume that one")
    if store.kept(uid):
        raise UsageError(f"run {uid[:8]} is complete and its raw samples have expired: submit its revision anew")
    return run


def _new_run(repository: Repository, compared: Compared, options: RunOptions, trees: Trees) -> Run:
    return Run(
        uid=secrets.token_hex(16),
        repo=repository.name,
        head=compared.head,
        base=compared.base,
        base_note=compared.base_note,
        options=options,
        started_us=_now_us(),
        problems=trees.problems,
    )


def _announce(run: Run, trees: Trees, talk: Talk, *, resumed: bool) -> None:
    talk.say(f"head    {run.head.label} {run.head.subject}")
    talk.say(f"base    {run.base.label} = {run.base_note}" if run.base else f"base    none: {run.base_note}")
    name = run.uid[:8]
    talk.say(f"run     {name}{' resumed' if resumed else ''}  (perftrack submit --resume {name} finishes it)")
    for problem in trees.problems:
        talk.say(f"problem {problem}")


def _now_us() -> int:
    return time.time_ns() // 1000

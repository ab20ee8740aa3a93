"""Which commits a sweep measures: what earlier ones of its name still owe, then what its range asks for."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from perftrack import config
from perftrack.model import Run, RunOptions, Status
from perftrack.pipeline import commits
from perftrack.pipeline.known import LOST, fits, lost, statuses
from perftrack.revision import Commit, Repository
from perftrack.store import Store

LAST_SWEEP = "last-sweep"

TRIES = 3
"""So often is a commit measured on a device that loses some of it; what is lost then too stays without a time."""

_AT_ONCE = 500
"""Runs that the store is asked of together."""

Classes = Mapping[str, set[str]]
"""Device class → how what was measured on it ended: statuses, those of baselines too."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """The chosen commits, most wanted first, of how many, and since when in words."""

    commits: list[Commit]
    of: int
    since: str


def choose(
    repository: Repository, store: Store, name: str, wanted: config.Sweep, questions: Sequence[RunOptions]
) -> Backlog:
    """What the sweep of this name shall measure now; `questions`: what it asks of each commit, one a device."""
    whole = repository.first_parents(wanted.head)
    places = {commit.sha: place for place, commit in enumerate(whole)}
    stored = [entry.run for entry in store.runs(repo=repository.name)]
    runs = [run for run in stored if run.head.sha in places and not run.head.dirty]
    planned = list(dict.fromkeys(sha for run in runs for sha in _part(run, name) if sha in places))
    behind = max((places[sha] for sha in planned), default=None)
    line, since = _range(repository, whole, behind, wanted)
    asked = {*planned, *(commit.sha for commit in line if wanted.fill_gaps)}
    open_ones = [run for run in runs if run.state == "complete" and run.head.sha in asked]
    finished = answered(open_ones, name, questions, _classes(store, open_ones))
    found = commits.gaps(line, finished, wanted.steps) if wanted.fill_gaps else commits.steps(line, wanted.steps)
    owed = [whole[places[sha]] for sha in planned if sha not in finished]
    return Backlog(list({commit.sha: commit for commit in [*owed, *found]}.values()), len(line), since)


def answered(
    runs: Iterable[Run], name: str, questions: Sequence[RunOptions], classes: Mapping[str, Classes]
) -> set[str]:
    """Ids of the commits of which each question is answered by complete runs, the newest first.

    By the sweep `name` itself on the device in question, or by a run that asked for no less on one that fits. What the
    machine lost is no answer, unless it was tried often enough. `classes`: of each run, by its uid.
    """
    of_commits: dict[str, list[Run]] = {}
    for run in runs:
        of_commits.setdefault(run.head.sha, []).append(run)
    return {
        sha
        for sha, its in of_commits.items()
        if all(_by_itself(its, name, one, classes) or _by_others(its, one, classes) for one in questions)
    }


def same(one: RunOptions, other: RunOptions) -> bool:
    """The same question, whatever sweep it was part of."""
    return plain(one) == plain(other)


def plain(options: RunOptions) -> RunOptions:
    """The question alone."""
    return msgspec.structs.replace(options, seed=0, sweep=None)


def _part(run: Run, name: str) -> tuple[str, ...]:
    part = run.options.sweep
    return part.commits if part and part.name == name else ()


def _by_itself(runs: Iterable[Run], name: str, question: RunOptions, classes: Mapping[str, Classes]) -> bool:
    """What the newest run lost, the next one is asked for: older ones need not be looked at."""
    own = [run for run in runs if _part(run, name) and run.options.device == question.device]
    return bool(own) and (len(own) >= TRIES or not _lost(classes.get(own[0].uid, {}).values()))


def _by_others(runs: Iterable[Run], question: RunOptions, classes: Mapping[str, Classes]) -> bool:
    for run in runs:
        ended = [
            statuses
            for name, statuses in classes.get(run.uid, {}).items()
            if (fits(name, question.device) if question.device else not run.options.device)
        ]
        if ended and _contains(run.options, question) and not _lost(ended):
            return True
    return False


def _contains(options: RunOptions, question: RunOptions) -> bool:
    """Whether who asked for `options` asked for all cases of `question` too, by the same methods."""
    suites = not options.suites or (question.suites and set(question.suites) <= set(options.suites))
    return bool(suites) and (
        options.expression in ("", question.expression)
        and (options.suite_paths, options.methods) == (question.suite_paths, question.methods)
    )


def _lost(ended: Iterable[set[str]]) -> bool:
    return any(status.value in statuses for statuses in ended for status in LOST)


def _classes(store: Store, runs: Sequence[Run]) -> dict[str, Classes]:
    """By uid of the run."""
    found: dict[str, dict[str, set[str]]] = {}
    for start in range(0, len(runs), _AT_ONCE):
        uids = [run.uid for run in runs[start : start + _AT_ONCE]]
        for uid, device_class, status in statuses(store, uids):
            found.setdefault(uid, {}).setdefault(device_class, set()).add(status)
        for gone in lost(store, uids):
            found.setdefault(gone.run_uid, {}).setdefault(gone.device_class, set()).add(Status.INFRA.value)
    return dict(found)


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

"""Tracks: the stored times of one variant of a case, one a commit, as the rules of the history read them."""

import math
import time
from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import Any, TypedDict

import msgspec
import sqlalchemy as sa

from perftrack.declare import NEVER_GATED
from perftrack.judge import life
from perftrack.judge.life import CaseId, Kind, State
from perftrack.judge.marks import marked_changes
from perftrack.store import aliases, glob, read, regressions
from perftrack.store.columns import is_one_of
from perftrack.store.lines import Lines, main_lines
from perftrack.store.schema import (
    case_alias,
    device_class,
    environment,
    kernel_case,
    mark,
    method,
    result,
    revision,
    run,
    run_side,
    series,
    setting,
    suite,
)
from perftrack.store.schema import device as device_table
from perftrack.store.value import StoredRevision


class Track(msgspec.Struct, frozen=True, kw_only=True):
    """One variant of one case on one device class, oldest commit first; all tuples are equally long."""

    repo: str
    suite: str
    case_key: str
    device_class: str
    variant: str
    revisions: tuple[StoredRevision, ...]
    times_s: tuple[float | None, ...]
    """None: measured, without a time."""
    segments: tuple[str, ...]
    """Identity of environment and method, `environment/method`; they may differ where there is a time only."""
    cards: tuple[str, ...]
    """UUID of the device that gave the time; empty where it is unknown."""
    steps: tuple[int, ...] = ()
    """Where a slowdown began that is acknowledged, or infra."""
    invalid: tuple[int, ...] = ()
    """Where a slowdown was remembered that is none."""

    @property
    def borders(self) -> list[int]:
        """Where another environment or method starts: the first commit of it that has a time."""
        known = [at for at, seconds in enumerate(self.times_s) if seconds is not None]
        return [at for before, at in pairwise(known) if self.segments[before] != self.segments[at]]

    @property
    def values(self) -> list[float]:
        """The times as the rules take them: NaN where there is none."""
        return [math.nan if seconds is None else seconds for seconds in self.times_s]

    def changes(self) -> list[tuple[int, int]]:
        """Where a new level begins, and whether it lies higher (+1, slower) or lower (-1): `judge.marked_changes`."""
        return marked_changes(
            self.values, borders=self.borders, cards=self.cards, steps=self.steps, invalid=self.invalid
        )


class Chosen(TypedDict, total=False):
    """Which tracks, and of which commits: the arguments of `tracks`."""

    device: str
    variant: str
    repo: str | None
    lines: Lines | None


_IS_CANDIDATE = sa.and_(series.c.variant != series.c.baseline, series.c.variant.not_in(NEVER_GATED))

_SHOWN = sa.func.coalesce(case_alias.c.current_id, series.c.case_id)
"""The case under whose name it is shown today."""

_QUESTION = (
    sa.select(
        _SHOWN.label("case_id"),
        series.c.device_class_id,
        series.c.variant,
        run_side.c.revision_id,
        result.c.time_s,
        setting.c.environment_id,
        series.c.method_id,
        setting.c.device_id,
    )
    .join_from(series, result, result.c.series_id == series.c.id)
    .join(setting, result.c.setting_id == setting.c.id)
    .join(run_side, result.c.run_side_id == run_side.c.id)
    .join(run, run_side.c.run_id == run.c.id)
    .join(revision, run_side.c.revision_id == revision.c.id)
    .join(case_alias, case_alias.c.case_id == series.c.case_id, isouter=True)
    .where(revision.c.dirty == 0)
    .order_by(
        _SHOWN,
        series.c.device_class_id,
        series.c.variant,
        revision.c.repo,
        revision.c.position.is_(None),
        revision.c.position,
        revision.c.committed_us,
        revision.c.id,
        result.c.time_s.is_(None),
        run_side.c.side.desc(),
        run.c.started_us,
        run.c.id,
    )
)


def tracks(
    connection: sa.Connection,
    *,
    of: str = "*",
    device: str = "",
    variant: str = "",
    repo: str | None = None,
    lines: Lines | None = None,
) -> list[Track]:
    """Of a suite of the name `of`, or of cases whose key it is or matches; by repository, suite, case, class, variant.

    `device` is a device class or a pattern with * and ?, empty: any; no `variant` means every candidate, no `repo`
    every repository. A track has commits of one line of history: of those that `lines` names for its repository, else
    of `lines.main_lines`. Uncommitted changes are no part of a history. Of a commit that was measured several times the
    first time counts that it was the head, as when it came; where it never was, the first time as a base. A renamed
    case is found by either name and is one track, under that of today.
    """
    names = _Names(connection)
    keys = set(glob.matching(of, {key for _, key in names.cases.values()}))
    renamed = aliases.names(connection)
    keys |= {renamed[old] for old in renamed if old[1] in keys}
    cases = [number for number, name in names.cases.items() if name[0] == of or renamed.get(name, name[1]) in keys]
    classes = set(glob.matching(device or "*", names.classes.values()))
    where = [
        is_one_of(series.c.case_id, cases),
        is_one_of(series.c.device_class_id, [number for number, name in names.classes.items() if name in classes]),
        series.c.variant == variant if variant else _IS_CANDIDATE,
    ]
    known, marked = _of_lines(connection, repo, lines or {}), _marked(connection)
    rows = [row for row in connection.execute(_QUESTION.where(*where)) if row[3] in known]
    made: list[Track] = []
    for (case, of_class, of_variant, of_repo), part in groupby(rows, lambda row: (*row[:3], known[row[3]].repo)):
        one_a_commit = [next(measured) for _, measured in groupby(part, lambda row: row[3])]
        made.append(_track(names, (case, of_class, of_variant, of_repo), one_a_commit, known, marked))
    return sorted(made, key=lambda one: (one.repo, one.suite, one.case_key, one.device_class, one.variant))


def _of_lines(connection: sa.Connection, repo: str | None, lines: Lines) -> dict[int, StoredRevision]:
    """By row number, the revisions that histories are made of."""
    stored = read.revisions(connection, repo, "")
    whole = main_lines(connection, [one for one in stored if one.repo not in lines]) | dict(lines)
    return {one.id: one for one in stored if not one.revision.dirty and one.revision.sha in whole[one.repo]}


class _Names:
    """Of what a row names by number."""

    def __init__(self, connection: sa.Connection) -> None:
        question = sa.select(kernel_case.c.id, suite.c.name, kernel_case.c.key).join(
            suite, kernel_case.c.suite_id == suite.c.id
        )
        self.cases: dict[int, tuple[str, str]] = {row[0]: (row[1], row[2]) for row in connection.execute(question)}
        self.classes = _by_number(connection, device_class.c.id, device_class.c.name)
        self.environments = _by_number(connection, environment.c.id, environment.c.digest)
        self.methods = _by_number(connection, method.c.id, method.c.digest)
        self.cards = _by_number(connection, device_table.c.id, device_table.c.uuid)


def _by_number(connection: sa.Connection, number: sa.Column[int], name: sa.Column[str]) -> dict[int, str]:
    return {row[0]: row[1] for row in connection.execute(sa.select(number, name))}


_Marked = dict[tuple[str, str, CaseId], dict[str, State]]
"""(repository, device class, case) → commit → how a slowdown that began there stands, where somebody said."""


def _marked(connection: sa.Connection) -> _Marked:
    found: _Marked = {}
    now_us, renamed = time.time_ns() // 1000, aliases.names(connection)
    for one in regressions.regressions(connection) if _has_marks(connection) else ():
        for case in one.cases() if one.kind is Kind.SLOWER else ():
            state = life.standing(one, case, now_us).state
            shown = case._replace(case_key=renamed.get(case[:2], case.case_key))
            found.setdefault((one.repo, one.device_class, shown), {})[one.found.sha] = state
    return found


def _has_marks(connection: sa.Connection) -> bool:
    return connection.execute(sa.select(mark.c.regression_id).limit(1)).first() is not None


def _track(
    names: _Names, key: tuple[Any, ...], rows: Sequence[Any], known: dict[int, StoredRevision], marked: _Marked
) -> Track:
    suite_name, case_key = names.cases[key[0]]
    said = marked.get((key[3], names.classes[key[1]], CaseId(suite_name, case_key, key[2])), {})
    states = [said.get(known[row[3]].revision.sha) for row in rows]
    return Track(
        repo=key[3],
        suite=suite_name,
        case_key=case_key,
        device_class=names.classes[key[1]],
        variant=key[2],
        revisions=tuple(known[row[3]] for row in rows),
        times_s=tuple(row[4] for row in rows),
        segments=tuple(f"{names.environments.get(row[5], '')}/{names.methods[row[6]]}" for row in rows),
        cards=tuple(names.cards.get(row[7], "") for row in rows),
        steps=tuple(at for at, state in enumerate(states) if state in (State.ACKNOWLEDGED, State.INFRA)),
        invalid=tuple(at for at, state in enumerate(states) if state is State.INVALID),
    )

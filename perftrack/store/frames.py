"""The store as pandas frames: `perftrack.open(url)`.

Rules of every frame: the unit is in the column's name and never varies by row; an empty frame has the same
columns and dtypes as a full one; nothing is sampled or left out silently; commits are ordered by
`commit_seq`, the first-parent distance from the root, and those whose distance is unknown come last.
"""

import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import msgspec
import pandas as pd
import sqlalchemy as sa

from perftrack.declare import NEVER_GATED
from perftrack.judge.value import Finding, Interval
from perftrack.model import Method
from perftrack.store import (
    frames_accessor,
    frames_changes,
    frames_columns,
    frames_regressions,
    frames_rounds,
    frames_runs,
    glob,
    read,
    steps,
    unpaired,
)
from perftrack.store.columns import is_one_of
from perftrack.store.frames_columns import UNPLACED, frame
from perftrack.store.schema import (
    declaration,
    device,
    device_class,
    environment,
    finding,
    kernel_case,
    method,
    resources,
    result,
    revision,
    run,
    series,
    suite,
)
from perftrack.store.store import Store
from perftrack.store.value import StoredSummary

pd.api.extensions.register_dataframe_accessor("perftrack")(frames_accessor.Charts)

_Where = Sequence[sa.ColumnElement[bool]]
_Key = tuple[str, str, str, str]

_branch = sa.case((result.c.side == "head", run.c.head_branch), else_=run.c.base_branch)

_RESULTS: Mapping[str, sa.ColumnElement[Any]] = {
    "repo": revision.c.repo,
    "commit": revision.c.sha,
    "commit_seq": sa.func.coalesce(revision.c.position, UNPLACED),
    "dirty": revision.c.dirty,
    "commit_time": revision.c.committed_us,
    "measured_at": run.c.started_us,
    "branch": _branch,
    "suite": suite.c.name,
    "case": kernel_case.c.key,
    "params": declaration.c.params,
    "device": device_class.c.name,
    "variant": series.c.variant,
    "baseline": series.c.baseline,
    "verdict": sa.func.coalesce(finding.c.verdict, ""),
    "cause": sa.func.coalesce(finding.c.cause, ""),
    "accuracy": sa.func.coalesce(finding.c.accuracy, ""),
    "run_id": run.c.uid,
    "device_uuid": device.c.uuid,
    "node": device.c.node,
    "env_key": environment.c.digest,
    "method_key": method.c.digest,
    "median_us": result.c.time_s,
    "p10_us": result.c.q10_s,
    "p90_us": result.c.q90_s,
    "baseline_us": result.c.baseline_s,
    "gbps": result.c.bandwidth_bytes_per_s,
    "tflops": result.c.flops_per_s,
    **steps.VECTORISATION,
    "host_us": result.c.host_s,
    "n_samples": result.c.samples,
    "cold": method.c.document,
    **{name: resources.c[name] for name in ("registers", "local_bytes", "shared_bytes", "launches", "occupancy")},
    "code_digest": resources.c.code_digest,
}
"""Columns of `results` that have another name than in the table `result`."""

_SELECT_RESULTS = read.SUMMARIES.join(
    finding,
    sa.and_(
        finding.c.run_id == result.c.run_id,
        finding.c.case_id == series.c.case_id,
        finding.c.device_class_id == series.c.device_class_id,
        finding.c.variant == series.c.variant,
        result.c.side == "head",
    ),
    isouter=True,
).with_only_columns(
    *((_RESULTS[name] if name in _RESULTS else result.c[name]).label(name) for name in frames_columns.RESULTS)
)

_ORDER = (
    revision.c.position.is_(None),
    revision.c.position,
    revision.c.committed_us,
    revision.c.id,
    run.c.started_us,
    run.c.id,
    result.c.series_id,
    result.c.side.desc(),
)
"""Topological; then oldest measurement first, head before base."""


class Database:
    """Read-only frames of one store. `case` and `device` take patterns with * and ?."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<perftrack database {self._store.label}>"

    def close(self) -> None:
        """Give the connections back."""
        self._store.close()

    def results(
        self,
        *,
        case: str | None = None,
        suite: str | None = None,
        device: str | None = None,
        variant: str | None = None,
        since: str | None = None,
        branch: str | None = None,
        last: int | None = None,
        repo: str | None = None,
    ) -> pd.DataFrame:
        """One row for each run × case × device class × variant × side, oldest commit first.

        `since` is a commit's first digits and includes it; `last` keeps that many of the newest commits that
        have a result among the selected.
        """
        where = self._where(case=case, suite_name=suite, device_name=device, variant=variant, branch=branch)
        if since is not None or last is not None or repo is not None:
            where.append(self._among_revisions(where, since=since, last=last, repo=repo))
        question = _SELECT_RESULTS.where(*where).order_by(*_ORDER)
        names = list(frames_columns.RESULTS)
        rows = self._store.read(lambda connection: connection.execute(question).all())
        cold: dict[str, bool] = {}
        at = names.index("cold")
        for document in {row[at] for row in rows}:
            cold[document] = msgspec.json.decode(document, type=Method).cache == "cold"
        return frame(frames_columns.RESULTS, ((*row[:at], cold[row[at]], *row[at + 1 :]) for row in rows))

    def _where(
        self,
        *,
        case: str | None,
        suite_name: str | None,
        device_name: str | None,
        variant: str | None,
        branch: str | None,
    ) -> list[sa.ColumnElement[bool]]:
        where: list[sa.ColumnElement[bool]] = []
        if case is not None:
            where.append(self._matches(series.c.case_id, kernel_case, "key", case))
        if device_name is not None:
            where.append(self._matches(series.c.device_class_id, device_class, "name", device_name))
        for column, wanted in ((suite.c.name, suite_name), (series.c.variant, variant), (_branch, branch)):
            if wanted is not None:
                where.append(column == wanted)
        return where

    def _matches(self, number: sa.ColumnElement[int], table: sa.Table, name: str, pattern: str) -> Any:
        """Whether `number` is one of the rows of `table` whose name matches."""
        question = sa.select(table.c[name], table.c.id)
        named = self._store.read(lambda connection: [tuple(row) for row in connection.execute(question)])
        fitting = set(glob.matching(pattern, [text for text, _ in named]))
        return is_one_of(number, [each for text, each in named if text in fitting])

    def _among_revisions(
        self, where: _Where, *, since: str | None, last: int | None, repo: str | None
    ) -> sa.ColumnElement[bool]:
        question = read.SUMMARIES.where(*where).with_only_columns(result.c.revision_id).distinct()
        found = self._store.read(lambda connection: read.revisions_of(connection, question))
        if repo is not None:
            found = [one for one in found if one.repo == repo]
        if since is not None:
            first = self._store.find_revision(repo, since).order
            found = [one for one in found if one.order >= first]
        if last is not None:
            found = found[-last:] if last > 0 else []
        return is_one_of(result.c.revision_id, [one.id for one in found])

    def speedups(
        self,
        *,
        case: str | None = None,
        suite: str | None = None,
        device: str | None = None,
        variant: str = "fused",
        since: str | None = None,
        branch: str | None = None,
        last: int | None = None,
        repo: str | None = None,
    ) -> pd.DataFrame:
        """Baseline time ÷ time of one variant: (suite, case, device) × (commit_seq, commit); NaN = not measured.

        Columns are in topological order; their second level tells commits of one `commit_seq` apart (branches,
        dirty trees). Of several measurements of one commit the newest counts.
        """
        long = self.results(
            case=case, suite=suite, device=device, variant=variant, since=since, branch=branch, last=last, repo=repo
        )
        commit = long["commit"] + long["dirty"].map({True: "+dirty", False: ""}).astype("str")
        rows, columns = ["suite", "case", "device"], ["commit_seq", "commit"]
        cells = long[["commit_seq", "case", "speedup"]].assign(
            suite=long["suite"].astype("str"), device=long["device"].astype("str"), commit=commit
        )
        newest = cells.drop_duplicates([*rows, *columns], keep="last")
        in_order = pd.MultiIndex.from_frame(cells[columns].drop_duplicates())
        wide = newest.pivot(index=rows, columns=columns, values="speedup")  # noqa: PD010 (pivot_table drops empty rows)
        return wide.reindex(columns=in_order).astype("float64")

    def compare(self, base: str, head: str, *, device: str | None = None, repo: str | None = None) -> pd.DataFrame:
        """Two stored revisions (first digits of commits): one row a candidate, by (suite, case, device, variant).

        `change_pct` is that of the speedup (positive: higher), `time_change_pct` that of the variant's own time
        (positive: slower), `error_change_pct` that of the relative L2 error (positive: less accurate; NaN from
        an error of 0). A row is `paired` where a run measured both side by side: then numbers, verdict and `accuracy`
        are that run's. Otherwise the verdict is drawn, cautiously, from the newest summary of each, and `accuracy` is
        empty: it takes the same data on both sides.
        """
        revisions = [self._store.find_revision(repo, name) for name in (base, head)]
        before, after = (_newest(self._store.summaries(one, device)) for one in revisions)
        judged = {
            (one.suite, one.case_key, one.device_class, one.variant): one
            for one in self._store.findings(revisions[0], revisions[1])
        }
        rows: list[tuple[Any, ...]] = []
        for key in sorted({*before, *after}):
            values = _paired(judged[key]) if key in judged else _unpaired(before.get(key), after.get(key))
            rows.append((*key, *values))
        return frame(frames_columns.COMPARE, rows).set_index(["suite", "case", "device", "variant"])

    def history(self, case: str, *, device: str | None = None, variant: str | None = None) -> pd.DataFrame:
        """All results of one case, by `commit_seq`; the other columns are those of `results`."""
        return self.results(case=case, device=device, variant=variant).set_index("commit_seq")

    def rounds(self, run: str = "latest") -> pd.DataFrame:
        """Every measurement of one run (`latest`, or the first digits of its id): a row an attempt × side × variant.

        `median_us` is over the good blocks, from samples of one process on one device (`device_uuid`); `canary_us`,
        `clock_mhz` and `bad_blocks` are those of the whole job, as are `started_at`, `wall_s` and `timed_s`;
        `variant_clock_mhz` and `build_s` are the variant's own.
        `counts` is False for an attempt that was repeated because the machine failed or was disturbed.
        """
        latest = self._store.latest_run() if run == "latest" else self._store.find_run(run)
        if latest is None:
            return frame(frames_columns.ROUNDS, ())
        attempts = self._store.attempts(latest)
        made = (row for attempt, counts in attempts for row in frames_rounds.rows(latest, attempt, counts=counts))
        return frame(frames_columns.ROUNDS, made)

    def change_points(
        self,
        *,
        case: str | None = None,
        suite: str | None = None,
        device: str | None = None,
        variant: str | None = None,
        repo: str | None = None,
    ) -> pd.DataFrame:
        """One row for each commit at which the times of a candidate variant reached another level, by series, in order.

        `direction` is +1 where times got longer, -1 where shorter; `median_us_before` and `median_us_after` are those
        of the two levels, of `commits_before` and `commits_after` commits with a time, `change_pct` is after ÷ before,
        less 1. Found anew at each call by `perftrack.judge.change_points` over the committed revisions, one value a
        commit: the first time that it was measured as a head. Across a change of environment or method none is found.
        """
        tracks = self._store.tracks(case or "*", device=device or "", variant=variant or "")
        chosen = [one for one in tracks if suite in {None, one.suite} and repo in {None, one.repo}]
        return frame(frames_columns.CHANGE_POINTS, (row for one in chosen for row in frames_changes.rows(one)))

    def regressions(self, *, repo: str | None = None) -> pd.DataFrame:
        """One row for each regression × case × variant, the oldest regression first, as it stands now.

        `regression_id` counts the problems: one commit, one device class, one kind.
        """
        now_us = time.time_ns() // 1000
        known = self._store.regressions(repo=repo)
        return frame(frames_columns.REGRESSIONS, (row for one in known for row in frames_regressions.rows(one, now_us)))

    def devices(self) -> pd.DataFrame:
        """Every device that ever did a job, by class and UUID."""
        return frame(frames_columns.DEVICES, map(frames_runs.device, self._store.devices()))

    def runs(self, *, last: int | None = None, repo: str | None = None) -> pd.DataFrame:
        """The newest runs, the newest first, with the number of findings of each verdict."""
        return frame(frames_columns.RUNS, map(frames_runs.run, self._store.runs(last=last, repo=repo)))


def _newest(points: Sequence[StoredSummary]) -> dict[_Key, StoredSummary]:
    """The newest summary of each candidate; of a commit compared with itself, the head's."""
    found: dict[_Key, StoredSummary] = {}
    for point in sorted(points, key=lambda point: (point.measured_us, point.summary.side == "head")):
        one = point.summary
        if one.variant not in {*NEVER_GATED, point.baseline}:
            found[one.suite, one.case_key, one.device_class, one.variant] = point
    return found


def _paired(found: Finding) -> tuple[Any, ...]:
    return (
        found.base_s,
        found.head_s,
        found.baseline_base_s,
        found.baseline_head_s,
        found.speedup_base,
        found.speedup_head,
        *_changes(found.speedup_base, found.speedup_head, found.change),
        found.verdict.value,
        found.cause.value,
        True,
        found.message,
        *_errors(found.error_base, found.error_head),
        found.accuracy.value,
    )


def _unpaired(base: StoredSummary | None, head: StoredSummary | None) -> tuple[Any, ...]:
    before, after = (point.summary if point else None for point in (base, head))
    speedups = [one.speedup.point if one and one.speedup else None for one in (before, after)]
    verdict, cause = unpaired.verdict(base, head)
    return (
        before.time_s if before else None,
        after.time_s if after else None,
        before.baseline_s if before else None,
        after.baseline_s if after else None,
        *speedups,
        *_changes(speedups[0], speedups[1], unpaired.change(before, after) if before and after else None),
        verdict.value,
        cause.value,
        False,
        after.message if after else "",
        *_errors(before.error_l2 if before else None, after.error_l2 if after else None),
        "",
    )


def _errors(before: float | None, after: float | None) -> tuple[float | None, ...]:
    """Both errors and the relative change, which an error of 0 has not."""
    return before, after, after / before - 1 if before and after is not None else None


def _changes(before: float | None, after: float | None, time: Interval | None) -> tuple[float | None, ...]:
    """Relative changes: of the speedup; of the variant's time with its bounds."""
    speedup = after / before - 1 if before and after else None
    return (speedup, time.point - 1, time.low - 1, time.high - 1) if time else (speedup, None, None, None)

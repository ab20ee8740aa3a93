"""The store as pandas frames: `perftrack.open(url)`.

Rules of every frame: the unit is in the column's name and never varies by row; an empty frame has the same
columns and dtypes as a full one; nothing is sampled or left out silently; commits are ordered by
`commit_seq`, the first-parent distance from the root, and those whose distance is unknown come last.
"""

import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, Self, Unpack

import pandas as pd

from perftrack.errors import UsageError
from perftrack.store import (
    frames_accessor,
    frames_changes,
    frames_columns,
    frames_compare,
    frames_latest,
    frames_regressions,
    frames_results,
    frames_rounds,
    frames_runs,
    frames_speedups,
    frames_table,
)
from perftrack.store.frames_columns import UNPLACED, frame
from perftrack.store.frames_filters import Filters
from perftrack.store.store import Store

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["UNPLACED", "Database", "Filters"]

pd.api.extensions.register_dataframe_accessor("perftrack")(frames_accessor.Charts)


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

    def results(self, *, columns: Sequence[str] | None = None, **filters: Unpack[Filters]) -> pd.DataFrame:
        """One row for each run × case × device class × variant × side, oldest commit first.

        The filters are those of `Filters`: case, suite, device, variant, branch, since, last, repo, run. All rows that
        they leave are there, however many; `iter_results` gives them in parts. A renamed case has its name of today.
        `columns` names those that are wanted: a few are read in a fraction of the time and memory of all.
        """
        return self._store.read(lambda _: frames_table.results(self._store, columns, filters))

    def iter_results(self, *, batch_rows: int = 65_536, **filters: Unpack[Filters]) -> "Iterator[pa.RecordBatch]":
        """The rows of `results` as Arrow record batches of at most `batch_rows`, all of one instant, none left out.

        Needs no more memory than a batch, and pyarrow (`pip install 'perftrack[arrow]'`). Words are plain strings,
        since a batch does not know the categories of the next; the schema's fields say their unit. Close the iterator,
        or take all of it: until then the database keeps what it read from.
        """
        from perftrack.store import frames_arrow  # noqa: PLC0415 - pyarrow is optional

        return frames_arrow.batches(self._parts(batch_rows, filters))

    def export(self, file: BinaryIO, kind: Literal["csv", "parquet", "arrow"], **filters: Unpack[Filters]) -> int:
        """Write the rows of `results` to a file; how many there were. The columns' names say their unit.

        Parquet and Arrow (the stream format) need pyarrow, and have the schema's name and the units as metadata.
        """
        from perftrack.store import frames_files  # noqa: PLC0415 - only here

        return frames_files.write(file, kind, self._parts(65_536, filters))

    def _parts(self, size: int, filters: Filters) -> "Iterator[Sequence[Sequence[Any]]]":
        """Rows in the store's units. What is wrong with the filters is said now, not at the first row."""
        if size < 1:
            raise UsageError(f"batch_rows is {size}; at least one row is needed")
        parts = self._store.stream(frames_results.question(self._store, **filters), size)
        return (list(frames_results.decoded(part)) for part in parts)

    def sql(self, query: str) -> pd.DataFrame:
        """What one SELECT of yours gives, in the types that pandas finds; UsageError for anything that writes.

        The views `results` and `findings` name everything; units are in the names, times in seconds.
        """
        names, rows = self._store.ask(query)
        return pd.DataFrame.from_records(list(rows), columns=names)

    def speedups(self, **filters: Unpack[Filters]) -> pd.DataFrame:
        """Baseline time ÷ time of one variant: (suite, case, device) × (commit_seq, commit); NaN = not measured.

        Columns are in topological order; their second level tells commits of one `commit_seq` apart (branches,
        dirty trees). Of several measurements of one commit the newest counts. The filters are those of `results`;
        `variant` is `fused` where nothing else is said.
        """
        asked = Filters(variant="fused")
        asked.update(filters)
        return frames_speedups.speedup(self.results(**asked))

    def latest(self, base: str | None = None, **filters: Unpack[Filters]) -> pd.DataFrame:
        """The newest result of every series, by (suite, case, device, variant), with its commit and status.

        Beside it are `median_us_base`, `speedup_base` and `time_change_pct` (positive: slower) against the newest
        result of the commit `base` (first digits); NaN where that has none, or no base is named. Newest is the last in
        topological order, of one commit the run that started last. The filters are those of `results`.
        """
        of = None if base is None else self._store.find_revision(filters.get("repo"), base)
        return self._store.read(lambda _: frames_latest.latest(self._store, of, filters))

    def compare(self, base: str, head: str, *, device: str | None = None, repo: str | None = None) -> pd.DataFrame:
        """Two stored revisions (first digits of commits): one row a candidate, by (suite, case, device, variant).

        `change_pct` is that of the speedup (positive: higher), `time_change_pct` that of the variant's own time
        (positive: slower), `error_change_pct` that of the relative L2 error (positive: less accurate; NaN from
        an error of 0). A row is `paired` where a run measured both side by side: then numbers, verdict and `accuracy`
        are that run's. Otherwise the verdict is drawn, cautiously, from the newest summary of each, and `accuracy` is
        empty: it takes the same data on both sides.
        """
        revisions = [self._store.find_revision(repo, name) for name in (base, head)]
        before, after = (self._store.summaries(one, device) for one in revisions)
        rows = frames_compare.rows(before, after, self._store.findings(revisions[0], revisions[1]))
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
        kept = self._store.kept(latest)
        made = (
            row
            for attempt, counts in self._store.attempts(latest)
            for row in frames_rounds.rows(latest, attempt, kept, counts=counts)
        )
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
        less 1. Found anew at each call by `perftrack.judge.change_points` over the main line of history as the database
        knows it (uncommitted changes and other branches are left out), one value a commit: the first time that it was
        measured as a head. Across a change of environment or method none is found.
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

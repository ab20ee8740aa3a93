"""The small tables of the frame `results`: each row read once, and where every result has its own."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import sqlalchemy as sa

from perftrack.store import aliases, frames_filters, wide
from perftrack.store import frames_numbers as numbers
from perftrack.store.columns import is_among
from perftrack.store.frames_columns import UNPLACED
from perftrack.store.schema import (
    declaration,
    device,
    device_class,
    environment,
    extent,
    kernel_case,
    method,
    resources,
    revision,
    run,
    run_side,
    series,
    setting,
    suite,
)
from perftrack.store.store import Store
from perftrack.store.written import ROWS, Question, filled

Places = npt.NDArray[np.intp]

SIDES = (
    sa.select(
        run_side.c.id,
        run_side.c.run_id.label("run_number"),
        run_side.c.revision_id.label("revision_number"),
        run_side.c.side,
        revision.c.repo,
        revision.c.sha.label("commit"),
        sa.func.coalesce(revision.c.position, UNPLACED).label("commit_seq"),
        revision.c.dirty,
        revision.c.committed_us.label("commit_time"),
        run.c.started_us.label("measured_at"),
        run.c.uid.label("run_id"),
        frames_filters.BRANCH.label("branch"),
    )
    .join_from(run_side, run, run_side.c.run_id == run.c.id)
    # as a sum, so that nobody begins with all revisions
    .join(revision, run_side.c.revision_id + 0 == revision.c.id)
    .order_by(
        revision.c.position.is_(None),
        revision.c.position,
        revision.c.committed_us,
        revision.c.id,
        run.c.started_us,
        run.c.id,
        run_side.c.side.desc(),
    )
)
"""In the order of results: topological; then oldest measurement first, head before base."""

_baseline = series.alias("baseline_series")

SERIES = aliases.beside(
    sa.select(
        series.c.id,
        sa.func.coalesce(_baseline.c.id, -1).label("baseline_id"),
        suite.c.name.label("suite"),
        aliases.KEY.label("case"),
        device_class.c.name.label("device"),
        series.c.variant,
        series.c.baseline,
        method.c.digest.label("method_key"),
        method.c.document.label("cold"),
    )
    .join_from(series, kernel_case, series.c.case_id == kernel_case.c.id)
    .join(suite, kernel_case.c.suite_id == suite.c.id)
    .join(device_class, series.c.device_class_id == device_class.c.id)
    .join(method, series.c.method_id == method.c.id)
    .join(_baseline, wide.is_baseline(_baseline), isouter=True)
).order_by(series.c.id)
"""`baseline_id` is the series of the baseline variant, -1 where there is none."""

SETTINGS = (
    sa.select(
        setting.c.id,
        declaration.c.params,
        device.c.uuid.label("device_uuid"),
        device.c.node,
        environment.c.digest.label("env_key"),
        *(resources.c[name] for name in ("registers", "local_bytes", "shared_bytes", "launches", "occupancy")),
        resources.c.code_digest,
        *(setting.c[name] for name in ("mode", "cached", "expected_gain")),
        *(setting.c[name] for name in ("bytes_min", "flops", "peak_bytes_per_s")),
    )
    .join_from(setting, declaration, setting.c.declaration_id == declaration.c.id)
    .join(resources, setting.c.resources_id == resources.c.id)
    .join(device, setting.c.device_id == device.c.id, isouter=True)
    .join(environment, setting.c.environment_id == environment.c.id, isouter=True)
)

EXTENTS = sa.select(extent.c.id, extent.c.samples, extent.c.rounds, extent.c.bad_blocks)

TABLES: Mapping[str, sa.Select[*tuple[Any, ...]]] = {
    "run_side_id": SIDES,
    "series_id": SERIES,
    "setting_id": SETTINGS,
    "extent_id": EXTENTS,
}
"""By the column of `result` that has the number of their row."""

_IDS = {"run_side_id": run_side.c.id, "series_id": series.c.id, "setting_id": setting.c.id, "extent_id": extent.c.id}

_NEEDED: Mapping[str, Sequence[str]] = {
    "run_side_id": ("run_number", "revision_number", "side"),
    "series_id": ("baseline_id",),
    "setting_id": ("expected_gain", "bytes_min", "flops", "peak_bytes_per_s"),
    "extent_id": ("samples", "rounds", "bad_blocks"),
}
"""Columns of theirs that order results, or that values are made of."""


class Dimension:
    """Rows of a small table that occur, and where each result has its own."""

    def __init__(self, store: Store, number: str, column: numbers.Floats, wanted: Iterable[str]) -> None:
        """Of the table that the column `number` of `result` refers to, as far as the wanted columns need it."""
        self._names, question = _narrowed(number, frozenset(wanted))
        of = numbers.ids(column)
        text = filled(store.dialect, question, str(is_among(_IDS[number], numbers.distinct(of))))
        self.rows: Sequence[Any] = store.read(lambda connection: connection.exec_driver_sql(text).all())
        self.place: Places = numbers.places(of, [row[0] for row in self.rows])

    def values(self, name: str) -> list[Any]:
        """Of each row."""
        at = self._names.index(name)
        return [row[at] for row in self.rows]

    def ids(self) -> npt.NDArray[np.int64]:
        """The number of each row; of its place -1, for nothing, it is -1 too."""
        return np.array([*(row[0] for row in self.rows), -1], np.int64)

    def floats(self, name: str) -> numbers.Floats:
        """Of each result; NaN for NULL."""
        return np.array([*self.values(name), None], np.float64)[self.place]


def _names_of(question: Question) -> list[str]:
    return [column.name for column in question.selected_columns]


@lru_cache(maxsize=256)
def _narrowed(number: str, wanted: frozenset[str]) -> tuple[list[str], Question]:
    whole = TABLES[number]
    names = ["id", *(name for name in _names_of(whole) if name in {*_NEEDED[number], *wanted})]
    return names, whole.with_only_columns(*(whole.selected_columns[name] for name in names)).where(ROWS)

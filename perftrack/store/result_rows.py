"""Summaries as rows of `result` and `result_extra`, with the small rows that they refer to."""

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import msgspec
import sqlalchemy as sa

from perftrack.judge.value import Summary
from perftrack.model import Traffic
from perftrack.store import narrow, rows
from perftrack.store.dimensions import Dimensions, SeriesKey
from perftrack.store.inserting import insert_tuples
from perftrack.store.schema import result, result_extra

Row = tuple[Any, ...]

_FACTS = (*narrow.KEY, "setting_id", "extent_id", *narrow.FACTS)
_EXTRAS = (*narrow.KEY, "message", *narrow.EXTRA)
_key = itemgetter(0, 1)


class Answer(msgspec.Struct, frozen=True):
    """A summary, and what it refers to."""

    summary: Summary
    series: SeriesKey
    revision_id: int
    declaration_id: int
    device_id: int | None
    environment_id: int | None
    traffic: Traffic
    peak_bytes_per_s: float | None
    """Of the device's datasheet."""


class ResultRows(msgspec.Struct, frozen=True):
    """Rows sorted by key, with which they begin."""

    facts: list[Row]
    extras: list[Row]

    def insert(self, connection: sa.Connection) -> None:
        """Into their tables."""
        insert_tuples(connection, result, _FACTS, self.facts)
        insert_tuples(connection, result_extra, _EXTRAS, self.extras)

    def new(self, connection: sa.Connection) -> "ResultRows":
        """Without the results that are stored already, which stay as they are."""
        if not self.facts:
            return self
        ids, sides = (", ".join(map(str, sorted(set(numbers)))) for numbers in zip(*map(_key, self.facts), strict=True))
        # as text: SQLAlchemy takes longer to write this statement than the database to answer it
        text = f"SELECT series_id, run_side_id FROM result WHERE series_id IN ({ids}) AND run_side_id IN ({sides})"  # noqa: S608 (numbers)
        there = set(map(tuple, connection.exec_driver_sql(text)))
        return ResultRows(*([row for row in part if _key(row) not in there] for part in (self.facts, self.extras)))


def result_rows(dimensions: Dimensions, run_id: int, answers: Sequence[Answer]) -> ResultRows:
    """Of one run; the small rows that they need are there afterwards."""
    if not answers:
        return ResultRows([], [])
    summaries = [one.summary for one in answers]
    series = dimensions.series([one.series for one in answers])
    sides = dimensions.run_sides(run_id, {one.summary.side: one.revision_id for one in answers})
    used = dimensions.resources(one.resources for one in summaries)
    keys = [(series[one.series], sides[one.summary.side]) for one in answers]
    times = {key: one.time_s for key, one in zip(keys, summaries, strict=True)}
    baselines = [series.get(one.series.of_baseline, 0) for one in answers]
    places = narrow.Places(
        declaration_id=[one.declaration_id for one in answers],
        device_id=[one.device_id for one in answers],
        environment_id=[one.environment_id for one in answers],
        resources_id=[used[one.resources] for one in summaries],
        traffic=[one.traffic for one in answers],
        peak_bytes_per_s=[one.peak_bytes_per_s for one in answers],
        baseline_s=[times.get((number, side)) for number, (_, side) in zip(baselines, keys, strict=True)],
    )
    made = narrow.narrow(rows.summary_columns(summaries), places)
    refers = dimensions.settings(made.settings), dimensions.extents(made.extents)
    facts = zip(*zip(*keys, strict=True), *refers, *made.facts, strict=True)
    extras = [(*key, *row) for key, row in zip(keys, made.extras, strict=True) if row is not None]
    return ResultRows(sorted(facts, key=_key), sorted(extras, key=_key))

"""Summaries as rows of `result` and `result_extra`, with the small rows that they refer to."""

from collections.abc import Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from perftrack.judge.value import Summary
from perftrack.model import Traffic
from perftrack.store import rows
from perftrack.store.columns import is_one_of
from perftrack.store.dimensions import Dimensions, insert
from perftrack.store.narrow import Place, narrow
from perftrack.store.schema import result, result_extra

SeriesKey = dict[str, Any]
"""Case, device class, variant, baseline and method, in the order of the series' key."""


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
    """Rows sorted by key."""

    facts: list[dict[str, Any]]
    extras: list[dict[str, Any]]

    def insert(self, connection: sa.Connection) -> None:
        """Into their tables."""
        insert(connection, result, self.facts)
        insert(connection, result_extra, self.extras)

    def new(self, connection: sa.Connection) -> "ResultRows":
        """Without the results that are stored already, which stay as they are."""
        question = sa.select(result.c.series_id, result.c.run_side_id).where(
            is_one_of(result.c.series_id, sorted({row["series_id"] for row in self.facts})),
            is_one_of(result.c.run_side_id, sorted({row["run_side_id"] for row in self.facts})),
        )
        there = set(map(tuple, connection.execute(question)))
        return ResultRows(*([row for row in rows if _key(row) not in there] for rows in (self.facts, self.extras)))


def result_rows(dimensions: Dimensions, run_id: int, answers: Sequence[Answer]) -> ResultRows:
    """Of one run; the small rows that they need are there afterwards."""
    series = dimensions.series([one.series for one in answers])
    sides = dimensions.run_sides(run_id, {one.summary.side: one.revision_id for one in answers})
    used = dimensions.resources(one.summary.resources for one in answers)
    keyed = [(series[tuple(one.series.values())], sides[one.summary.side]) for one in answers]
    times = {key: one.summary.time_s for key, one in zip(keyed, answers, strict=True)}
    made = [
        narrow(
            rows.summary_row(one.summary),
            Place(
                series_id=key[0],
                run_side_id=key[1],
                declaration_id=one.declaration_id,
                device_id=one.device_id,
                environment_id=one.environment_id,
                resources_id=used[one.summary.resources],
                traffic=one.traffic,
                peak_bytes_per_s=one.peak_bytes_per_s,
                baseline_s=times.get((series.get(_baseline(one.series), 0), key[1])),
            ),
        )
        for key, one in zip(keyed, answers, strict=True)
    ]
    settings = dimensions.settings([one.setting for one in made])
    extents = dimensions.extents([one.extent for one in made])
    facts = [
        one.facts | {"setting_id": setting, "extent_id": extent}
        for one, setting, extent in zip(made, settings, extents, strict=True)
    ]
    extras = [one.extra for one in made if one.extra is not None]
    return ResultRows(sorted(facts, key=_key), sorted(extras, key=_key))


def _baseline(series: SeriesKey) -> tuple[Any, ...]:
    return tuple({**series, "variant": series["baseline"]}.values())


def _key(row: dict[str, Any]) -> tuple[int, int]:
    return row["series_id"], row["run_side_id"]

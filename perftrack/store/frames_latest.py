"""The frame `latest`: the newest result of every series, beside that of one commit."""

from collections.abc import Iterator

import pandas as pd
import sqlalchemy as sa

from perftrack.store import frames_filters, frames_table
from perftrack.store.columns import is_one_of
from perftrack.store.frames_filters import Filters, Where
from perftrack.store.schema import result, series
from perftrack.store.store import Store
from perftrack.store.value import StoredRevision

_NAMES = ["suite", "case", "device", "variant"]
_SHOWN = [*_NAMES, "repo", "commit", "commit_seq", "status", "median_us", "speedup"]
_AT_FIRST = 4
_AT_MOST = 64
"""Commits that are asked for every series; a series that has no result there is asked for by itself."""


def latest(store: Store, base: StoredRevision | None, filters: Filters) -> pd.DataFrame:
    """By suite, case, device and variant; NaN where the base has no time."""
    where = frames_filters.where(store, filters)
    newest = _by_name(list(_newest(store, where)), _SHOWN).sort_values("commit_seq", kind="stable")
    # by several methods there are several series of one name: the newest commit counts
    newest = newest[~newest.index.duplicated(keep="last")].sort_index()
    of_base = [sa.false()] if base is None else frames_filters.of_revisions(store, [base.id])
    before = _by_name([frames_table.rows(store, [*where, *of_base], [*_NAMES, "median_us", "speedup"])[0]], _SHOWN)
    before = before[~before.index.duplicated(keep="last")].reindex(newest.index)
    newest["median_us_base"], newest["speedup_base"] = before["median_us"], before["speedup"]
    newest["time_change_pct"] = (newest["median_us"] / newest["median_us_base"] - 1) * 100
    return newest


def _by_name(parts: list[pd.DataFrame], columns: list[str]) -> pd.DataFrame:
    """One frame, its names as text in the index."""
    kinds = {name: "str" for name in (*_NAMES, "repo") if name in columns and name in parts[0]}
    return pd.concat([part.astype(kinds) for part in parts]).set_index(_NAMES)


def _newest(store: Store, where: Where) -> Iterator[pd.DataFrame]:
    """Rows of which each series has one; the newest commits are asked first, and at least once."""
    missing = set(store.read(lambda connection: list(connection.scalars(sa.select(series.c.id)))))
    start, size = 0, _AT_FIRST
    while start < _AT_MOST:
        some = frames_filters.newest_revisions(store, [], skip=start, count=size)
        yield _unseen(store, [*where, *frames_filters.of_revisions(store, some)], missing)
        if not missing or len(some) < size:
            return
        start, size = start + size, 2 * size
    yield _unseen(store, [*where, is_one_of(result.c.series_id, sorted(missing))], missing)


def _unseen(store: Store, where: Where, missing: set[int]) -> pd.DataFrame:
    """The last row of each series that is missing, which is not from then on."""
    frame, numbers = frames_table.rows(store, where, _SHOWN)
    of = pd.Series(numbers)
    keep = of.isin(missing) & ~of.duplicated(keep="last")
    missing.difference_update(of[keep].tolist())
    return frame[keep.to_numpy()]

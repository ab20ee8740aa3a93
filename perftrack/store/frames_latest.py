"""The frame `latest`: the newest result of every series, beside that of one commit.

Which side of which run is the newest of a series is asked of the keys alone, which the index of sides has. Values are
then read of these rows only, and names once a series.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import sqlalchemy as sa

from perftrack.model import Status
from perftrack.store import aliases, frames_columns, frames_filters, wide
from perftrack.store import frames_numbers as numbers
from perftrack.store.columns import is_one_of
from perftrack.store.frames_dimensions import SIDES, Dimension, Places
from perftrack.store.frames_filters import Filters, Where
from perftrack.store.schema import device_class, kernel_case, result, series, suite
from perftrack.store.store import Store
from perftrack.store.value import StoredRevision

_NAMES = ("suite", "case", "device", "variant")
_AT_FIRST = 4
_AT_MOST = 124
"""Newest commits that are asked for every series; one that has no result there is asked for by itself."""

_KEYS = sa.select(result.c.series_id, result.c.run_side_id)
_ROWS = _KEYS.add_columns(
    sa.case({word.value: at for at, word in enumerate(Status)}, value=wide.STATUS).label("status"),
    result.c.time_s,
    result.c.speedup,
)

_SERIES = aliases.beside(
    sa.select(
        series.c.id,
        suite.c.name.label("suite"),
        aliases.KEY.label("case"),
        device_class.c.name.label("device"),
        series.c.variant,
    )
    .join_from(series, kernel_case, series.c.case_id == kernel_case.c.id)
    .join(suite, kernel_case.c.suite_id == suite.c.id)
    .join(device_class, series.c.device_class_id == device_class.c.id)
)


def latest(store: Store, base: StoredRevision | None, filters: Filters) -> pd.DataFrame:
    """By suite, case, device and variant; NaN where the base has no time."""
    where = frames_filters.where(store, filters)
    newest = _newest(store, where)
    of_base = [sa.false()] if base is None else frames_filters.of_revisions(store, [base.id])
    rows = numbers.fetch(store, _ROWS.where(*where, sa.or_(sa.and_(sa.true(), *of_base), *_of(newest))))
    ids, side = numbers.ids(rows["series_id"]), numbers.ids(rows["run_side_id"])
    sides, name, levels = Dimension(store, SIDES, rows["run_side_id"]), *_names(store, rows["series_id"])
    order = _order(sides, ids)
    is_newest = np.array([newest.get(one, -1) for one in ids.tolist()], np.int64) == side
    is_base = np.array([*(one == (base and base.id) for one in sides.values("revision_number")), False])[sides.place]
    # by several methods there are several series of one name: the newest commit counts
    at = _last_of_each(name, order[is_newest[order]])
    before = _last_of_each(name, order[is_base[order]])
    place = np.searchsorted(name[at], name[before])
    frame = pd.DataFrame(
        {
            "repo": _words(sides.values("repo"), sides.place[at]),
            "commit": _words(sides.values("commit"), sides.place[at]),
            "commit_seq": np.array(sides.values("commit_seq"), np.int64)[sides.place[at]],
            "status": pd.Categorical.from_codes(
                numbers.ids(rows["status"][at]), dtype=frames_columns.RESULTS["status"]
            ),
            "median_us": rows["time_s"][at] * 1e6,
            "speedup": rows["speedup"][at],
            "median_us_base": _placed(rows["time_s"][before] * 1e6, place, len(at)),
            "speedup_base": _placed(rows["speedup"][before], place, len(at)),
        },
        index=pd.MultiIndex(levels, [*map(list, np.unravel_index(name[at], _sizes(levels)))], names=_NAMES),
    )
    frame["time_change_pct"] = (frame["median_us"] / frame["median_us_base"] - 1) * 100
    return frame


def _newest(store: Store, where: Where) -> dict[int, int]:
    """Series → the side of a run that has its newest result."""
    missing = set(numbers.ids(numbers.fetch(store, sa.select(series.c.id))["id"]).tolist())
    found: dict[int, int] = {}
    start, size = 0, _AT_FIRST
    while missing and start < _AT_MOST:
        some = frames_filters.newest_revisions(store, [], skip=start, count=size)
        found |= _last_sides(store, [*where, *frames_filters.of_revisions(store, some)], missing)
        if len(some) < size:
            return found
        start, size = start + size, 2 * size
    return found | _last_sides(store, [*where, is_one_of(result.c.series_id, sorted(missing))], missing)


def _last_sides(store: Store, where: Where, missing: set[int]) -> dict[int, int]:
    """The last of these results of each series that is missing, which is not from then on."""
    keys = numbers.fetch(store, _KEYS.where(*where))
    oldest_first = np.argsort(Dimension(store, SIDES, keys["run_side_id"]).place, kind="stable")
    ids, sides = (numbers.ids(keys[name])[oldest_first].tolist() for name in ("series_id", "run_side_id"))
    last = dict(zip(ids, sides, strict=True))
    found = {one: last[one] for one in missing & last.keys()}
    missing.difference_update(found)
    return found


def _of(newest: Mapping[int, int]) -> Where:
    """The results of these series on these sides, a condition for each side."""
    series_of: dict[int, list[int]] = {}
    for one, side in newest.items():
        series_of.setdefault(side, []).append(one)
    return [
        sa.and_(is_one_of(result.c.run_side_id, [side]), is_one_of(result.c.series_id, ids))
        for side, ids in series_of.items()
    ]


def _order(sides: Dimension, ids: npt.NDArray[np.int64]) -> Places:
    """That of results: topological; then oldest measurement first, by series, head before base."""
    runs = list(zip(sides.values("revision_number"), sides.values("run_number"), strict=True))
    number = {one: at for at, one in enumerate(dict.fromkeys(runs))}
    return np.lexsort((sides.place, ids, np.array([*(number[one] for one in runs), 0], np.intp)[sides.place]))


def _names(store: Store, ids: numbers.Floats) -> tuple[Places, list[Any]]:
    """The name of each series as one number, which sorts as its parts do, and the words of each part."""
    known = Dimension(store, _SERIES, ids)
    levels: list[Any] = []
    codes: list[Places] = []
    for part in _NAMES:
        values = known.values(part)
        words = sorted(set(values))
        rank = {word: at for at, word in enumerate(words)}
        levels.append(pd.Index(words, dtype="str"))
        codes.append(np.array([rank[value] for value in values], np.intp))
    return np.ravel_multi_index(codes, _sizes(levels))[known.place], levels


def _sizes(levels: Sequence[Any]) -> list[int]:
    return [max(len(level), 1) for level in levels]


def _last_of_each(name: Places, order: Places) -> Places:
    """Of these rows the last one of each name, sorted by name."""
    _, first = np.unique(name[order][::-1], return_index=True)
    return order[::-1][first]


def _words(words: Sequence[str], at: Places) -> Any:
    column: Any = pd.array(list(words), dtype="str")
    return column.take(at)


def _placed(values: numbers.Floats, place: Places, count: int) -> numbers.Floats:
    """Each value at its place; NaN elsewhere."""
    column = np.full(count, np.nan)
    column[place] = values
    return column

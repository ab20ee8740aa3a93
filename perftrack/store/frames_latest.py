"""The frame `latest`: the newest result of every series, beside that of one commit.

The sides of runs are asked from the newest on, until each series has a result; words are read once each.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import sqlalchemy as sa

from perftrack.model import Status
from perftrack.store import aliases, frames_columns, frames_filters, wide
from perftrack.store import frames_numbers as numbers
from perftrack.store.columns import is_among, is_one_of
from perftrack.store.frames_dimensions import Dimension, Places
from perftrack.store.frames_filters import Filters, Where
from perftrack.store.schema import device_class, kernel_case, result, series, suite
from perftrack.store.store import Store
from perftrack.store.value import StoredRevision
from perftrack.store.written import ROWS, Question, conditions, filled

_NAMES = ("suite", "case", "device", "variant")
_AT_MOST = 124
"""Newest commits that are asked for every series; one that has no result there is asked for by itself."""

_ALTERNATIVES = 500
"""In one condition. SQLite takes fewer than 1000; it looks up rows of two numbers by key only so, not in a list."""

_ROWS = sa.select(
    result.c.series_id,
    result.c.run_side_id,
    sa.case({word.value: at for at, word in enumerate(Status)}, value=wide.STATUS).label("status"),
    result.c.time_s,
    result.c.speedup,
).where(ROWS)
_KEYS = sa.select(result.c.series_id, result.c.run_side_id).where(ROWS)
Rows = dict[str, numbers.Floats]


def latest(store: Store, base: StoredRevision | None, filters: Filters) -> pd.DataFrame:
    """By suite, case, device and variant; NaN where the base has no time."""
    chosen = frames_filters.chosen_series(store, filters)
    known, variants = _series(store, chosen)
    where = frames_filters.among(store, filters, chosen)
    of_base = [sa.false()] if base is None else frames_filters.of_revisions(store, [base.id])
    newest, before_it = _newest(store, where, numbers.ids(known["id"])), _fetch(store, _ROWS, [*where, *of_base])
    rows = {name: np.concatenate([newest[name], before_it[name]]) for name in newest}
    ids = numbers.ids(rows["series_id"])
    sides = Dimension(store, "run_side_id", rows["run_side_id"], ("repo", "commit", "commit_seq"))
    name, levels = _names(store, known, variants, ids)
    order = _order(sides, ids)
    of_newest = order < len(newest["series_id"])
    # by several methods there are several series of one name: the newest commit counts
    at, before = _last_of_each(name, order[of_newest]), _last_of_each(name, order[~of_newest])
    place = np.searchsorted(name[at], name[before])
    known = name[at][place.clip(max=len(at) - 1)] == name[before] if len(at) else np.zeros(len(before), bool)
    before, place = before[known], place[known]
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


def _newest(store: Store, where: Where, missing: npt.NDArray[np.int64]) -> Rows:
    """The newest result of each of these series."""
    found: list[Rows] = [{column.name: np.empty(0) for column in _ROWS.selected_columns}]
    newest, _ = frames_filters.newest_sides(store, [], [], _AT_MOST)
    commits = list(newest.values())
    start, size = 0, 1
    while len(missing) and start < len(commits):
        some = sorted(side for sides in commits[start : start + size] for side in sides)
        rows = _fetch(store, _ROWS, [*where, is_among(result.c.run_side_id, some)])
        missing = _keep(store, found, rows, missing)
        start, size = start + size, 4 * size
    if len(missing):
        keys = _fetch(store, _KEYS, [*where, is_one_of(result.c.series_id, missing.tolist())])
        by_side = Dimension(store, "run_side_id", keys["run_side_id"], ())
        last = _last_of_each(numbers.ids(keys["series_id"]), np.argsort(by_side.place, kind="stable"))
        found += [_fetch(store, _ROWS, [of]) for of in _of(keys["series_id"][last], keys["run_side_id"][last])]
    return {name: np.concatenate([part[name] for part in found]) for name in found[0]}


def _fetch(store: Store, question: Question, where: Where) -> Rows:
    return numbers.fetch(store, question, conditions(store.dialect, where))


def _keep(store: Store, found: list[Rows], rows: Rows, missing: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Add the last of these results of each series that is missing; those that still are."""
    ids = numbers.ids(rows["series_id"])
    by_side = Dimension(store, "run_side_id", rows["run_side_id"], ())
    oldest_first = np.argsort(by_side.place, kind="stable")
    last = _last_of_each(ids, oldest_first[np.isin(ids[oldest_first], missing)])
    found.append({name: column[last] for name, column in rows.items()})
    return np.setdiff1d(missing, ids[last])


def _of(ids: numbers.Floats, sides: numbers.Floats) -> Iterator[sa.ColumnElement[bool]]:
    """Conditions that take the results of these series on these sides in parts, each an alternative for each side."""
    every = [
        sa.and_(
            is_one_of(result.c.run_side_id, [int(side)]), is_one_of(result.c.series_id, ids[sides == side].tolist())
        )
        for side in np.unique(sides)
    ]
    for start in range(0, len(every), _ALTERNATIVES):
        yield sa.or_(*every[start : start + _ALTERNATIVES])


def _order(sides: Dimension, ids: npt.NDArray[np.int64]) -> Places:
    """That of results: topological; then oldest measurement first, by series, head before base."""
    runs = list(zip(sides.values("revision_number"), sides.values("run_number"), strict=True))
    number = {one: at for at, one in enumerate(dict.fromkeys(runs))}
    return np.lexsort((sides.place, ids, np.array([*(number[one] for one in runs), 0], np.intp)[sides.place]))


def _series(store: Store, chosen: Sequence[int] | None) -> tuple[Rows, list[str]]:
    """Numbers of the chosen series, or of all, with what names them; and the variants that are numbered so."""
    variants = sorted(store.read(lambda connection: connection.scalars(_VARIANTS).all()))
    which = sa.true() if chosen is None else is_among(series.c.id, sorted(chosen))
    return _fetch(store, _coded(tuple(variants)), [which]), variants


_VARIANTS = sa.select(series.c.variant).distinct()


@lru_cache(maxsize=16)
def _coded(variants: tuple[str, ...]) -> Question:
    known = {word: at for at, word in enumerate(variants or ("",))}  # of an empty store there is no case
    code = sa.case(known, value=series.c.variant).label("variant")
    return sa.select(series.c.id, series.c.case_id, series.c.device_class_id, code).where(ROWS)


_CASES = (
    aliases.beside(sa.select(kernel_case.c.id, suite.c.name, aliases.KEY))
    .join(suite, kernel_case.c.suite_id == suite.c.id)
    .where(ROWS)
)
_CLASSES = sa.select(device_class.c.id, device_class.c.name)


def _names(store: Store, known: Rows, variants: list[str], ids: npt.NDArray[np.int64]) -> tuple[Places, list[Any]]:
    """The name of each series as one number, which sorts as its parts do, and the words of each part."""
    of_case, of_class = numbers.ids(known["case_id"]), numbers.ids(known["device_class_id"])
    text = filled(store.dialect, _CASES, str(is_among(kernel_case.c.id, numbers.distinct(of_case))))
    cases = store.read(lambda connection: connection.exec_driver_sql(text).all())
    classes = store.read(lambda connection: connection.execute(_CLASSES).all())
    place = numbers.places(of_case, [row[0] for row in cases])
    suites, of_suite = _ranked([row[1] for row in cases], place)
    keys, of_key = _ranked([row[2] for row in cases], place)
    names, of_name = _ranked([row[1] for row in classes], numbers.places(of_class, [row[0] for row in classes]))
    levels: list[Any] = [suites, keys, names, pd.Index(variants, dtype="str")]
    codes = [of_suite, of_key, of_name, numbers.ids(known["variant"]).astype(np.intp)]
    at = numbers.places(ids, numbers.ids(known["id"]).tolist())
    return np.ravel_multi_index(codes, _sizes(levels))[at], levels


def _ranked(words: Sequence[str], place: Places) -> tuple[Any, Places]:
    """The different words, sorted, and which of them is at each place."""
    level = sorted(set(words))
    rank = {word: at for at, word in enumerate(level)}
    return pd.Index(level, dtype="str"), np.array([rank[word] for word in words], np.intp)[place]


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

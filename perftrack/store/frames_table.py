"""The frame `results`: numbers from the large table, and words from the small ones, once each.

What it gives is what `frames_results` gives in parts; a test compares the two.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import sqlalchemy as sa

from perftrack.errors import UsageError
from perftrack.model import Accuracy, Cause, Method, Status, Verdict
from perftrack.store import frames_columns, frames_filters, steps, wide
from perftrack.store import frames_numbers as numbers
from perftrack.store.frames_dimensions import TABLES, Places
from perftrack.store.frames_filters import Filters
from perftrack.store.frames_values import KEY, NEEDED, Values
from perftrack.store.schema import finding, result, run_side, series
from perftrack.store.store import Store
from perftrack.store.written import ROWS, Question

_PLAIN = ("int64", "bool", "float64")

_CODED: Mapping[str, tuple[sa.ColumnElement[str], Sequence[str]]] = {
    "status": (wide.STATUS, list(Status)),
    "verdict": (finding.c.verdict, list(Verdict)),
    "cause": (finding.c.cause, list(Cause)),
    "accuracy": (finding.c.accuracy, list(Accuracy)),
}
"""Columns with a few known words. Where there is no finding its words are empty."""

_OWNER = {
    column.name: number
    for number, question in TABLES.items()
    for column in question.selected_columns
    if column.name in frames_columns.RESULTS and frames_columns.RESULTS[column.name] != "float64"
} | {"occupancy": "setting_id"}
"""Column → that of `result` with the number of the row that has it."""


def results(store: Store, columns: Sequence[str] | None, filters: Filters) -> pd.DataFrame:
    """The rows that the filters leave, in order; all columns, or those named. UsageError for an unknown one."""
    wanted = list(frames_columns.RESULTS) if columns is None else list(columns)
    unknown = [name for name in wanted if name not in frames_columns.RESULTS]
    if unknown:
        raise UsageError(f"results have no column {unknown[0]!r}; they have {', '.join(frames_columns.RESULTS)}")
    return _Table(store, frames_filters.where(store, filters), wanted).frame()


def rows(store: Store, where: frames_filters.Where, columns: Sequence[str]) -> tuple[pd.DataFrame, Places]:
    """The same of conditions, with the number of the series of each row."""
    made = _Table(store, where, columns)
    return made.frame(), made.series


class _Table:
    def __init__(self, store: Store, where: frames_filters.Where, wanted: Sequence[str]) -> None:
        self._wanted = wanted
        self._values = Values(store, where, facts(tuple(wanted)), map(_value, wanted))
        self._order = self._sorted()

    def frame(self) -> pd.DataFrame:
        columns: dict[str, Any] = {}
        left = Counter(of for name in self._wanted for of in _sources(name))
        for name in self._wanted:
            columns[name] = self._column(name, frames_columns.RESULTS[name])
            for of in _sources(name):
                left[of] -= 1
                if not left[of]:  # it and the column made of it would be in memory at once for all columns
                    self._values.numbers.pop(of, None)
        return pd.DataFrame(columns, index=pd.RangeIndex(len(self._order)), copy=False)

    @property
    def series(self) -> Places:
        of = self._values.table("series_id")
        return of.ids()[of.place[self._order]]

    def _sorted(self) -> Places:
        """Topological; then oldest measurement first, by series, head before base."""
        of, series = self._values.table("run_side_id"), self._values.table("series_id")
        # both sides of a commit that was compared with itself are one place, and a series' head comes first there
        runs = list(zip(of.values("revision_number"), of.values("run_number"), strict=True))
        number = {one: at for at, one in enumerate(dict.fromkeys(runs))}
        places = [number[one] for one in runs]
        place = np.array([*places, 0], np.int64)[of.place]
        heads = np.array([side == "head" for side in [*of.values("side"), ""]])[of.place]
        count = 2 * max(len(series.rows), 1)
        return np.argsort(place * count + 2 * series.place + ~heads, kind="stable")

    def _column(self, name: str, kind: Any) -> Any:
        if name == "message":
            words, which = self._values.messages()
            return _taken(words, which[self._order], name, kind)
        if name in _CODED:
            places = numbers.ids(self._values.numbers[name][self._order])
            empty = kind.categories.get_indexer([""])[0] if name != "status" else -1
            words = kind.categories.get_indexer([str(word) for word in _CODED[name][1]])
            codes = np.where(places < 0, empty, words[places])
            return pd.Categorical.from_codes(codes, dtype=kind)
        if name in _OWNER:
            of = self._values.table(_OWNER[name])
            return _taken(of.values(name), of.place[self._order], name, kind)
        return _number(self._values.value(_value(name))[self._order], name, kind)


def _value(name: str) -> str:
    return frames_columns.RENAMED.get(name, name)


def _sources(name: str) -> tuple[str, ...]:
    """Columns of numbers that a column is made of, as far as it has its own."""
    return NEEDED.get(_value(name), (_value(name),))


@lru_cache(maxsize=64)
def facts(wanted: tuple[str, ...]) -> Question:
    """The numbers that the wanted columns need, one row a result, in no order; `written.ROWS` is for conditions."""
    selected: dict[str, sa.ColumnElement[Any]] = {name: result.c[name] for name in KEY}
    for name in wanted:
        if name in _CODED:
            selected[name] = _code(*_CODED[name])
        elif name in steps.VECTORISATION:
            selected[name] = steps.VECTORISATION[name]
        elif name in _OWNER:
            selected[_OWNER[name]] = result.c[_OWNER[name]]
        elif name != "message":
            selected |= {of: result.c[of] for of in _sources(name)}
    question = sa.select(*(column.label(name) for name, column in selected.items())).select_from(result).where(ROWS)
    finds = {"verdict", "cause", "accuracy"} & set(wanted)
    beside = set(steps.VECTORISATION) & set(wanted)
    if finds or beside:
        question = question.join(series, result.c.series_id == series.c.id)
    if finds:
        question = question.join(run_side, result.c.run_side_id == run_side.c.id)
        same = (finding.c.case_id == series.c.case_id, finding.c.device_class_id == series.c.device_class_id)
        own = (finding.c.run_id == run_side.c.run_id, finding.c.variant == series.c.variant, run_side.c.side == "head")
        question = question.join(finding, sa.and_(*own, *same), isouter=True)
    return steps.beside(question) if beside else question


def _code(column: sa.ColumnElement[str], words: Sequence[str]) -> sa.ColumnElement[int]:
    """The place of a word; NULL for any other."""
    return sa.case(*((column == word, at) for at, word in enumerate(words)), else_=None)


def _words(at: Places, words: Sequence[str | None]) -> pd.Categorical:
    """Of the words at these places, those that occur as categories, sorted."""
    there = {words[place] for place in numbers.distinct(at.astype(np.int64))} - {None}
    categories = sorted(word for word in there if word is not None)
    code = {word: number for number, word in enumerate(categories)}
    codes = np.array([*(code.get(word or "", -1) if word is not None else -1 for word in words), -1])
    return pd.Categorical.from_codes(codes[at], categories=pd.Index(categories, dtype="str"))


def _cold(documents: Sequence[str]) -> list[bool]:
    return [msgspec.json.decode(text, type=Method).cache == "cold" for text in documents]


def _taken(values: Sequence[Any], at: Places, name: str, kind: Any) -> Any:
    """Values of a small table, at the place that each row has there; -1 is nothing."""
    if kind == "category":
        return _words(at, values)
    if name == "cold":
        values = _cold(values)
    if kind == frames_columns.TIME:
        instants = np.array([*values, np.iinfo("int64").min], "int64")  # the least one is NaT
        return pd.DatetimeIndex(instants[at].view("datetime64[us]")).tz_localize("UTC")
    if kind in _PLAIN:
        return np.array([*values, math.nan] if kind == "float64" else values, dtype=kind)[at]
    column: Any = pd.array(list(values), dtype=kind)
    return column.take(at, allow_fill=True)


def _number(column: numbers.Floats, name: str, kind: Any) -> Any:
    factor = frames_columns.scale(name)
    if factor is not None:
        return column * factor
    return column if kind == "float64" else column.astype(kind)

"""The frame `results`: numbers from the large table, and words from the small ones, once each.

What it gives is what `frames_results` gives in parts; a test compares the two.
"""

import math
import typing
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pandas as pd
import sqlalchemy as sa

from perftrack.errors import UsageError
from perftrack.model import Accuracy, Cause, Measurement, Method, Status, Verdict
from perftrack.store import aliases, frames_columns, frames_filters, steps
from perftrack.store import frames_numbers as numbers
from perftrack.store.columns import is_one_of
from perftrack.store.frames_columns import UNPLACED
from perftrack.store.frames_filters import Filters
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

Places = npt.NDArray[np.intp]

_MODES = typing.get_args(Measurement.__annotations__["mode"])
_SIDES = ("head", "base")
_PLAIN = ("int64", "bool", "float64")


def _code(column: sa.ColumnElement[str], words: Sequence[str]) -> sa.ColumnElement[int]:
    """The place of a word; NULL for any other."""
    return sa.case(*((column == word, at) for at, word in enumerate(words)), else_=None)


_KEY: Mapping[str, sa.ColumnElement[Any]] = {
    "series_id": result.c.series_id,
    "revision_id": result.c.revision_id,
    "run_id": result.c.run_id,
    "side": _code(result.c.side, _SIDES),
}

_CODED: Mapping[str, tuple[sa.ColumnElement[str], Sequence[str]]] = {
    "status": (result.c.status, list(Status)),
    "verdict": (finding.c.verdict, list(Verdict)),
    "cause": (finding.c.cause, list(Cause)),
    "accuracy": (finding.c.accuracy, list(Accuracy)),
}
"""Columns with a few known words. Where there is no finding its words are empty."""

_SAID = ("mode", "message")
"""Words that may be anything, but are nearly always one of a few."""

_MEASURED: Mapping[str, sa.ColumnElement[Any]] = {
    "median_us": result.c.time_s,
    "p10_us": result.c.q10_s,
    "p90_us": result.c.q90_s,
    "baseline_us": result.c.baseline_s,
    "gbps": result.c.bandwidth_bytes_per_s,
    "tflops": result.c.flops_per_s,
    "host_us": result.c.host_s,
    "n_samples": result.c.samples,
    **steps.VECTORISATION,
}
"""Numbers of the row under another name."""

_DIMENSIONS: Mapping[str, tuple[str, sa.Select[*tuple[Any, ...]]]] = {
    "revision": (
        "revision_id",
        sa.select(
            revision.c.id,
            revision.c.repo,
            revision.c.sha.label("commit"),
            sa.func.coalesce(revision.c.position, UNPLACED).label("commit_seq"),
            revision.c.dirty,
            revision.c.committed_us.label("commit_time"),
        ).order_by(revision.c.position.is_(None), revision.c.position, revision.c.committed_us, revision.c.id),
    ),
    "run": (
        "run_id",
        sa.select(
            run.c.id,
            run.c.started_us.label("measured_at"),
            run.c.uid.label("run_id"),
            run.c.head_branch,
            run.c.base_branch,
        ).order_by(run.c.started_us, run.c.id),
    ),
    "series": (
        "series_id",
        aliases.beside(
            sa.select(
                series.c.id,
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
        ).order_by(series.c.id),
    ),
    "declaration": ("declaration_id", sa.select(declaration.c.id, declaration.c.params)),
    "device": ("device_id", sa.select(device.c.id, device.c.uuid.label("device_uuid"), device.c.node)),
    "environment": ("environment_id", sa.select(environment.c.id, environment.c.digest.label("env_key"))),
    "resources": (
        "resources_id",
        sa.select(
            resources.c.id,
            *(resources.c[name] for name in ("registers", "local_bytes", "shared_bytes", "launches", "occupancy")),
            resources.c.code_digest,
        ),
    ),
}
"""Table → the number of its row in `result`, and what is read of it; the first three in the order of results."""

_OWNER = {
    column.name: name
    for name, (_, question) in _DIMENSIONS.items()
    for column in question.selected_columns
    if column.name in frames_columns.RESULTS
} | {"branch": "run"}


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
        self._store = store
        self._where = where
        self._wanted = wanted
        self._numbers = numbers.fetch(store, facts(wanted).where(*where))
        self._dimensions = {
            name: _Dimension(store, question, self._numbers[number])
            for name, (number, question) in _DIMENSIONS.items()
            if number in self._numbers
        }
        self._order = self._sorted()
        self._side = self._numbers["side"][self._order].astype(np.intp)

    def frame(self) -> pd.DataFrame:
        columns = {name: self._column(name, frames_columns.RESULTS[name]) for name in self._wanted}
        return pd.DataFrame(columns, index=pd.RangeIndex(len(self._order)))

    @property
    def series(self) -> Places:
        return numbers.ids(self._numbers["series_id"][self._order])

    def _sorted(self) -> Places:
        """Topological; then oldest measurement first, head before base."""
        keys = [self._dimensions[name].place for name in ("revision", "run", "series")]
        keys.append(self._numbers["side"].astype(np.intp))
        sizes = [len(self._dimensions[name].rows) for name in ("revision", "run", "series")] + [2]
        if float(np.prod([float(max(size, 1)) for size in sizes])) < 2**62:
            return np.argsort(np.ravel_multi_index(keys, [max(size, 1) for size in sizes]), kind="stable")
        return np.lexsort(keys[::-1])

    def _column(self, name: str, kind: Any) -> Any:
        if name == "branch":
            return self._branch()
        if name == "side":
            return _words(self._side, _SIDES)
        if name in _SAID:
            return self._said(name, kind)
        if name in _CODED:
            places = numbers.ids(self._numbers[name][self._order])
            empty = kind.categories.get_indexer([""])[0] if name != "status" else -1
            words = kind.categories.get_indexer([str(word) for word in _CODED[name][1]])
            codes = np.where(places < 0, empty, words[places])
            return pd.Categorical.from_codes(codes, dtype=kind)
        if name in _OWNER:
            of = self._dimensions[_OWNER[name]]
            return _taken(of.values(name), of.place[self._order], name, kind)
        return _number(self._numbers[name][self._order], name, kind)

    def _branch(self) -> pd.Categorical:
        of = self._dimensions["run"]
        heads, bases = of.values("head_branch"), of.values("base_branch")
        at = of.place[self._order] + np.where(self._side == 0, 0, len(heads))
        return _words(at, [*heads, *bases])

    def _said(self, name: str, kind: Any) -> Any:
        known = _MODES if name == "mode" else ("",)
        at = numbers.ids(self._numbers[name][self._order])
        words = [*known]
        if (at < 0).any():
            others = self._others
            key = np.stack([self._numbers[part][self._order][at < 0] for part in _KEY], axis=1).astype(np.int64)
            said = [others[tuple(row)][_SAID.index(name)] for row in key.tolist()]
            places = {word: len(known) + place for place, word in enumerate(dict.fromkeys(said))}
            at[at < 0] = [places[word] for word in said]
            words += places
        return _words(at, words) if kind == "category" else _taken(words, at, name, kind)

    @cached_property
    def _others(self) -> dict[tuple[int, ...], tuple[str, str]]:
        """Mode and message of the rows that have one that is not known, by key."""
        odd = result.c.mode.not_in(_MODES) | (result.c.message != "")
        question = sa.select(*_KEY.values(), result.c.mode, result.c.message).where(odd, *self._where)
        found = self._store.read(lambda connection: list(map(tuple, connection.execute(question))))
        return {row[:4]: (row[4], row[5]) for row in found}


def facts(wanted: Sequence[str]) -> sa.Select[*tuple[Any, ...]]:
    """The numbers that the wanted columns need, one row a result, in no order."""
    selected = dict(_KEY)
    for name in wanted:
        if name in {"branch", "side"}:
            continue
        if name in _SAID:
            selected[name] = _code(result.c[name], _MODES if name == "mode" else ("",))
        elif name in _CODED:
            selected[name] = _code(*_CODED[name])
        elif name in _OWNER:
            number = _DIMENSIONS[_OWNER[name]][0]
            selected[number] = result.c[number]
        else:
            selected[name] = _MEASURED[name] if name in _MEASURED else result.c[name]
    question = sa.select(*(column.label(name) for name, column in selected.items())).select_from(result)
    finds = {"verdict", "cause", "accuracy"} & set(wanted)
    beside = set(steps.VECTORISATION) & set(wanted)
    if finds or beside:
        question = question.join(series, result.c.series_id == series.c.id)
    if finds:
        same = (finding.c.case_id == series.c.case_id, finding.c.device_class_id == series.c.device_class_id)
        own = (finding.c.run_id == result.c.run_id, finding.c.variant == series.c.variant, result.c.side == "head")
        question = question.join(finding, sa.and_(*own, *same), isouter=True)
    return steps.beside(question) if beside else question


class _Dimension:
    """Rows of a small table that occur, and where each result has its own."""

    def __init__(self, store: Store, question: sa.Select[*tuple[Any, ...]], column: numbers.Floats) -> None:
        of = numbers.ids(column)
        there = is_one_of(question.selected_columns["id"], numbers.distinct(of))
        self.rows = store.read(lambda connection: connection.execute(question.where(there)).all())
        self._names = [one.name for one in question.selected_columns]
        self.place = numbers.places(of, {row[0]: at for at, row in enumerate(self.rows)})

    def values(self, name: str) -> list[Any]:
        at = self._names.index(name)
        return [row[at] for row in self.rows]


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

"""Numbers of many results, a column each: those of the narrow rows, and what follows from them, as `wide` has it."""

from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import sqlalchemy as sa

from perftrack.store import frames_numbers as numbers
from perftrack.store import narrow
from perftrack.store.columns import is_one_of
from perftrack.store.frames_dimensions import Dimension, Places
from perftrack.store.frames_filters import Where
from perftrack.store.schema import result, result_extra
from perftrack.store.store import Store
from perftrack.store.written import ROWS, Question, conditions, filled

Keys = npt.NDArray[np.int64]
Floats = numbers.Floats

KEY = ("series_id", "run_side_id")

NEEDED: Mapping[str, tuple[str, ...]] = {
    "baseline_s": ("time_s",),
    "fusion_efficiency": ("fusion_gain", "speedup", "setting_id"),
    "bandwidth_bytes_per_s": ("time_s", "setting_id"),
    "peak_utilization": ("time_s", "setting_id"),
    "flops_per_s": ("time_s", "setting_id"),
    "expected_gain": ("setting_id",),
    **dict.fromkeys(("samples", "rounds", "bad_blocks"), ("extent_id",)),
    **{name: (column,) for name, (column, _) in narrow.WHOLE.items()},
    **{name: (column,) for name, column in narrow.DIGITS.items()},
}
"""Value → columns of `result` that it is made of; all others are columns themselves."""

_AT_ONCE = 1 << 16
_SIDE = (1 << 32) - 1
_POWERS = np.array([10.0**power for power in range(narrow.LAST_POWER + 1)])


class Values:
    """The results that some conditions leave, in the order in which the database gives them."""

    def __init__(self, store: Store, where: Where, question: sa.Select[*tuple[Any, ...]], names: Iterable[str]) -> None:
        self._store = store
        self._where = conditions(store.dialect, where)
        self.numbers = numbers.fetch(store, question, self._where)
        self._names = set(names)
        self._tables = {number: self._dimension(number) for number in KEY}
        self._extra_names = set(narrow.EXTRA) & self._names

    def table(self, number: str) -> Dimension:
        """The small table that a column of row numbers names."""
        if number not in self._tables:
            self._tables[number] = self._dimension(number)
        return self._tables[number]

    def _dimension(self, number: str) -> Dimension:
        return Dimension(self._store, number, self.numbers.pop(number), self._names)

    def value(self, name: str) -> Floats:
        """By its name in `Summary`, in the units of the store; NaN where there is none."""
        if name not in narrow.EXTRA:
            return self._stored(name)
        values, (at, extras) = self._worked_out(name), self._extras
        if len(at):
            values[at] = extras[name]
        return values

    def _stored(self, name: str) -> Floats:
        of = NEEDED.get(name)
        return self.numbers[name] if of is None else self.table(of[0]).floats(name)

    def _worked_out(self, name: str) -> Floats:
        if name in narrow.WHOLE:
            column, factor = narrow.WHOLE[name]
            return self.numbers[column] / factor
        if name in narrow.DIGITS:
            return _of_digits(self.numbers[narrow.DIGITS[name]])
        if name == "baseline_s":
            return self._baseline_s()
        of = self.table("setting_id")
        if name == "fusion_efficiency":
            gain = self.numbers["fusion_gain"]
            return np.where(np.isnan(gain), self.numbers["speedup"], gain) / of.floats("expected_gain")
        if name == "flops_per_s":
            return of.floats("flops") / self.numbers["time_s"]
        bandwidth = of.floats("bytes_min") / self.numbers["time_s"]
        return bandwidth if name == "bandwidth_bytes_per_s" else bandwidth / of.floats("peak_bytes_per_s")

    def _baseline_s(self) -> Floats:
        """The time of the baseline variant on the same side of the same run."""
        series, own, times = self.table("series_id"), self._own_keys, self.numbers["time_s"]
        of = np.array([*series.values("baseline_id"), -1], np.int64)
        keys = own
        if missing := sorted({*of.tolist()} - {row[0] for row in series.rows} - {-1}):
            sides = [row[0] for row in self.table("run_side_id").rows]
            others = numbers.fetch(self._store, _TIMES, conditions(self._store.dialect, _of(missing, sides)))
            keys = np.concatenate([keys, _keys(*(numbers.ids(others[name]) for name in KEY))])
            times = np.concatenate([times, others["time_s"]])
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        found = np.full(len(own), np.nan)
        for start in range(0, len(own), _AT_ONCE):  # of a million rows at once, each step here is 8 MB
            part = slice(start, start + _AT_ONCE)
            wanted = _keys(of[series.place[part]], own[part] & _SIDE)
            at = keys.searchsorted(wanted).clip(max=len(keys) - 1)
            known = np.flatnonzero(keys[at] == wanted)
            found[part][known] = times[order[at[known]]]
        found[np.isnan(self.numbers["time_s"])] = np.nan
        return found

    @cached_property
    def _extras(self) -> tuple[Places, dict[str, Floats]]:
        """Of the results that have values of their own: their places, and these values."""
        found = numbers.fetch(self._store, _of_extras(tuple(sorted(self._extra_names))), _on_extras(self._where))
        at, of = _matched(_keys(*(numbers.ids(found.pop(name)) for name in KEY)), self._own_keys)
        return at, {name: column[of] for name, column in found.items()}

    def messages(self) -> tuple[list[str], Places]:
        """The different messages, the empty one first, and which of them each result has."""
        text = filled(self._store.dialect, _MESSAGES, _on_extras(self._where))
        found = self._store.read(lambda connection: connection.exec_driver_sql(text).all())
        words = {word: at for at, word in enumerate(dict.fromkeys(["", *(word for _, _, word in found)]))}
        which = np.zeros(len(self._own_keys), np.intp)
        at, of = _matched(np.array([one << 32 | side for one, side, _ in found], np.int64), self._own_keys)
        which[at] = np.array([words[word] for _, _, word in found], np.intp)[of]
        return list(words), which

    @cached_property
    def _own_keys(self) -> Keys:
        series, sides = (self._tables[number] for number in KEY)
        return _keys(series.ids()[series.place], sides.ids()[sides.place])


_TIMES = sa.select(*(result.c[name] for name in KEY), result.c.time_s).where(ROWS)


@lru_cache(maxsize=64)
def _of_extras(names: tuple[str, ...]) -> Question:
    return sa.select(*(result_extra.c[name] for name in (*KEY, *names))).where(ROWS)


def _of(ids: Iterable[int], sides: Iterable[int]) -> Where:
    return [is_one_of(result.c.series_id, list(ids)), is_one_of(result.c.run_side_id, list(sides))]


_MESSAGES = sa.select(*(result_extra.c[name] for name in KEY), result_extra.c.message).where(
    result_extra.c.message != "", ROWS
)


def _on_extras(where: str) -> str:
    """The same conditions on the key of `result_extra`."""
    return where.replace("result.", "result_extra.")


def _keys(ids: Keys, sides: Keys) -> Keys:
    """Both numbers in one, in their order."""
    return ids << 32 | sides


def _matched(keys: Keys, wanted: Keys) -> tuple[Places, Places]:
    """The places in `wanted` of what is among the keys, and that of each among the keys."""
    if not len(keys):
        return np.zeros(0, np.intp), np.zeros(0, np.intp)
    order = np.argsort(keys, kind="stable")
    of = order[np.searchsorted(keys[order], wanted).clip(max=len(keys) - 1)]
    at = np.flatnonzero(keys[of] == wanted)
    return at, of[at]


def _of_digits(column: Floats) -> Floats:
    known = numbers.ids(column)
    values = (known % narrow.SCALE) / _POWERS[known // narrow.SCALE * (known >= 0)]
    return np.where(known < 0, np.nan, values)

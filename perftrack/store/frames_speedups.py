"""Frames of speedups: one line a case and device, one column a commit; set against a commit, and in the mean."""

import numpy as np
import pandas as pd

from perftrack.errors import UsageError

_ROWS, _COLUMNS = ["suite", "case", "device"], ["commit_seq", "commit"]


def speedup(long: pd.DataFrame, variant: str | None = None) -> pd.DataFrame:
    """The speedups of a frame of results: (suite, case, device) × (commit_seq, commit); NaN = not measured.

    Of several measurements of one commit the newest counts. UsageError where there are several variants that have a
    speedup and none of them is named.
    """
    long = long.reset_index("commit_seq") if "commit_seq" in long.index.names else long
    _refuse_others(long)
    if variant is None:
        there = sorted(long.loc[long["speedup"].notna(), "variant"].astype("str").unique())
        if len(there) > 1:
            raise UsageError(f"there are speedups of {', '.join(there)}: name one, e.g. speedup({there[0]!r})")
        variant = there[0] if there else None
    if variant is not None:
        long = long[long["variant"].astype("str") == variant]
    commit = long["commit"] + long["dirty"].map({True: "+dirty", False: ""}).astype("str")
    cells = long[["commit_seq", "case", "speedup"]].assign(
        suite=long["suite"].astype("str"), device=long["device"].astype("str"), commit=commit
    )
    newest = cells.drop_duplicates([*_ROWS, *_COLUMNS], keep="last")
    in_order = pd.MultiIndex.from_frame(cells[_COLUMNS].drop_duplicates())
    wide = newest.pivot(index=_ROWS, columns=_COLUMNS, values="speedup")  # noqa: PD010 (pivot_table drops empty rows)
    return wide.reindex(columns=in_order).astype("float64")


def _refuse_others(frame: pd.DataFrame) -> None:
    missing = [name for name in (*_ROWS, *_COLUMNS, "dirty", "variant", "speedup") if name not in frame]
    if missing:
        raise UsageError(f"this frame has no column {missing[0]!r}: speedups are of what results() and history() give")


def vs(wide: pd.DataFrame, commit: str) -> pd.DataFrame:
    """Speedup ÷ that at one commit (first digits), above 1: it is higher; NaN where either was not measured."""
    names = [str(name) for name in wide.columns.get_level_values(1)]
    found = [at for at, name in enumerate(names) if commit and name.startswith(commit)]
    exact = [at for at in found if names[at] == commit] or [at for at in found if not names[at].endswith("+dirty")]
    found = exact or found
    if len(found) != 1:
        what = "more than one commit begins" if found else "no commit of this frame begins"
        raise UsageError(f"{what} with {commit!r}: give the first digits of one of its columns")
    return wide.div(wide.iloc[:, found[0]], axis=0)


def geomean(wide: pd.DataFrame, by: str | None = None) -> pd.DataFrame:
    """The geometric mean of every commit, over the lines that have a number at all of them.

    Columns: `geomean` (NaN where there is no such line), `n` such lines, `of` all lines. A line more or less would
    move the mean although nothing got faster. `by` is a level of the lines: suite, case or device.
    """
    if by is not None and by not in wide.index.names:
        raise UsageError(f"geomean(by={by!r}): the lines have {', '.join(map(str, wide.index.names))}")
    if by is None:
        return _geomean(wide)
    keys = wide.index.get_level_values(by)
    parts = {key: _geomean(wide[keys == key]) for key in sorted(keys.unique())}
    if not parts:
        return _geomean(wide).iloc[:0]
    return pd.concat(parts, names=[by])


def _geomean(wide: pd.DataFrame) -> pd.DataFrame:
    values = wide.to_numpy(dtype="float64")
    common = values[~np.isnan(values).any(axis=1)]
    means = np.exp(np.log(common).mean(axis=0)) if len(common) else np.full(wide.shape[1], np.nan)
    return pd.DataFrame({"geomean": means, "n": len(common), "of": len(wide)}, index=wide.columns)

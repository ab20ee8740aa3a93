"""`.perftrack` on the frames of results: speedups, and charts of them (matplotlib, sparklines, SVG in a notebook)."""

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from perftrack import chart
from perftrack.errors import UsageError
from perftrack.foreign import plain
from perftrack.judge.piecewise import Detector, changes_of
from perftrack.store import frames_speedups

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.console import Console, ConsoleOptions
    from rich.text import Text

MOST_LINES = 20
"""In one chart; more cannot be told apart."""

_SERIES = ("suite", "case", "device", "variant")


@dataclass(frozen=True, slots=True)
class Line:
    """One series over the commits of its frame, oldest first."""

    name: str
    points: tuple[float | None, ...]
    """None where a commit has no number."""
    borders: tuple[int, ...] = ()
    """Where another environment or method starts."""


class Charts:
    """Of `results`, `history` and `speedups`; UsageError, when used, on other frames."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame

    def lines(self, of: str = "speedup") -> tuple[list[str], list[Line]]:
        """The commits (first seven digits, `+dirty` where it applies) and a line for each series with any number.

        `of` is a column of numbers of `results`; of a frame of speedups it is the speedup. Of several measurements of
        a commit the newest counts.
        """
        return _wide(self._frame) if self._frame.columns.nlevels == 2 else _long(self._frame, of)

    def speedup(self, variant: str | None = None) -> pd.DataFrame:
        """The speedups of a frame of results, as `Database.speedups` gives them; of the variant, if there are more."""
        return frames_speedups.speedup(self._frame, variant)

    def vs(self, commit: str) -> pd.DataFrame:
        """Speedup ÷ that at one commit (first digits), above 1: it is higher; NaN where either was not measured."""
        return frames_speedups.vs(self._speedups(), commit)

    def geomean(self, by: str | None = None) -> pd.DataFrame:
        """Geometric mean of the speedups at every commit, only over the lines measured at all of them.

        Columns: `geomean`, over `n` lines `of` so many; `by` one of suite, case and device there is one for each.
        """
        return frames_speedups.geomean(self._speedups(), by)

    def _speedups(self) -> pd.DataFrame:
        return self._frame if self._frame.columns.nlevels == 2 else self.speedup()

    def plot(self, of: str = "speedup", *, ax: "Axes | None" = None, detect: Detector | None = None) -> "Axes":
        """Draw column `of` against the commits with matplotlib, a line a series; gaps stay gaps.

        Dotted lines stand where another environment or method starts, dashed ones where `detect` (for example
        `perftrack.judge.change_points`) sees a change of level. Draws into `ax`, else into a new figure. UsageError
        where there is no matplotlib, nothing to draw, or more than 20 lines.
        """
        commits, lines = self._few(of)
        try:
            from matplotlib import pyplot as plt  # noqa: PLC0415 - optional, and slow
        except ImportError as error:
            raise UsageError(
                "plot() needs matplotlib, which is not installed: pip install 'perftrack[plot]'; "
                "without it, `.perftrack` itself shows the lines in a notebook"
            ) from error
        if ax is None:
            _, ax = plt.subplots(layout="constrained")
        places = np.arange(len(commits))
        for line in lines:
            values = np.array([np.nan if value is None else value for value in line.points])
            (drawn,) = ax.plot(places, values, marker=".", label=plain(line.name).replace("$", r"\$"))
            changes = changes_of(line.points, line.borders, detect) if detect else []
            for place, style in [(one, ":") for one in line.borders] + [(one, "--") for one, _ in changes]:
                ax.axvline(place - 0.5, color=drawn.get_color(), linestyle=style, linewidth=1)
        shown = places[:: max(1, len(places) // 10)]
        ax.set_xticks(shown, [commits[place] for place in shown], rotation=45, ha="right")
        ax.set(xlabel="commit", ylabel=of)
        ax.legend(fontsize="small")
        return ax

    def _few(self, of: str) -> tuple[list[str], list[Line]]:
        commits, lines = self.lines(of)
        if not lines:
            raise UsageError(f"there is nothing to draw: no commit of this frame has a number in {of!r}")
        if len(lines) > MOST_LINES:
            raise UsageError(f"{len(lines)} lines are more than {MOST_LINES}, choose with case=, device= or variant=")
        return commits, lines

    def _repr_html_(self) -> str:
        """The lines as SVG, without matplotlib."""
        commits, lines = self._few("speedup")
        span = f"{commits[0]} to {commits[-1]}"
        return "".join(
            f"<figure>{chart.svg(line.points, title=plain(f'{line.name}, {span}'), borders=line.borders)}"
            f"<figcaption>{escape(plain(line.name))}: {_last(line)}</figcaption></figure>"
            for line in lines
        )

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> Iterator["Text"]:
        """The lines as sparklines."""
        from rich.text import Text  # noqa: PLC0415 - rich takes a tenth of a second

        _, lines = self._few("speedup")
        unicode = not options.ascii_only
        for line in lines:
            newest = line.points[-max(1, options.max_width - 2) :]
            yield Text(plain(f"{line.name}: {_last(line)}"), style="bold")
            yield Text(chart.sparkline(newest, unicode=unicode), style="cyan", no_wrap=True)


def _last(line: Line) -> str:
    newest = next(value for value in reversed(line.points) if value is not None)
    return f"last speedup {newest:.2f}x, {sum(value is not None for value in line.points)} commits measured"


def _wide(frame: pd.DataFrame) -> tuple[list[str], list[Line]]:
    commits = [_short(str(commit)) for commit in frame.columns.get_level_values(1)]
    lines = [
        Line(_name(key), _values(row))
        for key, row in zip(frame.index, frame.to_numpy(dtype="float64", na_value=np.nan), strict=True)
    ]
    return commits, [line for line in lines if any(value is not None for value in line.points)]


def _long(frame: pd.DataFrame, of: str) -> tuple[list[str], list[Line]]:
    missing = [name for name in (*_SERIES, "commit", "dirty", "env_key", "method_key", of) if name not in frame]
    if missing:
        raise UsageError(
            f"this frame has no column {missing[0]!r}: .perftrack draws what results(), history() and speedups() give"
        )
    if frame[of].dtype.kind not in "fi":
        raise UsageError(f"{of!r} is no column of numbers; draw speedup, median_us, utilization or another one")
    commit = frame["commit"].astype("str") + frame["dirty"].map({True: "+dirty", False: ""}).astype("str")
    cells = frame[[*_SERIES, "env_key", "method_key"]].astype("str").assign(commit=commit.to_numpy())
    cells = cells.assign(value=frame[of].to_numpy(dtype="float64", na_value=np.nan)).reset_index(drop=True)
    commits = list(dict.fromkeys(cells["commit"]))
    place = {name: number for number, name in enumerate(commits)}
    lines: list[Line] = []
    for key, part in cells.dropna(subset=["value"]).groupby(list(_SERIES), sort=True):
        newest = part.drop_duplicates("commit", keep="last")
        places = [place[name] for name in newest["commit"]]
        values: list[float | None] = [None] * len(commits)
        for at, value in zip(places, newest["value"], strict=True):
            values[at] = float(value)
        segment = (newest["env_key"] + "/" + newest["method_key"]).to_numpy()
        borders = [at for at, one, before in zip(places[1:], segment[1:], segment[:-1], strict=True) if one != before]
        lines.append(Line(_name(key), tuple(values), tuple(borders)))
    return [_short(name) for name in commits], lines


def _name(key: Any) -> str:
    """`suite: case variant on device`."""
    suite, case, device, *variant = map(str, key)
    return f"{suite}: {' '.join([case, *variant])} on {device}"


def _values(row: Any) -> tuple[float | None, ...]:
    return tuple(None if np.isnan(value) else float(value) for value in row)


def _short(commit: str) -> str:
    return commit[:7] + commit[40:]

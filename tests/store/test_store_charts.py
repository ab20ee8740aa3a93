"""`.perftrack` on frames: charts with gaps and borders, and what a notebook or rich shows."""

import io
import math
import subprocess
import sys

import pandas as pd
import pytest
import store_builders as build
from rich.console import Console

import perftrack
from perftrack.errors import UsageError
from perftrack.judge.value import Interval
from perftrack.model import Environment
from perftrack.store import Store

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")
pyplot = pytest.importorskip("matplotlib.pyplot")
CASE = build.case().key


def measure(store, number, commit, time_s, driver):
    """A finished run; `time_s` None: it failed."""
    run = build.run(number, head=build.revision(commit), base=None, started_us=1_700_000_000_000_000 + number)
    store.begin_run(run)
    environment = Environment(entries={"driver": driver})
    store.add_job(run.uid, build.case(), build.job(environment=environment), build.device())
    summary = build.failed_summary()
    if time_s:
        speedup = Interval(2e-5 / time_s, 1.9e-5 / time_s, 2.1e-5 / time_s)
        summary = build.summary(
            time_s=time_s, q10_s=time_s, q90_s=time_s, speedup=speedup, environment_digest=environment.digest
        )
    store.finish_run(run.uid, state="complete", finished_us=1_700_000_200_000_000, summaries=[summary], findings=())


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    """Five commits: the third failed, the last two have another driver, the fourth was measured twice."""
    path = str(tmp_path_factory.mktemp("charts") / "perf.db")
    with Store.open(path) as store:
        for number, (commit, time_s, driver) in enumerate(
            [(1, 1e-5, "580"), (2, 1e-5, "580"), (3, None, "580"), (4, 9e-6, "590"), (4, 8e-6, "590"), (5, 8e-6, "590")]
        ):
            measure(store, number, commit, time_s, driver)
    with perftrack.open(path) as opened:
        yield opened


@pytest.fixture(autouse=True)
def closed():
    """Figures that nobody closes are kept, and warned about."""
    yield
    pyplot.close("all")


def drawn(ax):
    return [[None if math.isnan(value) else round(value, 3) for value in line.get_ydata()] for line in ax.get_lines()]


def test_a_history_is_drawn_with_its_gap_and_its_border(database):
    ax = database.history(CASE).perftrack.plot()
    line, border = ax.get_lines()
    assert drawn(ax)[0] == [2.0, 2.0, None, 2.5, 2.5]
    assert (border.get_linestyle(), list(border.get_xdata())) == (":", [2.5, 2.5])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("commit", "speedup")
    assert [tick.get_text() for tick in ax.get_xticklabels()] == [f"{number:07x}" for number in range(1, 6)]
    assert CASE in line.get_label()


def test_any_column_of_numbers_can_be_drawn_into_given_axes(database):
    figure = matplotlib.figure.Figure()
    given = figure.subplots()
    ax = database.results(case=CASE).perftrack.plot("median_us", ax=given)
    assert ax is given
    assert drawn(ax)[0] == [10.0, 10.0, None, 8.0, 8.0]


def test_speedups_are_drawn_a_line_a_row(database):
    ax = database.speedups().perftrack.plot()
    assert drawn(ax)[0] == [2.0, 2.0, None, 2.5, 2.5]


def test_changes_of_level_are_marked_inside_one_environment(database):
    asked = []

    def detect(values):
        asked.append(len(values))
        return [(1, 1)]

    ax = database.history(CASE).perftrack.plot(detect=detect)
    assert asked == [3, 2]
    assert [line.get_linestyle() for line in ax.get_lines()] == ["-", ":", "--", "--"]


@pytest.mark.parametrize(
    ("frame", "of", "said"),
    [
        (pd.DataFrame({"a": [1]}), "speedup", "has no column 'suite'"),
        ("results", "case", "'case' is no column of numbers"),
        ("results", "nosuch", "has no column 'nosuch'"),
        ("results", "utilization", None),
        ("empty", "speedup", "there is nothing to draw"),
    ],
)
def test_what_cannot_be_drawn_is_said(database, frame, of, said):
    frames = {"results": database.results, "empty": lambda: database.results(case="nosuch")}
    given = frames[frame]() if isinstance(frame, str) else frame
    if said is None:
        assert given.perftrack.plot(of).get_ylabel() == of
    else:
        with pytest.raises(UsageError, match=said):
            given.perftrack.plot(of)


def test_more_lines_than_can_be_told_apart_are_refused(database):
    one = database.results()
    many = pd.concat([one.assign(case=f"case[n={number}]") for number in range(21)])
    with pytest.raises(UsageError, match="21 lines are more than 20, choose with case="):
        many.perftrack.plot()


def test_a_notebook_and_rich_need_no_matplotlib(database):
    charts = database.history(CASE).perftrack
    shown = charts._repr_html_()
    assert (shown.count("<polyline"), shown.count("stroke-dasharray")) == (2, 1)
    assert "last speedup 2.50x, 4 commits measured" in shown
    console = Console(file=io.StringIO(), width=80)
    console.print(charts)
    assert "▁▁·██" in console.file.getvalue()


def test_hostile_names_are_only_names(database):
    frame = database.results().assign(case="<script>$x^\x00", suite="a\n\u202eb")
    shown = frame.perftrack._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;$x^\\x00" in shown
    label = frame.perftrack.plot().get_lines()[0].get_label()
    assert label.startswith(r"a \u202eb: <script>\$x^\x00")


def test_without_matplotlib_the_remedy_is_said(database):
    program = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import perftrack\n"
        f"perftrack.open({str(database._store.label)!r}).history({CASE!r}).perftrack.plot()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert done.stderr.splitlines()[-1].startswith(
        "perftrack.errors.UsageError: plot() needs matplotlib, which is not installed: pip install 'perftrack[plot]'"
    )

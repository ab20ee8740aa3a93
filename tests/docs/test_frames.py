"""The page of columns has every column of every frame, with its type and unit, and what each frame takes."""

import inspect
import re
from pathlib import Path

import pytest

import perftrack
from perftrack.store import Store, frames_columns
from perftrack.store.frames import Database
from perftrack.store.frames_filters import Filters

PAGE = Path(__file__).parents[2] / "docs" / "frames.md"
SECTIONS = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL))
UNITS = {
    r"_us(_base|_head|_before|_after)?$": "µs",
    r"_s$": "s",
    r"_pct$": "%",
    r"_mhz$": "MHz",
    r"gbps$": "10⁹ B/s",
    r"tflops$": "10¹²/s",
    r"_bytes$": "B",
}
OTHERS = {"close", "export", "iter_results", "sql"}


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("store") / "perf.db")
    Store.open(path).close()
    with perftrack.open(path) as opened:
        yield opened


def listed(frame):
    rows = re.findall(r"^\| `(\w+)` \| (.*) \| (.*) \| (.+) \|$", SECTIONS[frame], flags=re.MULTILINE)
    assert rows, frame
    return rows


def test_every_frame_is_there_with_what_it_takes():
    frames = {
        name for name, of in inspect.getmembers(Database, inspect.isfunction) if not name.startswith("_")
    } - OTHERS
    assert set(SECTIONS) == frames
    for name in frames:
        takes = []
        for given in list(inspect.signature(getattr(Database, name)).parameters.values())[1:]:
            takes += Filters.__annotations__ if given.kind is given.VAR_KEYWORD else [given.name]
        takes = [one for one in takes if one != "columns"]
        assert f"Takes: {', '.join(takes) or 'none'}.\n" in SECTIONS[name], name


@pytest.mark.parametrize("name", ["results", "latest", "change_points", "rounds", "regressions", "devices", "runs"])
def test_every_column_is_there_with_its_type(database, name):
    frame = getattr(database, name)()
    frame = frame if frame.index.names == [None] else frame.reset_index()
    assert [row[:2] for row in listed(name)] == [(column, str(kind)) for column, kind in frame.dtypes.items()]


def test_the_columns_of_a_comparison_are_there():
    kinds = frames_columns.frame(frames_columns.COMPARE, ()).dtypes
    assert [row[:2] for row in listed("compare")] == [(column, str(kind)) for column, kind in kinds.items()]


def test_units_are_those_of_the_names():
    for frame in SECTIONS.keys() - {"history", "speedups"}:
        for name, kind, unit, meaning in listed(frame):
            by_name = next((unit for end, unit in UNITS.items() if re.search(end, name)), "")
            assert unit.strip() == ("UTC" if kind.startswith("datetime") else by_name), (frame, name)
            assert len(meaning) > 3

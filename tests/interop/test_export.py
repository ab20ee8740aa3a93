"""What is written for other tools is valid there, and is the same number when it comes back."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perftrack.errors import IncompleteError, UsageError
from perftrack.interop.document import Hints
from perftrack.interop.export import export, label
from perftrack.interop.formats import sessions
from perftrack.interop.value import Notes
from perftrack.judge.value import Interval, Summary
from perftrack.model import Revision, Status

HEAD = Revision(
    sha="a" * 40, tree="b" * 40, dirty=False, parent=None, position=1, committed_us=1_700_000_000_000_000, subject="s"
)
NAMES = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=30)
TIMES = st.floats(min_value=1e-12, max_value=1e6, allow_subnormal=False)


def summary(case="add[n=1]", time_s: float | None = 1.25e-6, **fields):
    known = {
        "suite": "elementwise",
        "case_key": case,
        "device_class": "cpu-x-2c",
        "device_uuid": "CPU-1",
        "environment_digest": "e",
        "variant": "fused",
        "side": "head",
        "status": Status.OK if time_s else Status.FAILED,
        "time_s": time_s,
        "q10_s": 1e-6,
        "q90_s": 2e-6,
        "samples": 40,
    }
    return Summary(**(known | fields))


def read(text, path):
    """Times by name, as the file is imported."""
    path.write_text(text, encoding="utf-8")
    notes = Notes(path.name)
    (session,) = sessions(path, None, notes, Hints())
    found = {one.case: one.time_s for one in session.readings()}
    assert notes.bad == notes.left_out == []
    return found


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("export") / "out.json"


@pytest.mark.parametrize("name", ["bencher", "github-action-benchmark"])
@settings(max_examples=40, deadline=None)
@given(st.dictionaries(NAMES, TIMES, min_size=1, max_size=5))
def test_what_is_exported_comes_back_the_same_to_the_last_bit(path, name, found):
    summaries = [summary(case, time_s) for case, time_s in found.items()]
    text = export(name, "repo", HEAD, summaries)
    assert read(text, path) == {label(one): one.time_s for one in summaries}


def test_bencher(path):
    text = export("bencher", "repo", HEAD, [summary(), summary("b", None), summary("c", q10_s=None, q90_s=None)])
    assert json.loads(text) == {
        "elementwise: add[n=1] fused": {"latency": {"value": 1250.0, "lower_value": 1000.0, "upper_value": 2000.0}},
        "elementwise: c fused": {"latency": {"value": 1250.0}},
    }


def test_github_action_benchmark():
    (bench,) = json.loads(export("github-action-benchmark", "repo", HEAD, [summary()]))
    assert bench == {
        "name": "elementwise: add[n=1] fused",
        "unit": "ns",
        "value": 1250.0,
        "range": "1000 … 2000",
        "extra": "revision: aaaaaaa\ndevice: cpu-x-2c\nsamples: 40",
    }


LINE = re.compile(
    r'# (TYPE|UNIT|HELP) [a-z_]+ .+|[a-z_]+\{([a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)+\} [0-9.e+-]+|# EOF', re.DOTALL
)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.text(max_size=20), TIMES), min_size=1, max_size=4))
def test_openmetrics_is_one_valid_line_a_sample_whatever_the_names(found):
    text = export("openmetrics", 're"po\n', HEAD, [summary(case, time_s) for case, time_s in found])
    lines = text.split("\n")
    assert lines[-2:] == ["# EOF", ""]
    for line in lines[:-1]:
        assert LINE.fullmatch(line), line
    values = [float(line.rpartition(" ")[2]) for line in lines if line.startswith("perftrack_time_seconds{")]
    assert sorted(values) == sorted(time_s for _, time_s in found)


def test_openmetrics_has_a_speedup_where_there_is_one_and_every_device():
    both = [summary(speedup=Interval(2.5, 2.4, 2.6)), summary(device_class="H200", time_s=1e-6)]
    lines = export("openmetrics", "repo", HEAD, both).splitlines()
    assert "# TYPE perftrack_time_seconds gauge" in lines
    assert "# UNIT perftrack_time_seconds seconds" in lines
    labels = f'repo="repo",revision="{"a" * 40}",suite="elementwise",case="add[n=1]",variant="fused"'
    assert [line for line in lines if not line.startswith("#")] == [
        f'perftrack_time_seconds{{{labels},device_class="H200"}} 1e-06',
        f'perftrack_time_seconds{{{labels},device_class="cpu-x-2c"}} 1.25e-06',
        f'perftrack_speedup_ratio{{{labels},device_class="cpu-x-2c"}} 2.5',
    ]


def test_several_devices_need_a_choice_where_the_format_has_no_place_for_them():
    with pytest.raises(UsageError, match="bencher has no place for devices, and there are H200, cpu-x-2c: name one"):
        export("bencher", "repo", HEAD, [summary(), summary(device_class="H200")])


def test_nothing_with_a_time_is_nothing_to_export():
    with pytest.raises(IncompleteError, match="no result with a time"):
        export("openmetrics", "repo", HEAD, [summary(time_s=None), summary(side="base")])

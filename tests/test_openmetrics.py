import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from perftrack.openmetrics import Family, Sample, render

letters = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@given(
    st.lists(st.tuples(letters, letters, st.floats(allow_nan=False)), unique_by=lambda one: one[:2], max_size=5),
    letters,
)
def test_a_strict_reader_gets_back_what_was_written(samples, said):
    family = Family("x_ratio", said, tuple(Sample({"a": a, "b": b}, value) for a, b, value in samples), unit="ratio")
    read = list(text_string_to_metric_families(render([family])))
    got = [(one.labels["a"], one.labels["b"], one.value) for found in read for one in found.samples]
    assert got == samples
    assert [found.unit for found in read] == (["ratio"] if samples else [])


def test_the_text_by_hand():
    families = [
        Family("build", "What it is.", (Sample({"version": '0.1 "a"\\b\n'}, 1),), kind="info"),
        Family("x_seconds", "Time\nspent.", (Sample({}, 0.5), Sample({"a": "b"}, math.inf, 12.5)), unit="seconds"),
        Family("nothing", "No number.", (Sample({}, math.nan),)),
    ]
    assert render(families) == (
        "# TYPE build info\n"
        "# HELP build What it is.\n"
        'build_info{version="0.1 \\"a\\"\\\\b\\n"} 1.0\n'
        "# TYPE x_seconds gauge\n"
        "# UNIT x_seconds seconds\n"
        "# HELP x_seconds Time\\nspent.\n"
        "x_seconds 0.5\n"
        'x_seconds{a="b"} +Inf 12.500000\n'
        "# EOF\n"
    )


@pytest.mark.parametrize(("name", "unit"), [("a b", ""), ("1a", ""), ("time", "seconds"), ("time_s", "seconds")])
def test_names_that_the_format_forbids(name, unit):
    with pytest.raises(ValueError, match="a metric cannot be called"):
        Family(name, "", (), unit=unit)

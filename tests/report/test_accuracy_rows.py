"""A change of accuracy is news of its own: above what did not move, in the counts, and never red."""

import json

import pytest
from report_builders import ADD, CLASS, NORM, SOFTMAX, case, device, finding, run, slower, summaries

from perftrack.model import Accuracy, Verdict
from perftrack.report import as_json, markdown, text
from perftrack.report.build import build
from perftrack.report.layout import Look

CASES = [case(ADD), case(SOFTMAX), case(NORM)]
MEASURED = [
    *summaries(ADD, SOFTMAX, NORM, error_l2=1.1e-7),
    *summaries(ADD, SOFTMAX, NORM, error_l2=1.0e-7, side="base"),
]


def less(key=ADD, **more):
    return finding(key, **{"accuracy": Accuracy.LESS, "error_head": 8.8e-7, "error_base": 2.2e-7, **more})


def made(*findings):
    return build(run(), CASES, [device()], MEASURED, findings)


def more_accurate(key=NORM):
    return less(key, accuracy=Accuracy.MORE, error_head=1e-7, error_base=3e-7)


def test_a_lost_accuracy_is_a_row_and_a_count_and_the_exit_code_stays():
    report = made(less(), finding(SOFTMAX), more_accurate())
    assert (report.verdict, report.exit_code, report.reasons) == ("GREEN", 0, ())
    assert (report.less_accurate, report.more_accurate, report.counts[Verdict.SAME]) == (1, 1, 3)
    worse, better = report.accuracy
    assert (worse.case, worse.accuracy, worse.error_base, worse.error_head) == (ADD, Accuracy.LESS, 2.2e-7, 8.8e-7)
    assert (worse.baseline, worse.baseline_error_base, worse.baseline_error_head) == ("unfused", 1.0e-7, 1.1e-7)
    assert (better.case, better.accuracy) == (NORM, Accuracy.MORE)
    assert worse.next == report.rows[0].next


def test_in_text_it_stands_below_what_is_slower_and_above_noise():
    shown = text.render(
        made(slower(NORM), less(), finding(SOFTMAX, Verdict.AMBIGUOUS, ratio=1.01, spread=0.04)), Look(width=90)
    )
    assert shown.index("SLOWER  ") < shown.index("accuracy  ") < shown.index("ambiguous ")
    block = shown[shown.index("accuracy  ") : shown.index("ambiguous ")].splitlines()
    assert block[:4] == [
        f"accuracy  {ADD} fused  elementwise on {CLASS}",
        "          less accurate: relative L2 error against float64 2.2e-07 -> 8.8e-07 (4.0 times),",
        "          within the tolerance",
        "          unfused 1.0e-07 -> 1.1e-07",
    ]
    assert block[4].startswith("          next  perftrack submit elementwise -k ")


def test_a_green_headline_counts_it():
    lines = text.render(made(less(), finding(SOFTMAX), more_accurate())).splitlines()
    assert lines[0].startswith("GREEN  no confirmed slowdown: 3 same; 1 less accurate, 1 more accurate")
    assert "rest    3 same; 1 more accurate" in lines
    assert f"better  more accurate: fused of {NORM} on {CLASS}, error 3.0e-07 -> 1.0e-07" in lines


def test_better_is_told_in_one_line_each_and_three_at_most():
    keys = [f"copy[n={n}]" for n in range(5)]
    lines = text.render(made(*map(more_accurate, keys))).splitlines()
    assert sum(line.startswith("better ") for line in lines) == 4
    assert "better  more accurate: and 2 more" in lines
    assert not any(line.startswith("accuracy") for line in lines)


def test_where_ten_rows_are_worse_it_is_still_counted():
    report = made(*(slower(f"bad[n={n}]") for n in range(12)), less())
    shown = text.render(report)
    assert "accuracy  " not in shown
    assert "rest    2 slower, 1 same; 1 less accurate" in shown


def test_a_lost_accuracy_from_an_exact_result_comes_first_and_has_no_factor():
    report = made(less(ADD), less(NORM, error_base=0.0, error_head=2e-8))
    assert [row.case for row in report.accuracy] == [NORM, ADD]
    assert "float64 0 -> 2.0e-08, within the tolerance" in text.render(report)


def test_a_slower_variant_can_be_both():
    report = made(slower(accuracy=Accuracy.LESS, error_head=8.8e-7, error_base=2.2e-7), finding(SOFTMAX))
    assert (report.verdict, report.less_accurate) == ("RED", 1)
    shown = text.render(report)
    assert shown.index("SLOWER  ") < shown.index("accuracy  ")


def test_in_markdown_it_is_a_row_of_the_table():
    source = markdown.render(made(less(), finding(SOFTMAX), more_accurate()))
    (row,) = [line for line in source.splitlines() if line.startswith("| accuracy |")]
    assert "less accurate\\: relative L2 error against float64 2.2e\\-07 \\-&gt; 8.8e\\-07 \\(4.0 times\\)" in row
    assert row.count("|") == 8
    assert "Not shown: 3 same; 1 more accurate." in source
    assert "more accurate: fused of softmax" not in source
    assert "more accurate: fused of residual" in source


def test_in_json_it_is_a_list_of_its_own():
    document = json.loads(as_json.render(made(less(), finding(SOFTMAX))))
    assert (document["less_accurate"], document["more_accurate"], document["exit_code"]) == (1, 0, 0)
    assert document["accuracy"][0]["accuracy"] == "less-accurate"
    assert document["accuracy"][0]["error_head"] == 8.8e-7


@pytest.mark.parametrize("head", [None, 8.8e-7])
def test_a_finding_without_the_word_makes_no_row(head):
    assert made(finding(ADD, error_head=head, error_base=2.2e-7)).accuracy == ()

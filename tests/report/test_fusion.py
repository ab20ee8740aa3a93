"""Where fusion helps and where it does not: by row in words, by suite in geometric means."""

import json

import msgspec
import pytest
from report_builders import ADD, CLASS, NORM, SOFTMAX, case, device, finding, run, summaries, summary

from perftrack.judge.value import Interval
from perftrack.model import Status
from perftrack.report import as_json, markdown, text, words
from perftrack.report.build import build
from perftrack.report.layout import Look, table
from perftrack.report.value import CardUse, SuiteLine


def gained(key, vector, gain, *, efficiency=None, **more):
    factors = {"vectorisation": Interval(vector, vector, vector), "fusion_gain": Interval(gain, gain, gain)}
    return summaries(key, **factors, fusion_efficiency=efficiency, **more)


def first(cases, measured, **more):
    return build(run(base=False), cases, [device()], measured, [], **more)


def test_a_suite_has_the_geometric_means_of_its_uncached_cases():
    cases = [case(key) for key in (ADD, SOFTMAX, NORM, "tiny[n=8]")]
    measured = [
        *gained(ADD, 1.0, 1.0, efficiency=1.0),
        *gained(SOFTMAX, 4.0, 2.0, efficiency=0.64),
        *gained(NORM, 2.0, 4.0),
        *gained("tiny[n=8]", 9.0, 9.0, efficiency=9.0, cached=True),
    ]
    (line,) = first(cases, measured).devices[0].suites
    assert (line.suite, line.cases, line.measured, line.no_gain) == ("elementwise", 3, 4, 1)
    assert (line.vectorisation, line.fusion_gain) == (pytest.approx(2.0), pytest.approx(2.0))
    assert line.fusion_efficiency == pytest.approx(0.8)  # of the two whose model says what is moved


def test_the_candidate_declared_first_that_has_a_time_stands_for_its_case():
    cases = [case(ADD, "unfused", "steps", "fused", "graph"), case(NORM, "unfused", "steps", "fused", "graph")]
    fast = {"fusion_gain": Interval(3.0, 3.0, 3.0)}
    measured = [
        *gained(ADD, 1.0, 2.0),
        summary(ADD, "graph", **fast),
        *gained(NORM, 1.0, 2.0)[:2],
        summary(NORM, "fused", status=Status.WRONG),
        summary(NORM, "graph", **fast),
    ]
    (line,) = first(cases, measured).devices[0].suites
    assert line.fusion_gain == pytest.approx(6**0.5)


def test_without_steps_fusion_is_unknown_and_not_1():
    measured = summaries(ADD, vectorisation=None, fusion_gain=None)
    report = first([case(ADD, "unfused", "fused")], measured)
    assert report.devices[0].suites == (SuiteLine(suite="elementwise", cases=0, measured=1),)
    assert (report.rows[0].vectorisation, report.rows[0].fusion_gain) == (None, None)
    shown = text.render(report)
    assert "suites" not in shown.split("run  ")[0]
    assert "7.54x       -       -" in shown
    assert "no gain:" not in shown.split("run  ")[0]


@pytest.mark.parametrize(
    ("gain", "note"),
    [(2.0, ""), (1.05, ""), (1.049, "no gain"), (1.0, "no gain"), (0.96, "no gain"), (0.95, "loss"), (None, "")],
)
def test_a_row_says_in_words_where_fusion_does_not_help(gain, note):
    row = msgspec.structs.replace(first([case(ADD)], summaries(ADD)).rows[0], fusion_gain=gain)
    assert words.gain_note(row) == note


def test_each_suite_and_each_device_class_has_its_own_line():
    cases = [case(ADD), case(NORM, suite="normalization")]
    other = device("GPU-9", "L4-24G")
    measured = [*gained(ADD, 1.0, 2.0), *gained(NORM, 1.0, 3.0, suite="normalization", device_class="L4-24G")]
    report = build(run(base=False), cases, [device(), other], measured, [])
    assert [[one.suite for one in line.suites] for line in report.devices] == [["elementwise"], ["normalization"]]
    document = json.loads(as_json.render(report))
    assert document["devices"][1]["suites"][0]["fusion_gain"] == pytest.approx(3.0)


def test_json_has_both_factors_and_with_a_base_too():
    report = build(run(), [case(ADD)], [device()], gained(ADD, 1.25, 1.6), [finding(ADD)])
    row = json.loads(as_json.render(report))["rows"][0]
    assert (row["vectorisation"], row["fusion_gain"]) == (1.25, 1.6)
    assert words.numbers(report.rows[0]).endswith("(head: vectorisation 1.25x, fusion 1.60x)")
    assert json.loads(as_json.render(report))["devices"][0]["suites"][0]["cases"] == 1


def test_markdown_has_factors_notes_and_suites():
    source = markdown.render(first([case(ADD)], gained(ADD, 1.25, 1.01, efficiency=1.0)))
    lines = source.splitlines()
    assert any(line.endswith("| 7.54x | 1.25x | 1.01x | 4213 | 98 % | 100 % | no gain |") for line in lines)
    assert any(line.endswith("| 1 of 1 | 1.25x | 1.01x | 100 % | 1 |") for line in lines)


def test_a_narrow_table_leaves_spare_columns_out_one_by_one():
    def shown(width):
        lines = table(["case", "a", "b", "c"], [["a long case", "11", "22", "33"]], width, align="lrrr", spare=(2, 1))
        return ["".join(piece for piece, _ in one) for one in lines]

    assert shown(23) == ["case          a   b   c", "a long case  11  22  33"]
    assert shown(12) == ["case", "   a   b   c", "a long case", "  11  22  33"]
    assert shown(11) == ["case", "   a   c", "a long case", "  11  33"]
    assert shown(7) == shown(1) == ["case", "   c", "a long case", "  33"]


def busy(*shares):
    return [
        CardUse(uuid=f"GPU-{n}234abcd-9", jobs=20 + n, busy_s=1.0, busy_share=share) for n, share in enumerate(shares)
    ]


def used(shares):
    cards = busy(*shares)
    return build(run(base=False), [case(ADD)], [device(one.uuid) for one in cards], summaries(ADD), [], use=cards)


def test_one_card_needs_no_line_of_its_own():
    report = used([0.5])
    assert words.cards(report.devices[0]) == ""
    assert json.loads(as_json.render(report))["devices"][0]["use"] == [
        {"uuid": "GPU-0234abcd-9", "jobs": 20, "busy_s": 1.0, "busy_share": 0.5}
    ]


def test_several_cards_are_told_with_their_share_of_the_work():
    report = used([0.79, 0.754, None])
    line = "3 cards: GPU-0234… 20 jobs busy 79 %, GPU-1234… 21 jobs busy 75 %, GPU-2234… 22 jobs"
    assert words.cards(report.devices[0]) == line
    assert f"{CLASS}, {line}" in text.render(report).splitlines()
    assert text.render(report, Look(unicode=False)).isascii()
    assert "GPU\\-1234… 21 jobs busy 75 %" in markdown.render(report)


def test_many_cards_are_told_by_their_range():
    shares = [0.5 + n / 100 for n in range(9)]
    assert words.cards(used(shares).devices[0]) == "9 cards: 20 to 28 jobs each, busy 50 % to 58 %"

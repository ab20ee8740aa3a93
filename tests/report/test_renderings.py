"""Whole renderings of the same two reports, kept to be read, and what each format promises beyond them."""

import json
from xml.etree import ElementTree as ET

import msgspec
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from report_builders import ADD, CLASS, NORM, SOFTMAX, case, device, finding, run, slower, summaries, summary
from test_text import REPORTS

from perftrack.judge.life import State
from perftrack.model import Cause, Status, Verdict
from perftrack.report import as_annotations, as_json_lines, as_junit, as_openmetrics, render, words
from perftrack.report.build import build
from perftrack.report.value import Remembered

ENDINGS = {"markdown": "md", "html": "html", "junit": "xml", "github": "github.txt", "openmetrics": "prom"}


@pytest.mark.parametrize("name", ["red", "fusion"])
@pytest.mark.parametrize("style", ENDINGS)
def test_the_rendering_is_the_golden_one(name, style, golden):
    golden(f"{name}.{ENDINGS[style]}", render(REPORTS[name], style, terminal=False) + "\n")


def test_the_page_folds_only_what_is_not_news():
    first, red = (render(REPORTS[name], "html", terminal=False) for name in ("fusion", "red"))
    assert "<details open>" in first
    assert "<details >" in red
    assert red.count('<span class="verdict bad">slower</span>') == 1


def made(*findings, **more):
    return build(
        run(**more), [case(ADD), case(SOFTMAX), case(NORM)], [device()], summaries(ADD, SOFTMAX, NORM), findings
    )


def outcomes(report):
    root = ET.fromstring(as_junit.render(report).encode())  # noqa: S314 - we wrote it
    tests = root.findall("testsuite/testcase")
    return {one.get("name"): next((child.tag for child in one), "passed") for one in tests}, root


def test_junit_fails_for_what_is_red_and_skips_what_has_no_verdict():
    shown, root = outcomes(
        made(
            slower(),
            finding("crash", Verdict.FAILED, newly=True),
            finding("wrong", Verdict.WRONG, newly=True),
            finding("suspect", Verdict.SLOWER, ratio=1.2),
            finding("broken before", Verdict.FAILED),
            finding("unclear", Verdict.AMBIGUOUS, ratio=1.01),
            finding("faster", Verdict.FASTER, ratio=0.8),
            finding(NORM, cause=Cause.UNFUSED_FASTER),
        )
    )
    assert shown == {
        "complete": "error",
        f"{ADD} fused": "failure",
        "wrong fused": "failure",
        "crash fused": "error",
        "suspect fused": "skipped",
        "broken before fused": "skipped",
        "unclear fused": "skipped",
        "faster fused": "passed",
        f"{NORM} fused": "passed",
    }
    assert [root.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["9", "2", "2", "3"]
    properties = {one.get("name"): one.get("value") for one in root.iter("property")}
    assert properties["base"].endswith("merge-base with main, 3 commits back")
    assert properties[f"coverage of {CLASS}"].startswith("9 of 9 variants measured")


def test_junit_tells_a_changed_accuracy_beside_the_time():
    _, root = outcomes(REPORTS["accuracy"])
    said = [one.text for one in root.iter("system-out")]
    assert [text.partition(":")[0] for text in said] == ["less accurate", "more accurate"]


def test_junit_is_not_green_where_nothing_was_measured():
    shown, _ = outcomes(build(run(), [case(ADD)], [], [], []))
    assert shown == {"complete": "error"}


def test_annotations_are_errors_only_for_what_is_red():
    lines = as_annotations.render(made(slower(), finding(NORM, Verdict.AMBIGUOUS), finding(SOFTMAX))).splitlines()
    assert [line.split(" ", 1)[0] for line in lines] == ["::notice", "::error", "::warning"]
    assert "fused 41.2 -> 49.1 µs" in lines[1]
    assert "perftrack submit elementwise -k" in lines[1]
    (silent,) = as_annotations.render(made(finding(ADD), finding(SOFTMAX), finding(NORM))).splitlines()
    assert silent.startswith("::notice title=perftrack::GREEN: no confirmed slowdown: 3 same%0A")


def test_openmetrics_has_both_sides_and_the_change():
    families = {one.name: one for one in text_string_to_metric_families(as_openmetrics.render(made(slower())))}
    times = {sample.labels["side"]: sample.value for sample in families["perftrack_time_seconds"].samples}
    assert times == {"base": pytest.approx(41.2e-6), "head": pytest.approx(49.1e-6, rel=1e-3)}
    assert families["perftrack_time_seconds"].unit == "seconds"
    assert families["perftrack_time_change_ratio"].samples[0].value == pytest.approx(1.192)
    assert families["perftrack_coverage_ratio"].samples[0].value == 1.0
    assert {sample.labels["verdict"]: sample.value for sample in families["perftrack_rows"].samples}["slower"] == 1
    changes = {one.labels["accuracy"]: one.value for one in families["perftrack_accuracy_changes"].samples}
    assert changes == {"less": 0, "more": 0}
    (info,) = families["perftrack_report"].samples
    assert (info.name, info.labels["verdict"]) == ("perftrack_report_info", "RED")


def test_json_lines_give_the_report_back_piece_by_piece():
    report = REPORTS["accuracy"]
    whole, *parts = [json.loads(line) for line in as_json_lines.render(report).splitlines()]
    for kind, name in (("row", "rows"), ("accuracy", "accuracy"), ("device", "devices")):
        whole[name] = [part for part in parts if part["kind"] == kind]
    assert msgspec.convert(whole, type(report)) == report


@pytest.mark.parametrize(
    ("report", "news"),
    [
        (made(finding(ADD), finding(SOFTMAX), finding(NORM)), False),
        (made(finding(ADD, Verdict.AMBIGUOUS), finding(SOFTMAX), finding(NORM)), False),
        (build(run(base=False), [case(ADD)], [device()], summaries(ADD), []), False),
        (made(slower()), True),
        (made(finding(ADD, Verdict.FASTER, ratio=0.8)), True),
        (made(finding(ADD, cause=Cause.UNFUSED_SLOWER)), True),
        (REPORTS["accuracy"], True),
        (build(run(), [case(ADD)], [device()], [summary(ADD, status=Status.INFRA)], []), True),
    ],
)
def test_only_news_are_worth_a_comment(report, news):
    assert words.changed(report) is news


@pytest.mark.parametrize("style", ["text", "json", "jsonl", "markdown", "html", "junit", "github"])
def test_every_format_says_which_regression_a_row_shows(style):
    report = made(slower())
    known = Remembered(id=7, state=State.ACKNOWLEDGED, text="regression 7 is acknowledged")
    (row, *others) = report.rows
    report = msgspec.structs.replace(report, rows=(msgspec.structs.replace(row, regressions=(known,)), *others))
    assert "regression 7 is acknowledged" in " ".join(render(report, style, terminal=False).split())


@pytest.mark.parametrize("style", ["text", "json", "jsonl", "markdown", "html"])
def test_what_was_fixed_is_said(style):
    report = msgspec.structs.replace(made(), fixed=("regression 7 by 80672422",))
    assert "regression 7 by 80672422" in render(report, style, terminal=False)

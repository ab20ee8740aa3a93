import re

import pytest
from report_builders import ADD, NORM, SOFTMAX, case, device, finding, run, slower, summaries, summary

from perftrack.cli.output import FORMATS
from perftrack.judge.value import Interval
from perftrack.model import Accuracy, Cause, Status, Verdict
from perftrack.report import STYLES, render, text
from perftrack.report.build import build
from perftrack.report.layout import Look, cell_width
from perftrack.report.value import CardUse

CASES = [case(ADD), case(SOFTMAX, suite="normalization"), case(NORM, suite="normalization")]
MEASURED = summaries(ADD) + summaries(SOFTMAX, NORM, suite="normalization")
FINDINGS = [
    slower(why="registers 32 -> 64, launches 1 -> 2"),
    finding(NORM, Verdict.AMBIGUOUS, ratio=1.01, spread=0.04, suite="normalization", message="the rounds disagree"),
    finding(
        SOFTMAX,
        suite="normalization",
        cause=Cause.UNFUSED_FASTER,
        speedup_head=1.94,
        message="speedup 2.31x -> 1.94x because unfused got 16.0 % faster",
    ),
    *(finding(f"copy[n={n}]") for n in (1, 2)),
]

COPY, LONG = "control_copy[dtype=float32,n=67108864]", "add_mul_relu[dtype=float32,n=4096]"
CARDS = [device("GPU-29e7aa00-1"), device("GPU-3fe1bb00-2", node="gpu-08")]

REPORTS = {
    "red": build(run(), CASES, [device()], MEASURED, FINDINGS),
    "green": build(run(), CASES, [device()], MEASURED, [finding(one.key, suite=one.suite) for one in CASES]),
    "first": build(run(base=False), CASES, [device()], MEASURED, []),
    "incomplete": build(
        run(problems=("suite gemm: ImportError: no module named foo",)),
        CASES,
        [device()],
        [*MEASURED[:-1], summary(NORM, suite="normalization", status=Status.INFRA)],
        [finding(NORM, Verdict.MISSING, suite="normalization", message="node gpu-07 was lost"), finding(ADD)],
    ),
    "fusion": build(
        run(base=False),
        [case(ADD, "unfused", "steps", "fused", "fused_elementwise"), case(LONG), case(COPY, suite="controls")],
        CARDS,
        [
            *summaries(ADD),
            summary(ADD, "fused_elementwise", time_s=270e-6, fusion_gain=Interval(0.94, 0.93, 0.95)),
            *summaries(LONG, time_s=2.48e-6, utilization=1.31, cached=True),
            *summaries(
                COPY,
                suite="controls",
                vectorisation=Interval(1.02, 1.01, 1.03),
                fusion_gain=Interval(1.0, 0.99, 1.01),
                fusion_efficiency=1.0,
            ),
        ],
        [],
        use=[
            CardUse(uuid="GPU-29e7aa00-1", jobs=24, busy_s=79.0, busy_share=0.79),
            CardUse(uuid="GPU-3fe1bb00-2", jobs=1, busy_s=3.0, busy_share=0.03),
        ],
    ),
    "accuracy": build(
        run(),
        CASES,
        [device()],
        [*MEASURED, *(summary(ADD, "unfused", side=side, error_l2=1e-7) for side in ("head", "base"))],
        [
            finding(ADD, Verdict.FASTER, ratio=0.9, accuracy=Accuracy.LESS, error_head=8.8e-7, error_base=2.2e-7),
            finding(SOFTMAX, suite="normalization", accuracy=Accuracy.MORE, error_head=1e-4, error_base=4e-4),
            finding(NORM, suite="normalization"),
        ],
    ),
}


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize("width", [80, 120, 200])
@pytest.mark.parametrize("color", [False, True])
def test_the_transcript_is_the_golden_one(name, width, color, golden):
    shown = text.render(REPORTS[name], Look(width=width, color=color))
    golden(f"{name}-{width}{'-color' * color}.txt", shown + "\n")


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize("width", [80, 100, 120, 160])
def test_only_names_and_commands_are_wider_than_the_terminal(name, width):
    lines = text.render(REPORTS[name], Look(width=width), all_rows=True).splitlines()
    wide = [line for line in lines if cell_width(line) > width]
    assert all(line.strip().startswith("next ") or "[" in line for line in wide), wide


def test_the_verdict_is_the_first_word():
    for report in REPORTS.values():
        assert text.render(report).startswith(report.verdict + "  ")


def test_at_most_ten_rows_and_a_count_of_the_rest():
    findings = [slower(f"bad[n={n}]", 1.1 + n / 100) for n in range(14)] + [finding("good[n=1]")]
    shown = text.render(build(run(), CASES, [device()], MEASURED, findings))
    assert len(re.findall(r"^SLOWER", shown, re.MULTILINE)) == 10
    assert "rest    4 slower, 1 same" in shown
    assert shown.index("bad[n=13]") < shown.index("bad[n=12]")


def test_all_rows_are_there_when_asked_for():
    shown = text.render(REPORTS["red"], all_rows=True)
    assert "copy[n=1]" in shown
    assert "change  visible  verdict" in shown


def test_colour_changes_nothing_but_colour():
    for report in REPORTS.values():
        coloured = text.render(report, Look(width=80, color=True))
        assert "\x1b[" in coloured
        stripped = [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", coloured).splitlines()]
        assert stripped == text.render(report, Look(width=80)).splitlines()


def test_ascii_where_nothing_else_can_be_shown():
    shown = text.render(REPORTS["first"], Look(unicode=False))
    assert shown.isascii()
    assert "baseline us" in shown


def test_foreign_text_cannot_break_lines_or_send_escapes():
    nasty = finding(ADD, Verdict.WRONG, newly=True, message="bad\x1b[31m\nvalue | [bold]x[/bold]")
    for color in (False, True):
        shown = text.render(build(run(), CASES, [device()], MEASURED, [nasty]), Look(color=color))
        assert r"bad\x1b[31m value | [bold]x[/bold]" in shown


@pytest.mark.parametrize(
    ("terminal", "environ", "width", "color"),
    [
        (False, {}, 160, False),
        (False, {"COLUMNS": "100", "TERM": "xterm"}, 100, False),
        (False, {"COLUMNS": "wide"}, 160, False),
        (True, {"COLUMNS": "90", "TERM": "xterm"}, 90, True),
        (True, {"COLUMNS": "90", "TERM": "xterm", "NO_COLOR": "1"}, 90, False),
        (True, {"COLUMNS": "90", "TERM": "dumb"}, 90, False),
    ],
)
def test_the_look_follows_the_environment(terminal, environ, width, color):
    seen = text.look(terminal=terminal, environ=environ, encoding="utf-8")
    assert (seen.width, seen.color, seen.unicode) == (width, color, True)


@pytest.mark.parametrize(
    ("encoding", "unicode"), [("utf-8", True), ("ascii", False), ("latin-1", False), ("x-no", False)]
)
def test_the_look_follows_the_encoding(encoding, unicode):
    assert text.look(terminal=False, environ={}, encoding=encoding).unicode is unicode


@pytest.mark.parametrize(
    ("style", "start"),
    [
        ("text", "RED  "),
        ("markdown", "### RED: "),
        ("json", "{\n"),
        ("jsonl", '{"kind":"report",'),
        ("html", "<!DOCTYPE html>"),
        ("junit", "<?xml version='1.0' encoding='utf-8'?>"),
        ("github", "::notice title=perftrack::RED: "),
        ("openmetrics", "# TYPE perftrack_report info"),
    ],
)
def test_render_knows_every_style(style, start):
    assert render(REPORTS["red"], style, terminal=False).startswith(start)
    assert style in STYLES


def test_the_command_line_knows_the_same_styles():
    assert FORMATS == STYLES

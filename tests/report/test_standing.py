"""A row says which regression it shows and how that stands; what people accepted is not red, and is said."""

import msgspec
import pytest
from report_builders import ADD, CLASS, NORM, SOFTMAX, case, device, finding, revision, run, slower, summaries

from perftrack.judge.life import CaseId, Kind, Mark, Regression, Sighting, State, case_of
from perftrack.judge.value import Finding
from perftrack.model import Accuracy, Verdict
from perftrack.report import markdown, text
from perftrack.report.build import build

CASES = [case(ADD), case(SOFTMAX), case(NORM)]
DAY_US = 86_400_000_000
RUN = run()


def regression(of: Finding, *, number=3, kind=Kind.SLOWER, found=RUN.head, gone=False, state=None, reason="as agreed"):
    """Seen by the run; with `state` marked so until 1970-01-03."""
    level = of.change.point if of.change else None
    seen = Sighting(run_uid=RUN.uid, head=RUN.head, at_us=5, gone=gone, level=level, finding=of)
    mark = Mark(case=case_of(of), state=state or State.INFRA, reason=reason, author="Ada", at_us=9, until_us=2 * DAY_US)
    return Regression(
        id=number, repo="perftrack", found=found, base=RUN.base, device_class=CLASS, kind=kind, found_us=5,
        sightings=(seen,), marks=(mark,) if state else (),
    )  # fmt: skip


def made(findings, *regressions, now_us=DAY_US):
    return build(
        RUN, CASES, [device()], summaries(ADD, SOFTMAX, NORM), findings, regressions=regressions, now_us=now_us
    )


@pytest.mark.parametrize("state", [State.ACKNOWLEDGED, State.INVALID, State.INFRA])
def test_what_is_marked_is_green_until_its_day(state):
    red = slower()
    report = made([red, finding(SOFTMAX)], regression(red, state=state))
    assert (report.verdict, report.exit_code, report.rows[0].red) == ("GREEN", 0, False)
    said = text.render(report)
    assert said.startswith(f"GREEN  nothing red: 1 {state}; 1 slower, 1 same")
    assert f"regression 3, {state} by Ada until 1970-01-03: as agreed" in said
    assert "perftrack ack" not in said
    later = made([red, finding(SOFTMAX)], regression(red, state=state), now_us=2 * DAY_US)
    assert (later.verdict, later.exit_code) == ("RED", 1)
    assert f"open again: {state} until 1970-01-03, which has passed" in text.render(later)
    assert "perftrack ack ID --reason TEXT" in text.render(later)


def test_one_open_regression_in_a_row_is_enough():
    red = slower()
    report = made([red], regression(red, state=State.INVALID), regression(red, number=4))
    assert (report.exit_code, [one.state for one in report.rows[0].regressions]) == (1, [State.INVALID, State.OPEN])


def test_red_rows_that_are_all_of_earlier_commits_are_said_not_to_be_new():
    red, other = slower(), slower(SOFTMAX)
    old = revision("a1b2c3d4", "before that")
    known = [regression(one, found=old) for one in (red, other)]
    report = made([red, other], *known)
    assert report.exit_code == 1
    assert text.render(report).startswith(f"RED  2 confirmed slowdowns on {CLASS}, none of them new")
    assert "regression 3, since a1b2c3d, open" in text.render(report)
    assert ", none of them new" not in text.render(made([red, other], known[0], regression(other, number=4)))
    assert ", none of them new" not in text.render(made([red, other]))


def test_a_mark_on_the_time_says_nothing_of_the_accuracy():
    both = slower(accuracy=Accuracy.LESS, error_head=4e-7, error_base=1e-7)
    report = made(
        [both], regression(both, state=State.ACKNOWLEDGED), regression(both, number=4, kind=Kind.LESS_ACCURATE)
    )
    assert report.rows[0].regressions[0].id == 3
    assert report.accuracy[0].regressions[0].text == "regression 4, open"
    assert report.exit_code == 0


def test_what_is_gone_has_a_line_of_its_own():
    back = finding(ADD, Verdict.FASTER, ratio=0.9)
    report = made([back], regression(back, found=revision("a1b2c3d4"), gone=True))
    said = f"regression 3 (slower since a1b2c3d on {CLASS}) is gone in every case"
    assert report.fixed == (said,)
    assert f"fixed   {said}" in text.render(report)
    assert "regression 3" in markdown.render(report)
    assert not report.rows[0].regressions


def test_reasons_of_others_are_no_markup():
    red = slower()
    report = made(
        [red], regression(red, state=State.ACKNOWLEDGED, reason="<script>alert(1)</script> | **bold**\x1b[0m")
    )
    written = markdown.render(report)
    assert "<script>" not in written
    assert "\x1b" not in written + text.render(report)
    assert "**bold**" not in written


def test_another_runs_sighting_is_not_this_runs():
    red = slower()
    (seen,) = regression(red).sightings
    other = msgspec.structs.replace(regression(red), sightings=(msgspec.structs.replace(seen, run_uid="f" * 32),))
    assert made([red], other).rows[0].regressions == ()
    assert CaseId("elementwise", ADD, "fused") == seen.case

import msgspec
import pytest
from report_builders import ADD, CLASS, NORM, SOFTMAX, case, device, finding, revision, run, slower, summaries, summary

from perftrack.judge.value import Finding
from perftrack.model import Cause, Status, SweepPart, Verdict
from perftrack.report.build import build
from perftrack.report.words import BISECTED, LEFT_BY, goes_on

CASES = [case(ADD), case(SOFTMAX), case(NORM)]
MEASURED = summaries(ADD, SOFTMAX, NORM)


def made(findings, *, of=None, measured=MEASURED, cases=CASES, devices=None, **more):
    return build(of or run(), cases, devices or [device()], measured, findings, **more)


def test_nothing_slower_is_green():
    report = made([finding(ADD), finding(SOFTMAX), finding(NORM, Verdict.FASTER, ratio=0.9)])
    assert (report.verdict, report.exit_code, report.reasons) == ("GREEN", 0, ())
    assert report.counts[Verdict.SAME] == 2
    assert report.counts[Verdict.SLOWER] == 0
    assert set(report.counts) == set(Verdict)


@pytest.mark.parametrize(
    "red",
    [
        slower(),
        finding(ADD, Verdict.WRONG, newly=True, message="off by 3 %"),
        finding(ADD, Verdict.FAILED, newly=True, message="SIGSEGV"),
    ],
)
def test_confirmed_slower_and_newly_broken_are_red(red):
    report = made([red, finding(SOFTMAX), finding(NORM)])
    assert (report.verdict, report.exit_code) == ("RED", 1)
    assert report.rows[0].red


@pytest.mark.parametrize(
    "harmless",
    [
        finding(ADD, Verdict.FAILED, message="also fails at base: SIGSEGV"),
        finding(ADD, Verdict.AMBIGUOUS, ratio=1.1, spread=0.2),
        finding(ADD, Verdict.FASTER, ratio=0.8),
        finding(ADD, cause=Cause.UNFUSED_FASTER),
        finding(ADD, Verdict.UNSTABLE),
        finding(ADD, Verdict.NEW),
    ],
)
def test_the_rest_is_not_red(harmless):
    assert made([harmless, finding(SOFTMAX), finding(NORM)]).exit_code == 0


def test_red_outweighs_incomplete_and_keeps_its_reasons():
    report = made([slower(), finding(SOFTMAX, Verdict.MISSING), finding(NORM)])
    assert (report.exit_code, report.reasons) == (1, ("1 missing",))


@pytest.mark.parametrize(
    ("findings", "more", "reason"),
    [
        ([finding(ADD, Verdict.MISSING)], {}, "1 missing"),
        (
            [finding(ADD, Verdict.AMBIGUOUS, message="flaky: wrong in the first look (off), fine in 5 fresh rounds")],
            {},
            "1 flaky: failed or wrong in some rounds, fine in others",
        ),
        (
            [slower(confirmed=False)],
            {},
            "1 suspected of being slower, not confirmed by fresh rounds",
        ),
        ([], {"measured": []}, "nothing was measured"),
        ([], {"devices": [device(device_class="L4-24G")]}, "nothing was measured"),
        ([], {"measured": MEASURED[:-1]}, f"only 8 of 9 variants answered on {CLASS}"),
        ([], {"incomplete": ["no base: the history is too shallow"]}, "no base: the history is too shallow"),
        (
            [],
            {"of": run(state="interrupted")},
            f"interrupted; `perftrack submit --resume {'0419' * 2}` measures the rest",
        ),
    ],
)
def test_incomplete_has_a_reason_and_exit_4(findings, more, reason):
    report = made(findings, **more)
    assert (report.verdict, report.exit_code, report.reasons) == ("INCOMPLETE", 4, (reason,))


@pytest.mark.parametrize(
    ("note", "sweep", "how"),
    [
        ("parent", None, f"`perftrack submit --resume {'0419' * 2}`"),
        (f"3 commits back, {LEFT_BY} a1b2c3d4", None, "`perftrack submit --resume a1b2c3d4`"),
        (BISECTED, None, "the same `perftrack bisect` command"),
        ("a sweep", SweepPart(name="nightly", commits=()), "`perftrack sweep nightly`"),
    ],
)
def test_what_goes_on_with_a_run_is_the_command_that_it_came_from(note, sweep, how):
    one = run(note=note)
    assert goes_on(msgspec.structs.replace(one, options=msgspec.structs.replace(one.options, sweep=sweep))) == how


def test_a_run_that_is_being_reported_while_it_ends_is_not_interrupted():
    assert made([], of=run(state="running")).exit_code == 0


def test_faults_of_the_code_are_answers_and_losses_are_not():
    faults = [*MEASURED[:-1], summary(NORM, status=Status.WRONG)]
    assert made([], measured=faults).devices[0].measured == 9
    for status in (Status.UNSTABLE, Status.INFRA):
        lost = [*MEASURED[:-1], summary(NORM, status=status)]
        assert made([], measured=lost).devices[0].measured == 8


def test_skipped_variants_are_not_expected_and_are_told_once():
    reason = "package torch is not installed"
    more = [summary(key, "torch_compile", status=Status.SKIPPED, message=reason) for key in (ADD, SOFTMAX)]
    cases = [case(key, "unfused", "steps", "fused", "torch_compile") for key in (ADD, SOFTMAX)]
    report = made([], measured=[*summaries(ADD, SOFTMAX), *more], cases=cases)
    assert (report.devices[0].measured, report.devices[0].expected) == (6, 6)
    assert report.skipped == (f"torch_compile on {CLASS}: {reason} (2 cases)",)


def test_a_newly_skipped_variant_is_expected_and_missing():
    measured = [*MEASURED[:-1], summary(NORM, status=Status.SKIPPED, message="needs sm_100")]
    report = made([finding(NORM, Verdict.MISSING, message="newly skipped: needs sm_100")], measured=measured)
    assert (report.devices[0].measured, report.devices[0].expected) == (8, 9)


def test_a_removed_case_is_not_expected():
    gone = case("old[n=1]", "unfused", "fused")
    report = made([finding("old[n=1]", Verdict.REMOVED)], cases=[*CASES, gone])
    assert (report.exit_code, report.devices[0].expected) == (0, 9)


def test_rows_come_worst_first():
    findings = [
        finding("g[n=1]", Verdict.SAME, cause=Cause.IDENTICAL_CODE),
        finding("f[n=1]", Verdict.SAME, cause=Cause.UNFUSED_FASTER),
        finding("e[n=1]", Verdict.FASTER, ratio=0.5),
        finding("d[n=1]", Verdict.AMBIGUOUS, ratio=1.1),
        finding("c[n=1]", Verdict.FAILED),
        slower("b[n=1]", 1.05),
        slower("a[n=1]", 1.5),
        finding("z[n=1]", Verdict.WRONG, newly=True),
        finding("h[n=1]", Verdict.NEW),
    ]
    order = "".join(row.case[0] for row in made(findings).rows)
    assert order == "abzcdefgh"


def test_without_a_base_everything_measured_is_new_and_green():
    report = made([], of=run(base=False))
    assert (report.verdict, report.exit_code, report.base) == ("GREEN", 0, None)
    assert [(row.case, row.verdict) for row in report.rows] == [
        (key, Verdict.NEW) for key in sorted((ADD, SOFTMAX, NORM))
    ]
    row = report.rows[0]
    assert (row.utilization, row.fusion_gain, row.rounds) == (0.982, 2.01, 3)
    assert row.speedup_head == pytest.approx(961 / 127.4)


def test_without_a_base_wrong_is_red_all_the_same():
    report = made([], of=run(base=False), measured=[*MEASURED[:-1], summary(NORM, status=Status.WRONG)])
    assert (report.exit_code, report.rows[0].verdict) == (1, Verdict.WRONG)


def test_the_achieved_figures_come_from_the_head():
    base = [msgspec.structs.replace(one, side="base", utilization=0.1) for one in MEASURED]
    report = made([finding(ADD)], measured=[*base, *MEASURED])
    assert report.rows[0].utilization == 0.982


def test_next_measures_the_row_again():
    row = made([finding(ADD)]).rows[0]
    assert row.next == (
        "perftrack submit elementwise -k 'add_mul_relu[dtype=float32,n=67108864]' "
        "--head 7e3f9a1c0ffe --base b81c0d4deadb -d NVIDIA-H200-141G"
    )


def test_next_of_a_dirty_tree_measures_the_tree_as_it_is():
    row = made([finding(ADD)], of=run(head=revision(dirty=True))).rows[0]
    assert "--head" not in row.next
    assert made([], of=run(base=False)).rows[0].next.endswith("--base none -d NVIDIA-H200-141G")


def test_geometric_means_pair_the_variants_of_both_sides():
    findings = [
        finding(ADD, speedup_head=2.0, speedup_base=4.0),
        finding(SOFTMAX, speedup_head=8.0, speedup_base=4.0),
        finding(NORM, speedup_head=100.0, speedup_base=None),
    ]
    line = made(findings).devices[0]
    assert (line.speedup_head, line.speedup_base, line.speedups) == (pytest.approx(4.0), pytest.approx(4.0), 2)
    assert (line.detectable, line.detectable_worst) == (0.003, 0.003)


def test_each_device_class_is_covered_by_itself():
    other = device("GPU-9", "L4-24G", "gpu-21")
    report = made([], devices=[device(), device("GPU-4"), other])
    assert [(one.device_class, one.measured, one.cards) for one in report.devices] == [
        (CLASS, 9, ("GPU-3fe1", "GPU-4")),
        ("L4-24G", 0, ("GPU-9",)),
    ]
    assert report.exit_code == 4


def test_cases_of_another_backend_are_not_expected():
    cpu = device("cpu-1", "AMD-EPYC-2c", "n", backend="cpu")
    report = made([], devices=[device(), cpu], cases=[*CASES, case("tiny[n=1]", backend="cpu")])
    assert [one.expected for one in report.devices] == [9, 3]


def test_a_yardstick_without_a_time_is_a_problem():
    measured = [*MEASURED, summary("x[n=1]", "steps", status=Status.WRONG, message="off by 3 %")]
    assert made([], measured=measured).problems == (f"steps of x[n=1] on {CLASS} is wrong: off by 3 %",)


def test_a_broken_baseline_that_is_a_finding_is_not_told_twice():
    measured = [*MEASURED, summary("x[n=1]", "unfused", status=Status.WRONG)]
    broken = Finding(
        suite="elementwise", case_key="x[n=1]", device_class=CLASS, variant="unfused", verdict=Verdict.WRONG, newly=True
    )
    report = made([broken], measured=measured)
    assert (report.problems, report.exit_code) == ((), 1)


def test_the_empty_suite_measures_nothing():
    report = build(run(), [], [], [], [])
    assert (report.verdict, report.reasons, report.devices) == ("INCOMPLETE", ("nothing was measured",), ())

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from judge_builders import CLASS, case, measured, result, rounds

from perftrack import stats
from perftrack.judge.paired import compare, decide
from perftrack.model import Cause, Resources, Status, Verdict

PAIR = case("unfused", "fused")


def only(results, head=PAIR, base=PAIR):
    (finding,) = compare(head, base, results, device_class=CLASS)
    return finding


@pytest.mark.parametrize(
    ("ratios", "expected"),
    [
        ((1.050, 1.051, 1.049), Verdict.SLOWER),
        ((0.950, 0.951, 0.949), Verdict.FASTER),
        ((1.001, 0.999, 1.000), Verdict.SAME),
        ((1.019, 1.0191, 1.0189), Verdict.SAME),  # below the minimum, surely
        ((1.02, 1.02, 1.02), Verdict.SLOWER),
        ((1.10, 1.00, 1.05), Verdict.AMBIGUOUS),
        ((1.00, 1.04), Verdict.AMBIGUOUS),
        ((1.05, 1.05, 1.05, 1.05, 1.05, 1.05, 1.05, 1.05, 1.05, 0.999), Verdict.AMBIGUOUS),  # one disagrees
    ],
)
def test_decide(ratios, expected):
    assert decide(ratios, 0.02) is expected


@given(st.lists(st.floats(0.8, 1.25), min_size=2, max_size=8), st.floats(0.005, 0.1), st.randoms())
def test_decide_mirrors_and_does_not_depend_on_the_order(ratios, min_effect, chance):
    swapped = {Verdict.SLOWER: Verdict.FASTER, Verdict.FASTER: Verdict.SLOWER}
    verdict = decide(ratios, min_effect)
    mirrored = decide([1 / ratio for ratio in ratios], min_effect)
    limits = (1 + min_effect, 1 / (1 + min_effect), 1)
    assume(all(abs(value / limit - 1) > 1e-9 for value in stats.ratio_interval(ratios) for limit in limits))
    assert mirrored is swapped.get(verdict, verdict)
    assert decide(chance.sample(ratios, len(ratios)), min_effect) is verdict


def test_a_slower_fused_variant():
    finding = only(rounds((11.0, 11.01, 10.99)))
    assert (finding.verdict, finding.cause) == (Verdict.SLOWER, Cause.FUSED_SLOWER)
    assert finding.change.point == pytest.approx(1.1, rel=1e-4)
    assert finding.head_s == pytest.approx(11.0 * 1.05e-6)
    assert finding.base_s == pytest.approx(10.0 * 1.05e-6)
    assert finding.speedup_base == pytest.approx(2.0)
    assert finding.speedup_head == pytest.approx(20 / 11, rel=1e-4)
    assert finding.ratios == pytest.approx((1.1, 1.101, 1.099))
    assert 0 < finding.detectable < 0.01
    assert not finding.confirmed
    assert not finding.red


def test_a_faster_fused_variant():
    finding = only(rounds((9.0, 9.01, 8.99)))
    assert (finding.verdict, finding.cause) == (Verdict.FASTER, Cause.FUSED_FASTER)


def test_nothing_changed():
    finding = only(rounds((10.0, 10.01, 9.99)))
    assert (finding.verdict, finding.cause, finding.message) == (Verdict.SAME, Cause.NONE, "")


def test_a_speedup_that_falls_because_the_baseline_got_faster_is_not_slower():
    finding = only(rounds((10.0, 10.01, 9.99), head_unfused=(16.0, 16.01, 15.99)))
    assert (finding.verdict, finding.cause) == (Verdict.SAME, Cause.UNFUSED_FASTER)
    assert finding.message == "speedup 2.00x -> 1.60x because unfused got 20.0 % faster"
    assert finding.baseline_change.point == pytest.approx(0.8, rel=1e-4)


def test_a_slower_baseline_flatters_the_speedup_and_is_said():
    finding = only(rounds((10.0, 10.01, 9.99), head_unfused=(25.0, 25.01, 24.99)))
    assert (finding.verdict, finding.cause) == (Verdict.SAME, Cause.UNFUSED_SLOWER)


def test_both_moved():
    finding = only(rounds((11.0, 11.01, 10.99), head_unfused=(22.0, 22.01, 21.99)))
    assert (finding.verdict, finding.cause) == (Verdict.SLOWER, Cause.BOTH)


def test_common_drift_cancels():
    # the second and third round run at half the clock: times differ by 2, the paired ratio does not
    finding = only(rounds((10.0, 20.0, 20.0), base_fused=(10.0, 20.0, 20.0), head_unfused=(20.0, 40.0, 40.0)))
    assert finding.verdict is Verdict.SAME


def test_identical_sources_are_never_slower():
    results = rounds((11.0, 11.01, 10.99), source_digest={"head": "a", "base": "a"})
    finding = only(results)
    assert (finding.verdict, finding.cause) == (Verdict.SAME, Cause.IDENTICAL_CODE)
    assert finding.change.point == pytest.approx(1.1, rel=1e-4)
    assert finding.speedup_head == pytest.approx(20 / 11, rel=1e-4)


EQUAL = {"source_digest": {"head": "a", "base": "a"}}
CODE = Resources(code_digest="c")


@pytest.mark.parametrize("head", [Resources(code_digest="d"), Resources(), Resources(code_digest="c", registers=40)])
def test_other_compiled_code_overrules_equal_sources(head):
    finding = only(rounds((11.0, 11.01, 10.99), head_resources=head, base_resources=CODE, **EQUAL))
    assert (finding.verdict, finding.cause) == (Verdict.SLOWER, Cause.FUSED_SLOWER)
    finding = only(rounds((11.0, 11.01, 10.99), head_resources=CODE, base_resources=CODE, **EQUAL))
    assert (finding.verdict, finding.cause) == (Verdict.SAME, Cause.IDENTICAL_CODE)


def test_other_code_of_the_baseline_overrules_equal_sources_for_the_baseline_alone():
    results = [
        msgspec.structs.replace(
            one,
            measurements=tuple(
                msgspec.structs.replace(each, resources=CODE)
                if (each.side, each.variant) == ("head", "unfused")
                else each
                for each in one.measurements
            ),
        )
        for one in rounds((11.0, 11.01, 10.99), head_unfused=(16.0, 16.01, 15.99), **EQUAL)
    ]
    finding = only(results)
    assert (finding.verdict, finding.cause) == (Verdict.SAME, Cause.UNFUSED_FASTER)


def test_other_sources_of_equal_compiled_code_that_is_no_slower_are_identical_code():
    other = {"source_digest": {"head": "a", "base": "b"}}
    finding = only(rounds((10.01, 10.02, 10.0), head_resources=CODE, base_resources=CODE, **other))
    assert (finding.verdict, finding.cause) == (Verdict.SAME, Cause.IDENTICAL_CODE)


def test_identical_compiled_code_that_is_no_slower_is_named():
    equal = {"head_resources": CODE, "base_resources": CODE}
    finding = only(rounds((10.01, 10.02, 10.0), **equal))
    assert (finding.verdict, finding.cause) == (Verdict.SAME, Cause.IDENTICAL_CODE)
    finding = only(rounds((10.4, 9.9, 10.0), **equal))
    assert (finding.verdict, finding.cause, finding.message) == (Verdict.SAME, Cause.IDENTICAL_CODE, "")
    finding = only(rounds((10.01, 10.02, 10.0), head_resources=Resources(code_digest="d"), base_resources=CODE))
    assert (finding.verdict, finding.cause) == (Verdict.SAME, Cause.NONE)


def test_identical_compiled_code_that_is_given_more_work_is_slower():
    finding = only(rounds((11.0, 11.01, 10.99), head_resources=CODE, base_resources=CODE))
    assert (finding.verdict, finding.cause) == (Verdict.SLOWER, Cause.FUSED_SLOWER)
    assert finding.why == "equal compiled code and geometry: look at arguments and data"
    finding = only(rounds((10.0,) * 3, head_unfused=(16.0,) * 3, head_resources=CODE, base_resources=CODE))
    assert finding.cause is Cause.UNFUSED_FASTER, "the baseline's code is equal too"


def test_identical_fused_code_beside_a_faster_baseline_names_the_baseline():
    code = Resources(code_digest="c")
    results = rounds((10.0,) * 3, head_unfused=(16.0,) * 3, head_resources=code, base_resources=code)
    assert only(results).cause is Cause.UNFUSED_FASTER


def test_unknown_digests_are_not_equal_digests():
    assert only(rounds((11.0, 11.01, 10.99), source_digest={})).verdict is Verdict.SLOWER
    assert only(rounds((11.0, 11.01, 10.99), source_digest={"head": "", "base": ""})).verdict is Verdict.SLOWER


def test_why_tells_what_else_moved():
    results = rounds(
        (11.0, 11.01, 10.99),
        head_resources=Resources(registers=64, local_bytes=16, occupancy=0.5, launches=2),
        base_resources=Resources(registers=32, local_bytes=16, occupancy=1.0, launches=None),
    )
    assert only(results).why == "likely occupancy: occupancy 100 % -> 50 %, registers 32 -> 64"


def test_a_moving_canary_makes_it_ambiguous():
    results = rounds((11.0, 11.01, 10.99))
    results[1] = msgspec.structs.replace(results[1], canary_s=(1.2e-4,) * 3)
    finding = only(results)
    assert finding.verdict is Verdict.AMBIGUOUS
    assert finding.message == "the canary moved by 20 % between rounds"
    results[1] = msgspec.structs.replace(results[1], device_uuid="GPU-2")
    assert only(results).verdict is Verdict.SLOWER  # two cards differ, that is no disturbance


def test_an_unstable_round_is_not_used():
    results = rounds((11.0, 11.01, 10.99, 30.0))
    results[3] = msgspec.structs.replace(results[3], status=Status.UNSTABLE)
    finding = only(results)
    assert (finding.verdict, finding.rounds) == (Verdict.SLOWER, 3)


def test_one_round_never_says_slower():
    finding = only(rounds((15.0,)))
    assert (finding.verdict, finding.message) == (Verdict.AMBIGUOUS, "one round is too few to tell")
    assert finding.detectable is None
    assert only(rounds((10.0,))).verdict is Verdict.SAME


def test_rounds_that_disagree_say_so():
    assert only(rounds((11.0, 9.5, 10.5))).message == "the rounds disagree"


def broken(status, base=Status.OK):
    return [
        result(
            n,
            measured("head", "unfused", 20e-6),
            measured("head", "fused", 10e-6, status=status, message="why"),
            measured("base", "unfused", 20e-6),
            measured("base", "fused", 10e-6, status=base, message="then"),
        )
        for n in (1, 2, 3)
    ]


@pytest.mark.parametrize(
    ("status", "verdict", "message"),
    [
        (Status.WRONG, Verdict.WRONG, "why"),
        (Status.FAILED, Verdict.FAILED, "why"),
        (Status.INVALID, Verdict.FAILED, "invalid: why"),
    ],
)
def test_newly_broken_is_red(status, verdict, message):
    finding = only(broken(status))
    assert (finding.verdict, finding.message, finding.newly, finding.red) == (verdict, message, True, True)


def test_broken_on_both_sides_is_not_red():
    finding = only(broken(Status.WRONG, base=Status.FAILED))
    assert (finding.verdict, finding.red) == (Verdict.WRONG, False)
    assert finding.message == "also fails at base: why"


def test_a_repaired_variant_is_new():
    finding = only(broken(Status.OK, base=Status.WRONG))
    assert (finding.verdict, finding.message) == (Verdict.NEW, "runs now, is wrong at base: then")


def test_a_dead_job_speaks_for_neither_side_and_is_red():
    finding = only([result(1, status=Status.FAILED, message="ended by SIGSEGV")])
    assert (finding.verdict, finding.message, finding.red) == (Verdict.FAILED, "ended by SIGSEGV", True)


def test_newly_skipped_is_missing():
    finding = only(broken(Status.SKIPPED))
    assert (finding.verdict, finding.message) == (Verdict.MISSING, "newly skipped: why")


def test_skipped_on_both_sides_gives_no_finding():
    assert compare(PAIR, PAIR, broken(Status.SKIPPED, Status.SKIPPED), device_class=CLASS) == []


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ([], "not measured"),
        ([result(1, status=Status.INFRA, message="node lost")], "node lost"),
        ([result(1, measured("head", "unfused", 2e-5), measured("head", "fused", 1e-5))], "the base was not measured"),
        (
            [result(1, measured("head", "fused", 1e-5)), result(2, measured("base", "fused", 1e-5))],
            "no round measured head and base together",
        ),
    ],
)
def test_missing_is_not_green(results, message):
    finding = only(results)
    assert (finding.verdict, finding.message) == (Verdict.MISSING, message)


def test_unstable_names_its_side():
    assert only(broken(Status.UNSTABLE)).message == "why"
    finding = only(broken(Status.OK, base=Status.UNSTABLE))
    assert (finding.verdict, finding.message) == (Verdict.UNSTABLE, "at base: then")


def test_new_and_removed():
    assert only(rounds((10.0,) * 3), base=None).verdict is Verdict.NEW
    assert only(rounds((10.0,) * 3), base=None).speedup_head == pytest.approx(2.0)
    assert only([], head=None).verdict is Verdict.REMOVED
    more = case("unfused", "fused", "fused_shared")
    by_name = {one.variant: one.verdict for one in compare(PAIR, more, rounds((10.0,) * 3), device_class=CLASS)}
    assert by_name == {"fused": Verdict.SAME, "fused_shared": Verdict.REMOVED}


def test_a_new_variant_that_is_wrong_is_red():
    assert only(broken(Status.WRONG), base=None).red


def test_baseline_and_steps_are_no_candidates_but_a_broken_baseline_is_found():
    of = case("unfused", "steps", "fused")
    names = [one.variant for one in compare(of, of, rounds((10.0,) * 3), device_class=CLASS)]
    assert names == ["fused"]
    results = [
        msgspec.structs.replace(
            one,
            measurements=(
                measured("head", "unfused", 1e-5, status=Status.WRONG, message="off by 3 %"),
                *one.measurements[1:],
            ),
        )
        for one in rounds((10.0,) * 3)
    ]
    found = {one.variant: one for one in compare(PAIR, PAIR, results, device_class=CLASS)}
    assert (found["unfused"].verdict, found["unfused"].red) == (Verdict.WRONG, True)
    assert (found["fused"].verdict, found["fused"].speedup_head) == (Verdict.SAME, None)


def test_other_cases_and_classes_are_ignored():
    strange = msgspec.structs.replace(rounds((99.0,))[0], device_class="L4-24G", round=1)
    assert only([*rounds((10.0, 10.01, 9.99)), strange]).verdict is Verdict.SAME


def test_the_minimum_effect_is_the_case_s_own():
    strict = case("unfused", "fused", min_effect=0.005)
    results = rounds((10.1, 10.1001, 10.0999))
    assert only(results).verdict is Verdict.SAME
    assert only(results, strict, strict).verdict is Verdict.SLOWER


def test_no_case_at_all_is_refused():
    with pytest.raises(ValueError, match="head or of the base"):
        compare(None, None, [], device_class=CLASS)

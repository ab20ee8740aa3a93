import math
import random

import msgspec
import pytest

from perftrack.judge.confirm import EARLY_ROUNDS, key, settle, suspects, unclear
from perftrack.judge.paired import decide
from perftrack.judge.value import Finding, Interval
from perftrack.model import Cause, Verdict
from perftrack.stats import ratio_interval


def finding(verdict, *ratios, case="a", **more):
    return Finding(
        suite="s",
        case_key=case,
        device_class="d",
        variant="fused",
        verdict=verdict,
        ratios=ratios,
        rounds=len(ratios),
        change=Interval(*ratio_interval(ratios)) if len(ratios) > 1 else None,
        **more,
    )


def judged(*ratios, min_effect=0.02, **more):
    return finding(decide(ratios, min_effect), *ratios, min_effect=min_effect, **more)


FIRST = judged(1.050, 1.051, 1.049)


def settled(first, second):
    (one,) = settle([first], [second])
    return one


def test_suspects_come_worst_first_and_leave_out_what_is_settled():
    findings = [
        finding(verdict, case=verdict, newly=verdict in (Verdict.FAILED, Verdict.WRONG))
        for verdict in reversed(Verdict)
    ]
    assert [one.verdict for one in suspects(findings)] == ["slower", "failed", "wrong", "ambiguous", "faster"]
    assert suspects([finding(Verdict.FAILED)]) == []  # fails at base too


def test_fresh_rounds_that_agree_confirm():
    one = settled(FIRST, judged(1.051, 1.050, 1.052, 1.049, 1.050))
    assert (one.verdict, one.confirmed, one.red, one.rounds) == (Verdict.SLOWER, True, True, 5)
    narrow = ratio_interval(one.ratios)
    assert one.change.low < narrow.low  # 99 % is wider than 95 %
    assert one.change.low > 1


def test_fresh_rounds_that_do_not_agree_clear():
    one = settled(FIRST, judged(1.004, 1.003, 1.005, 1.004, 1.004))
    assert (one.verdict, one.red) == (Verdict.SAME, False)
    assert one.message == "3 rounds said 5.0 % slower, 5 fresh rounds say 0.4 % slower"


def test_a_first_look_on_the_other_side_of_1_is_not_confirmed():
    one = settled(judged(1.05, 0.99, 1.05), judged(1.051, 1.050, 1.052, 1.049, 1.050))
    assert (one.verdict, one.confirmed) == (Verdict.AMBIGUOUS, False)
    assert one.message.endswith("the first rounds disagree")


def test_an_ambiguous_first_look_can_become_red():
    assert settled(judged(1.01, 1.09, 1.05), judged(1.051, 1.050, 1.052, 1.049, 1.050)).red


def test_faster_is_confirmed_alike():
    one = settled(judged(0.95, 0.951, 0.949), judged(0.951, 0.950, 0.952, 0.949, 0.950))
    assert (one.verdict, one.confirmed, one.red) == (Verdict.FASTER, True, False)


def test_many_suspects_ask_for_more_evidence():
    # p = 0.004: enough alone, not beyond chance among a hundred
    second = judged(1.02, 1.05, 1.04, 1.05, 1.06)
    assert settled(FIRST, second).red
    crowd = [msgspec.structs.replace(FIRST, case_key=str(n)) for n in range(100)]
    noise = [judged(0.97, 1.01, 1.0, 1.03, 0.99, case=str(n)) for n in range(100)]
    noise[0] = msgspec.structs.replace(second, case_key="0")
    one = settle(crowd, noise)[0]
    assert (one.verdict, one.cause) == (Verdict.AMBIGUOUS, Cause.NONE)
    assert "not beyond chance among this run's suspects" in one.message


def test_a_cause_that_slows_many_cases_asks_no_more_of_each():
    # p = 0.004 each: what a hundred show together is not chance
    crowd = [msgspec.structs.replace(FIRST, case_key=str(n)) for n in range(100)]
    second = [judged(1.02, 1.05, 1.04, 1.05, 1.06, case=str(n)) for n in range(100)]
    assert all(one.red for one in settle(crowd, second))


def test_one_fresh_round_confirms_nothing():
    one = settled(FIRST, finding(Verdict.AMBIGUOUS, 1.05))
    assert (one.verdict, one.red) == (Verdict.AMBIGUOUS, False)


@pytest.mark.parametrize("verdict", [Verdict.MISSING, Verdict.UNSTABLE])
def test_lost_fresh_rounds_leave_the_suspicion_standing(verdict):
    one = settled(FIRST, finding(verdict, message="node lost"))
    assert (one.verdict, one.confirmed, one.red) == (Verdict.SLOWER, False, False)
    assert one.message == "not confirmed: the fresh rounds gave no answer (node lost)"


def test_failures_are_confirmed_or_called_flaky():
    broken = finding(Verdict.WRONG, message="off by 3 %", newly=True)
    assert settled(broken, broken).confirmed
    one = settled(broken, judged(1.0, 1.001, 0.999))
    assert (one.verdict, one.red) == (Verdict.AMBIGUOUS, False)
    assert one.message == "flaky: wrong in the first look (off by 3 %), fine in 3 fresh rounds"
    assert one.flaky
    assert not settled(FIRST, judged(1.01, 1.09, 0.98)).flaky
    assert settled(broken, finding(Verdict.MISSING, message="node lost")).red
    assert settled(FIRST, broken).red


def test_wrong_in_some_rounds_of_both_looks_is_red_and_says_so():
    broken = finding(Verdict.WRONG, message="off by 3 %", newly=True)
    some = msgspec.structs.replace(broken, rounds=2)
    one = settled(some, msgspec.structs.replace(broken, rounds=4))
    assert (one.confirmed, one.red, one.rounds) == (True, True, 6)
    assert one.message == "off by 3 %; flaky, fine in 6 other rounds"
    assert settled(broken, broken).message == "off by 3 %"
    at_base = msgspec.structs.replace(broken, newly=False, message="also is wrong at base: off by 3 %")
    assert not settled(some, at_base).red, "base is no better"


def test_only_suspects_are_replaced_and_the_order_is_kept():
    calm, other = judged(1.0, 1.001, 0.999, case="calm"), judged(1.3, 1.3, 1.3, case="calm")
    assert settle([calm, FIRST], [other]) == [calm, FIRST]


# What the docstring of perftrack.judge.confirm promises, by simulation of whole runs of 100 cases.


def gauss(chance, spread):
    return chance.gauss(0, spread)


def heavy(chance, spread):
    """Student's t with 3 degrees of freedom, of the given standard deviation."""
    return spread * chance.gauss(0, 1) / math.sqrt(chance.gammavariate(1.5, 2))


def two_modes(chance, spread):
    """Each side of each process draws one of two modes 10 % apart, the worst case of it."""
    return chance.gauss(0, spread) + 0.1 * (chance.random() < 0.5) - 0.1 * (chance.random() < 0.5)


def shared_by_the_process(chance, spread):
    """A spread between processes twice as large as the spread inside one, over 25 blocks' median."""
    return chance.gauss(0, spread) + chance.gauss(0, spread / 2) * 1.25 / math.sqrt(25)


def run(chance, noise, spread, effects, min_effect):
    """The settled findings of one run with these true effects, one case each."""

    def draw(rounds):
        return [[math.exp(math.log1p(effect) + noise(chance, spread)) for _ in range(rounds)] for effect in effects]

    def look(drawn):
        return [judged(*ratios, case=str(number), min_effect=min_effect) for number, ratios in drawn.items()]

    first = look(dict(enumerate(draw(3))))
    suspected = {key(one) for one in suspects(first)}
    fresh = {number: ratios for number, ratios in enumerate(draw(5)) if ("s", str(number), "d", "fused") in suspected}
    soon = {number: ratios[:EARLY_ROUNDS] for number, ratios in fresh.items()}
    on = {int(case) for _, case, _ in unclear(settle(first, look(soon)), suspected)}
    return settle(first, look({number: fresh[number] if number in on else ratios for number, ratios in soon.items()}))


def test_only_what_is_the_same_after_a_few_fresh_rounds_stops():
    steps = [judged(1.2, 1.201, 1.199, case="step"), judged(1.03, 1.01, 1.02, case="calm"), judged(1.03, 1.0, 1.05)]
    fresh = [judged(1.2, 1.201, 1.2, case="step"), judged(1.001, 1.0, 1.002, case="calm"), judged(1.0, 1.03, 1.05)]
    suspected = {key(one) for one in suspects(steps)}
    assert unclear(settle(steps, fresh), suspected) == {("s", "step", "d"), ("s", "a", "d")}
    assert unclear(settle(steps, fresh), suspected - {key(steps[0])}) == {("s", "a", "d")}


@pytest.mark.parametrize(
    ("noise", "spread", "bound"),
    [
        (gauss, 0.001, 0),
        (gauss, 0.005, 0),
        (gauss, 0.02, 2),
        (heavy, 0.02, 2),
        (shared_by_the_process, 0.02, 2),
        (two_modes, 0.002, 5),
    ],
)
def test_false_alarms_in_ten_thousand_unchanged_cases(noise, spread, bound):
    chance = random.Random(20)  # noqa: S311 - noise for a simulation
    red = sum(one.red for _ in range(100) for one in run(chance, noise, spread, [0.0] * 100, 0.02))
    assert red <= bound


@pytest.mark.parametrize(
    ("noise", "spread", "effect", "min_effect", "power"),
    [
        (gauss, 0.0012, 0.02, 0.01, 0.99),
        (gauss, 0.0012, 0.04, 0.02, 0.99),
        (gauss, 0.0025, 0.05, 0.02, 0.99),
        (gauss, 0.005, 0.05, 0.02, 0.98),
        (heavy, 0.005, 0.05, 0.02, 0.95),
        (gauss, 0.0012, 0.02, 0.02, 0.40),  # exactly the minimum: half, by definition
    ],
)
def test_true_changes_are_found_among_unchanged_cases(noise, spread, effect, min_effect, power):
    chance = random.Random(21)  # noqa: S311 - noise for a simulation
    found = 0
    for _ in range(40):
        findings = run(chance, noise, spread, [effect] * 10 + [0.0] * 40, min_effect)
        found += sum(one.red for one in findings[:10])
    assert found / 400 >= power

"""Triage of heads against stored histories: small samples, both directions, creep, and the rate of false suspicions."""

import math
from collections.abc import Hashable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perftrack.judge.shrinkage import common_noise
from perftrack.judge.triage import Moved, Past, Triage, moved_together, triage

Pasts = dict[Hashable, list[float]]
Heads = dict[Hashable, float]


def asked(pasts: Pasts, heads: Heads, *, higher_is_better: bool = False) -> dict[Hashable, Triage]:
    return triage({name: Past.of(past, higher_is_better=higher_is_better) for name, past in pasts.items()}, heads)


def draws(count: int, *, level: float = 100, spread: float = 0.01, seed: int = 1) -> list[float]:
    return (level * np.exp(spread * np.random.default_rng(seed).standard_normal(count))).tolist()


def run(count: int, *, head: float = 1.0, series: int = 20, seed: int = 0) -> tuple[Pasts, Heads]:
    """Pasts of so many values with 1 % noise, and usual heads; the head of series 0 is `head` times that."""
    generator = np.random.default_rng(seed)
    pasts: Pasts = {name: (100 * np.exp(0.01 * generator.standard_normal(count))).tolist() for name in range(series)}
    heads: Heads = {name: float(100 * np.exp(0.01 * generator.standard_normal())) for name in range(series)}
    return pasts, {**heads, 0: heads[0] * head}


@pytest.mark.parametrize(("change", "reading"), [(1.2, "higher"), (1 / 1.2, "lower"), (1.0, "usual")])
@pytest.mark.parametrize("count", [2, 3, 12, 40])
def test_a_plain_change_is_told_alike_in_both_directions(count: int, change: float, reading: str) -> None:
    answers = asked(*run(count, head=change))
    assert answers[0].reading == reading
    assert answers[0].change == pytest.approx(change - 1, abs=0.05)
    assert all(one.reading == "usual" for name, one in answers.items() if name)


def test_one_value_of_a_past_borrows_the_noise_of_the_others() -> None:
    pasts, heads = run(8)
    pasts[0] = [100.0]
    usual, plain = asked(pasts, {**heads, 0: 101.5})[0], asked(pasts, {**heads, 0: 130.0})[0]
    assert (usual.reading, plain.reading) == ("usual", "higher")
    # √2 deviations of 1 %, times 1.25 and the t of 95 %
    assert 0.03 < usual.limit < 0.045


def test_what_has_no_past_or_no_noise_is_unknown() -> None:
    answers = asked({"a": [100.0], "c": [], "d": draws(9)}, {"a": 180.0, "b": 5.0, "c": 5.0, "d": math.nan})
    assert {one.reading for one in answers.values()} == {"unknown"}
    assert asked({}, {}) == {}


@pytest.mark.parametrize(("count", "t"), [(2, 12.706), (3, 4.303), (5, 2.776)])
def test_the_limit_of_a_lone_series_is_students(count: int, t: float) -> None:
    past = draws(count)
    deviation = float(np.std(np.log(past), ddof=1))
    limit = asked({"a": past}, {"a": 100.0})["a"].limit
    assert limit == pytest.approx(math.expm1(t * 1.25 * deviation * math.sqrt(1 + 1 / count)), rel=1e-3)


def test_gaps_and_equal_values() -> None:
    past = [math.nan, 0.0, -3.0, *draws(20), math.inf]
    assert asked({"a": past}, {"a": 150.0})["a"].reading == "higher"
    equal = asked({"a": [7.0] * 12, "b": [7.0] * 12}, {"a": 7.0, "b": 7.5})
    assert (equal["a"].reading, equal["b"].reading) == ("usual", "higher")


def test_the_level_since_the_last_change_counts() -> None:
    past = [*draws(30), *draws(30, level=130, seed=2)]
    assert asked({"a": past}, {"a": 130.0}, higher_is_better=True)["a"].reading == "usual"
    assert asked({"a": past}, {"a": 100.0}, higher_is_better=True)["a"].reading == "lower"


def test_slow_creep_is_told_from_the_best_known_level() -> None:
    creeping = [value * 1.0008**at for at, value in enumerate(draws(80, spread=0.004))]
    answer = asked({"a": creeping}, {"a": creeping[-1]})["a"]
    assert answer.reading == "creeping"
    assert answer.change == pytest.approx(1.0008**70 - 1, abs=0.02)
    assert asked({"a": creeping}, {"a": creeping[-1]}, higher_is_better=True)["a"].reading == "usual"


def test_a_mode_seen_lately_is_usual() -> None:
    past = [100.0 * (1.2 if at % 11 == 3 else 1.0) * value / 100 for at, value in enumerate(draws(60, spread=0.003))]
    assert asked({"a": past}, {"a": 119.0})["a"].reading == "usual"
    assert asked({"a": past}, {"a": 140.0})["a"].reading == "higher"


@pytest.mark.parametrize("count", [2, 3, 6])
def test_few_unchanged_runs_have_any_suspicion(count: int) -> None:
    """At most 5 % are promised of Gaussian noise of one size; 1.25 times the errors leave room."""
    runs = [asked(*run(count, seed=seed)) for seed in range(100)]
    assert sum(any(one.reading != "usual" for one in answers.values()) for answers in runs) <= 5


@given(past=st.lists(st.floats(), max_size=25), head=st.floats())
@settings(max_examples=60, deadline=None)
def test_any_numbers_are_answered(past: list[float], head: float) -> None:
    answers = asked({"a": past, "b": past[:3], "c": past[:1]}, {"a": head, "b": head, "c": 1.0})
    assert all(one.reading == "unknown" or 0 <= one.p_value <= 1 for one in answers.values())


def test_common_noise_finds_the_variance_and_how_alike_the_series_are() -> None:
    generator = np.random.default_rng(3)
    alike = common_noise([(4.0 * generator.chisquare(5) / 5, 5) for _ in range(400)])
    assert alike.variance == pytest.approx(4.0, rel=0.1)
    assert alike.degrees > 30
    drawn = common_noise([(4.0 * 6 / generator.chisquare(6) * generator.chisquare(5) / 5, 5) for _ in range(2000)])
    assert drawn.variance == pytest.approx(4.0, rel=0.15)
    assert drawn.degrees == pytest.approx(6, rel=0.25)
    assert common_noise([(1.0, 3), (1.0, 3)]).moderated(9.0, 4) == (9.0, 4)


def readings(*words: str, change: float = 0.03) -> list[Triage]:
    return [Triage(word, change, 0.01, 0.001) for word in words]


def test_a_card_moved_where_most_of_its_series_stand_out_in_one_direction() -> None:
    told = [("a", one) for one in readings("higher", "higher", "usual", "unknown", "unknown")]
    told += [("a", Triage("higher", 0.09, 0.01, 0.001))]
    told += [("b", one) for one in readings("usual", "usual", "higher", "usual")]
    told += [("c", one) for one in readings("lower", "lower", "lower", change=-0.02)]
    assert moved_together(told) == {"a": Moved("higher", 3, 4, 0.03), "c": Moved("lower", 3, 3, -0.02)}


@pytest.mark.parametrize(
    "words",
    [
        ("higher", "higher"),
        ("higher", "higher", "higher", "usual", "usual", "usual"),
        ("higher", "higher", "higher", "higher", "lower"),
        ("creeping", "creeping", "creeping"),
        ("unknown", "unknown", "unknown"),
    ],
)
def test_few_or_half_or_both_ways_is_not_together(words: tuple[str, ...]) -> None:
    assert moved_together([("a", one) for one in readings(*words)]) == {}

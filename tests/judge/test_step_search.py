"""The search for a step: which commit is next, how many rounds it takes, and what is left over."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perftrack.judge.bisect import (
    MOST_ROUNDS,
    Answer,
    bracket,
    classify,
    culprits,
    is_step,
    next_place,
    rounds_needed,
)


@given(data=st.data(), count=st.integers(2, 200))
def test_the_culprit_is_always_among_what_is_left_and_alone_where_nothing_is_skipped(
    data: st.DataObject, count: int
) -> None:
    culprit = data.draw(st.integers(1, count - 1))
    inner = st.sets(st.integers(1, count - 2)) if count > 2 else st.just(set[int]())
    broken = data.draw(st.one_of(st.just(set[int]()), inner))
    answers: dict[int, Answer] = {}
    while (place := next_place(count, answers)) is not None:
        assert 0 < place < count - 1
        assert place not in answers
        answers[place] = "skipped" if place in broken else "bad" if place >= culprit else "good"
    left = culprits(count, answers)
    assert culprit in left
    assert all(place in broken for place in left[:-1])
    assert left[-1] not in broken
    if not broken:
        assert list(left) == [culprit]
        assert len(answers) <= math.ceil(math.log2(count))


@given(data=st.data(), count=st.integers(3, 60))
def test_a_search_that_is_broken_off_goes_on_where_it_was(data: st.DataObject, count: int) -> None:
    culprit = data.draw(st.integers(1, count - 1))
    asked: list[int] = []
    answers: dict[int, Answer] = {}
    while (place := next_place(count, answers)) is not None:
        asked.append(place)
        answers[place] = "bad" if place >= culprit else "good"
    known = asked[: data.draw(st.integers(0, len(asked)))]
    again: dict[int, Answer] = {place: answers[place] for place in known}
    rest: list[int] = []
    while (place := next_place(count, again)) is not None:
        rest.append(place)
        again[place] = answers[place]
    assert known + rest == asked


def test_answers_that_contradict_each_other_still_end() -> None:
    assert bracket(10, {2: "bad", 5: "good", 7: "bad"}) == (0, 2)
    assert culprits(2, {}) == range(1, 2)


@pytest.mark.parametrize(
    ("ratios", "known"),
    [
        ([1.10, 1.11, 1.09, 1.10, 1.10], True),
        ([0.90, 0.91, 0.89, 0.90, 0.90], True),
        ([1.10, 0.95, 1.03, 1.20, 0.99], False),
        ([1.0, 1.0, 1.0], False),
        ([1.0001, 1.0001, 1.0001], False),
        ([1.2, 1.2, 1.2], True),
    ],
)
def test_a_step_lies_beyond_the_noise_of_its_rounds(ratios: list[float], known: bool) -> None:
    assert is_step(ratios) is known


def test_rounds_follow_from_step_and_noise() -> None:
    # mean of the logarithms 0.0952, their deviation 0.0129, Student's t of 4 degrees at 99 % 4.604
    assert rounds_needed([1.08, 1.10, 1.10, 1.10, 1.12]) == math.ceil((2 * 4.6041 * 0.012860 / 0.095194) ** 2)
    assert rounds_needed([1.5, 1.5001, 1.4999]) == 2
    assert rounds_needed([1.02, 1.00, 1.05]) == MOST_ROUNDS
    steps = [rounds_needed([1 + size + noise for noise in (-0.01, 0, 0.01, 0)]) for size in (0.03, 0.05, 0.1, 0.5)]
    assert steps == sorted(steps, reverse=True)


@given(step=st.floats(1.02, 5), share=st.floats(-1, 2))
def test_a_commit_is_as_the_nearer_end_both_ways(step: float, share: float) -> None:
    if abs(share - 0.5) > 1e-6:
        expected = "bad" if share > 0.5 else "good"
        assert classify(step**share, step) == expected
        assert classify(step**-share, 1 / step) == expected

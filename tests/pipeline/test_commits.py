"""Which commits of a history a sweep takes."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from perftrack.pipeline.commits import gaps, steps
from perftrack.revision import Commit


def line(length, *, tagged=(), merges=()):
    return [Commit(sha=str(place), tree="", tagged=place in tagged, merge=place in merges) for place in range(length)]


def places(chosen):
    return [int(commit.sha) for commit in chosen]


def test_the_newest_then_tags_then_merges_then_the_widest_stretch():
    history = line(21, tagged={5}, merges={10})
    assert places(steps(history, 5)) == [20, 5, 10, 15, 2]
    assert places(steps(history, 2)) == [20, 5]
    assert places(steps(history, 1)) == [20]
    assert steps([], 5) == []


@given(st.integers(1, 60), st.sets(st.integers(0, 59)), st.integers(1, 70))
def test_fewer_steps_are_the_beginning_of_more_and_all_are_every_commit_once(length, tagged, count):
    history = line(length, tagged=tagged)
    everything = places(steps(history, None))
    assert sorted(everything) == list(range(length))
    assert places(steps(history, count)) == everything[:count]


@given(st.integers(1, 60), st.sets(st.integers(0, 59)))
def test_a_filled_gap_is_nowhere_measured_and_halves_the_widest_stretch(length, measured):
    history = line(length)
    there = sorted(place for place in measured if place < length)
    filled = places(gaps(history, {str(place) for place in measured}, None))
    assert sorted([*filled, *there]) == list(range(length))
    if filled:
        borders = [-1, *there, length]
        widths = [right - left for left, right in itertools.pairwise(borders)]
        left = max(place for place in borders if place < filled[0])
        right = min(place for place in borders if place > filled[0])
        assert right - left == max(widths)
        assert abs((right - filled[0]) - (filled[0] - left)) <= 1


def test_a_line_that_is_swept_evenly_has_no_stretch_twice_as_wide_as_another():
    chosen = sorted([-1, *places(steps(line(1000), 32))])
    widths = [right - left for left, right in itertools.pairwise(chosen)]
    assert max(widths) <= 2 * min(widths) + 1

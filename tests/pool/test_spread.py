"""How a round is spread over the devices of a class."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perftrack.model import Case, Job, Traffic
from perftrack.pool.spread import WORTH_S, spread


def job(number, prefer=""):
    case = Case(
        suite="suite",
        benchmark="b",
        key=f"b[i={number}]",
        backend="cuda",
        params={"i": number},
        variants=("unfused", "fused"),
        traffic=Traffic(read_bytes=1, write_bytes=1),
        min_effect=0.02,
    )
    return Job(case=case, device_class="FakeGPU-1G", round=1, prefer=prefer)


def deal(costs, busy, homes=None, prefer=None):
    """Numbers of the jobs that each device gets."""
    jobs = [job(number, (prefer or {}).get(number, "")) for number in range(len(costs))]

    def number(one):
        return one.case.params["i"]

    dealt = spread(
        jobs, busy, cost_s=lambda one: costs[number(one)], home=lambda one: (homes or {}).get(number(one), "")
    )
    return {uuid: [number(one) for one in mine] for uuid, mine in dealt.items()}


def test_the_longest_goes_first_to_the_device_that_is_idle_first():
    assert deal([3, 9, 4, 4], {"A": 0, "B": 0}) == {"A": [1], "B": [0, 2, 3]}


def test_a_device_that_is_still_busy_gets_less():
    assert deal([5, 5, 5, 5], {"A": 10, "B": 0}) == {"A": [2], "B": [0, 1, 3]}


def test_a_case_stays_where_it_was_measured():
    assert deal([5, 5, 5, 5], {"A": 0, "B": 0}, homes={0: "B", 1: "A", 2: "B", 3: "A"}) == {"A": [1, 3], "B": [0, 2]}


def test_a_case_leaves_its_device_where_the_other_would_wait_for_long():
    homes = {0: "A", 1: "A", 2: "A", 3: "B"}
    assert deal([6, 4, 6, 4], {"A": 0, "B": 0}, homes=homes) == {"A": [1, 2], "B": [0, 3]}
    small = WORTH_S / 10
    assert deal([small] * 4, {"A": 0, "B": 0}, homes=homes) == {"A": [0, 1, 2], "B": [3]}


def test_a_preference_is_kept_whatever_it_costs_and_a_device_that_is_gone_is_not():
    assert deal([9, 9, 9], {"A": 0, "B": 0}, prefer=dict.fromkeys(range(3), "A")) == {"A": [0, 1, 2], "B": []}
    assert deal([9, 9], {"A": 0, "B": 0}, prefer=dict.fromkeys(range(2), "gone")) == {"A": [0], "B": [1]}


_COSTS = st.lists(st.floats(0.01, 30), max_size=40)


@given(_COSTS, st.lists(st.floats(0, 60), min_size=1, max_size=5), st.data())
def test_every_job_is_dealt_once_and_no_move_worth_it_is_left(costs, loads, data):
    busy = {f"GPU-{number}": load for number, load in enumerate(loads)}
    homes = data.draw(st.dictionaries(st.integers(0, 40), st.sampled_from(sorted(busy))))
    dealt = deal(costs, busy, homes=homes)
    assert sorted(number for mine in dealt.values() for number in mine) == list(range(len(costs)))
    assert all(mine == sorted(mine) for mine in dealt.values()), "in their order"
    ends = {uuid: busy[uuid] + sum(costs[number] for number in mine) for uuid, mine in dealt.items()}
    gap = max(ends.values()) - min(ends.values())
    lasts = [uuid for uuid, end in ends.items() if end > max(ends.values()) - 1e-6]
    gains = [[min(costs[number], gap - costs[number]) for number in dealt[uuid]] for uuid in lasts]
    assert any(all(gain < WORTH_S + 1e-6 for gain in each) for each in gains), "of one of those that end last"


def test_one_device_does_everything():
    assert deal([1, 2], {"A": 100}) == {"A": [0, 1]}


@pytest.mark.parametrize("cards", [1, 3])
def test_nothing_to_do_is_nothing_for_everybody(cards):
    assert deal([], {f"GPU-{number}": 0 for number in range(cards)}) == {f"GPU-{n}": [] for n in range(cards)}

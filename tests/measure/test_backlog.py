"""How calls are issued so that a device never waits for its host, and how it is told that one did."""

from perftrack.measure.backlog import MAX_LEAD_S, lead_s, most_calls, needs_graph, starved, unrolled_calls
from perftrack.measure.engine import Cost, Rotation


def rotation(sets, kernels=1):
    return Rotation(tuple([lambda: None] * sets), lambda: None, kernels)


def test_short_and_launch_bound_bodies_need_a_graph():
    assert needs_graph(Cost(device_s=15e-6, host_s=5e-6))
    assert needs_graph(Cost(device_s=25e-6, host_s=110e-6))
    assert not needs_graph(Cost(device_s=70e-6, host_s=110e-6))
    assert not needs_graph(Cost(device_s=250e-6, host_s=20e-6))


def test_the_head_start_covers_what_the_host_falls_behind_and_is_bounded():
    fast, slow = Cost(250e-6, 10e-6), Cost(30e-6, 90e-6)
    assert lead_s(fast, 1000) == lead_s(fast, 1) < 150e-6
    calls = most_calls(slow)
    assert calls * (90e-6 - 30e-6) < lead_s(slow, calls) <= MAX_LEAD_S
    assert most_calls(fast) > 1000


def test_a_graph_is_whole_rotations_of_about_two_milliseconds():
    assert unrolled_calls(rotation(4), Cost(2.5e-6, 5e-6)) == 800
    assert unrolled_calls(rotation(64), Cost(70e-6, 5e-6)) == 64
    assert unrolled_calls(rotation(4, kernels=10), Cost(2e-6, 5e-6)) == 412  # no more than about 4096 nodes
    assert unrolled_calls(rotation(4), Cost(1e-6, 1e-3)) == 100  # no more than about 0.1 s to capture


def test_a_device_that_waited_is_told_from_one_that_did_not():
    ahead = {"first_s": 0.0, "last_s": 200e-6, "begin_s": 100e-6, "end_s": 1100e-6, "times": 10}
    assert not starved(**ahead)
    assert starved(**{**ahead, "begin_s": 5e-6, "end_s": 1005e-6})  # it began as soon as the first call was there
    assert starved(**{**ahead, "last_s": 995e-6})  # the last call came when the ninth was over
    assert not starved(**{**ahead, "last_s": 995e-6, "times": 1})

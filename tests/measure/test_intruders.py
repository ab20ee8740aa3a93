"""Who else computes on a card, told from what the driver lists."""

import pytest

from perftrack.measure.nvml import in_use_by, intruders

OWN = 7


@pytest.mark.parametrize(
    ("first", "now", "expected"),
    [
        ({OWN}, {OWN}, set()),
        ({OWN}, {OWN, 9}, {9}),
        ({OWN, 8}, {OWN, 8}, {8}),  # it slipped in while this process made its context
        (set(), {OWN}, set()),  # listed late
        (set(), {OWN, 9}, {9}),
        ({1001}, {1001}, set()),  # numbered otherwise, as in a container
        ({1001}, {1001, 1002}, {1002}),
        (set(), {1001}, set()),  # numbered otherwise and listed late
        (set(), set(), set()),  # the driver does not say
    ],
)
def test_this_process_is_never_its_own_intruder_and_others_are(first, now, expected):
    assert intruders(first, now, OWN) == expected


def test_intruders_are_named():
    assert in_use_by({9}) == "another process computes on it (pid 9)"
    assert in_use_by({12, 9}) == "2 other processes compute on it (pid 9, 12)"

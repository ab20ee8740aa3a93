"""The clock of a sample, from stamps before and after it."""

import numpy as np
import pytest

from perftrack.measure.clock import clocks_mhz, differ, median_mhz

MICROSECOND = 1000
BOOT = 2**62
"""Counters count from when the card was started: differences must not be taken in floating point."""


def stamps(*samples):
    """Each sample a pair (before, after) of lists of (multiprocessor, cycles, nanoseconds) since BOOT."""
    made = np.array(samples, np.uint64)
    made[..., 1:] += np.uint64(BOOT)
    return made


def test_the_clock_is_cycles_by_nanoseconds_of_the_median_multiprocessor():
    before = [(0, 0, 0), (1, 5, 0), (2, 9, 3)]
    after = [(0, 396_000, 200 * MICROSECOND), (1, 392_005, 200 * MICROSECOND), (2, 198_009, 100 * MICROSECOND + 3)]
    slower = [(0, 300_000, 200 * MICROSECOND), (1, 300_005, 200 * MICROSECOND), (2, 300_009, 200 * MICROSECOND + 3)]
    assert clocks_mhz(stamps((before, after), (before, slower))) == (pytest.approx(1980), pytest.approx(1500))


def test_multiprocessors_are_paired_by_number_wherever_their_blocks_ran():
    before = [(7, 0, 0), (3, 1_000_000, 0), (5, 10, 0)]
    after = [(3, 1_200_000, 100 * MICROSECOND), (7, 200_000, 100 * MICROSECOND), (3, 1_200_020, 100 * MICROSECOND + 10)]
    assert clocks_mhz(stamps((before, after))) == (pytest.approx(2000),)


def test_what_cannot_be_told_is_none():
    at = [(0, 0, 0), (1, 0, 0)]
    elsewhere = [(2, 900, 900), (3, 900, 900)]
    reset = [(0, 0, 900), (1, 900, 0)]
    assert clocks_mhz(stamps((at, elsewhere), (at, at), (at, reset))) == (None, None, None)


def test_a_stamp_without_a_tick_does_not_count():
    before, after = [(0, 0, 0), (1, 0, 0)], [(0, 150_000, 100 * MICROSECOND), (1, 500_000, 100 * MICROSECOND)]
    made = stamps((before, after))
    made[0, 0, 1, 2] = 0
    assert clocks_mhz(made) == (pytest.approx(1500),)


@pytest.mark.parametrize(
    ("clocks", "different"),
    [((1980, 1945), False), ((1980, 1940), True), ((1940, None, 1980), True), ((1980, None), False), ((), False)],
)
def test_clocks_differ_beyond_two_percent(clocks, different):
    assert differ(clocks) is different


def test_the_median_is_of_the_known():
    assert median_mhz([1980.0, None, 1965.0, 1971.0]) == 1971.0
    assert median_mhz([None]) is None
    assert median_mhz([]) is None


class Card:
    """Stands for the stamp kernel on a card of two multiprocessors, whose clock is set from outside."""

    def __init__(self):
        self.cycles, self.now_ns = 10, 10

    def run(self, microseconds, mhz):
        self.cycles += microseconds * mhz
        self.now_ns += microseconds * 1000

    def stamps(self, count):
        class OnCard(np.ndarray):
            def get(self):
                return np.array(self)

        return np.zeros((count, 2, 3), np.uint64).view(OnCard)

    def stamp(self, stamps, place):
        stamps[place] = [(number, self.cycles, self.now_ns) for number in (0, 1)]


def test_each_sample_of_a_block_has_the_clock_between_its_own_stamps():
    cuda_stamps = pytest.importorskip("perftrack.measure.cuda_stamps")
    card = Card()
    made = cuda_stamps.Stamps(card)
    for clocks in ([1980, 1500, 1200], [990]):
        made.make_room(len(clocks))
        for sample, mhz in enumerate(clocks):
            card.run(50, 300)
            made.before(sample)
            card.run(200, mhz)
            made.after(sample)
        assert made.clocks_mhz(len(clocks)) == tuple(map(pytest.approx, clocks))

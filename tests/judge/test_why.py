"""What changed beside the time is told from base to head, and what most likely made the difference stands first."""

import msgspec
import pytest
from judge_builders import CLASS, case, measured, result, rounds

from perftrack.judge.paired import compare
from perftrack.judge.why import Facts, likely, why
from perftrack.model import Resources, Traffic

BASE = Facts(
    registers=64, local_bytes=0, shared_bytes=1024, occupancy=0.5, launches=1, moved_bytes=3e9, clock_mhz=1980.0
)


def changed(**more):
    return msgspec.structs.replace(BASE, **more)


@pytest.mark.parametrize(
    ("head", "change", "said"),
    [
        (BASE, 1.3, ""),
        (Facts(), 1.3, ""),
        (changed(local_bytes=48, registers=40), 1.3, "likely spills: local memory 0 -> 48 B, registers 64 -> 40"),
        (changed(launches=3), 1.3, "likely launches: launches 1 -> 3"),
        (changed(moved_bytes=3.6e9), 1.2, "likely bytes moved: bytes moved 3 GB -> 3.6 GB"),
        (changed(clock_mhz=1755.0), 1.12, "likely the clock: clock 1980 -> 1755 MHz"),
        (changed(clock_mhz=1950.0), 1.3, "clock 1980 -> 1950 MHz"),
        (changed(clock_mhz=1975.0), 1.003, ""),
        (changed(occupancy=0.25, shared_bytes=99000), 1.3,
         "likely occupancy: occupancy 50 % -> 25 %, shared memory 1024 -> 99000 B"),
        (changed(occupancy=0.25, local_bytes=8), 1.3, "likely spills: local memory 0 -> 8 B, occupancy 50 % -> 25 %"),
        (changed(registers=96), 1.3, "registers 64 -> 96"),
        (changed(local_bytes=8, launches=2), 1.3, "likely spills and launches: local memory 0 -> 8 B, launches 1 -> 2"),
        (changed(local_bytes=8), 1.01, "local memory 0 -> 8 B"),
        (changed(moved_bytes=1500.0), 0.5, "likely bytes moved: bytes moved 3 GB -> 1.5 kB"),
        (changed(clock_mhz=2100.0), 1.3, "clock 1980 -> 2100 MHz"),
        (changed(moved_bytes=0.0), 1.3, "bytes moved 3 GB -> 0 B"),
    ],
)  # fmt: skip
def test_what_changed_is_said_the_likely_reason_first(head, change, said):
    assert why(BASE, head, change, 0.02) == said


def test_the_way_back_has_the_same_reason():
    spilled = changed(local_bytes=48, occupancy=0.25)
    assert why(BASE, spilled, 1.3, 0.02) == "likely spills: local memory 0 -> 48 B, occupancy 50 % -> 25 %"
    assert why(spilled, BASE, 1 / 1.3, 0.02) == "likely spills: local memory 48 -> 0 B, occupancy 25 % -> 50 %"
    assert likely(BASE, spilled, 1.3) == ["local_bytes"]


def test_a_finding_says_it_of_the_rounds_that_measured_both_sides():
    slow = (11.0, 11.01, 10.99)
    made = rounds(
        slow,
        head_resources=Resources(registers=40, local_bytes=48, shared_bytes=0, occupancy=0.5, launches=1),
        base_resources=Resources(registers=64, local_bytes=0, shared_bytes=0, occupancy=0.5, launches=None),
    )
    of = case("unfused", "fused")
    (finding,) = compare(of, of, made, device_class=CLASS)
    assert finding.why == "likely spills: local memory 0 -> 48 B, registers 64 -> 40"


def test_the_clock_is_that_of_each_side_and_the_bytes_are_as_each_side_declares_them():
    clocks = [(1700.0, 1980.0), (1702.0, 1981.0), (None, None)]
    made = [
        result(
            number,
            measured("head", "fused", 11e-6, 11e-6, clock_mhz=head),
            measured("base", "fused", 10e-6, 10e-6, clock_mhz=base),
        )
        for number, (head, base) in enumerate(clocks, start=1)
    ]
    head = case("unfused", "fused")
    base = msgspec.structs.replace(
        head, traffic=Traffic(read_bytes=3000, write_bytes=1000, moved_bytes={"fused": 3800})
    )
    (finding,) = compare(head, base, made, device_class=CLASS)
    assert finding.why == ("likely bytes moved and the clock: bytes moved 3.8 kB -> 4 kB, clock 1980 -> 1701 MHz")

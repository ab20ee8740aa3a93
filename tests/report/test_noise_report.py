import msgspec
from report_builders import CLASS, device

from perftrack.judge.disturbance import Disturbance
from perftrack.judge.noise import DeviceNoise, Family
from perftrack.report.layout import Look
from perftrack.report.noise import NoiseReport, text

FAMILY = Family(
    suite="elementwise",
    device_class=CLASS,
    comparisons=10,
    rounds=3,
    fastest_s=2.48e-6,
    slowest_s=253.1e-6,
    deviation=0.0008,
    worst=0.0021,
    process_deviation=0.0123,
    detectable=0.0015,
    detectable_worst=0.131,
)
CARD = DeviceNoise(
    uuid="GPU-3fe1",
    device_class=CLASS,
    processes=3,
    blocks=75,
    bad_blocks=2,
    ceiling_bytes_per_s=4.2e12,
    ceiling_spread=0.002,
    canary_spread=0.0031,
    clock_low_mhz=1755.0,
    clock_high_mhz=1980.0,
)
REPORT = NoiseReport(
    head="7e3f9a1",
    head_sha="7e3f9a1" + 33 * "0",
    head_subject="softmax: no temporary row",
    rounds=3,
    families=(FAMILY, msgspec.structs.replace(FAMILY, suite="launch", fastest_s=2e-6, slowest_s=2e-6)),
    devices=(msgspec.structs.replace(device(), uuid="GPU-3fe1", peak_bytes_per_s=4.8e12),),
    noise=(CARD,),
    disturbances=(Disturbance(where="GPU-3fe1", what="persistence mode is off", remedy="nvidia-smi -pm 1 (root)"),),
    unmeasured=("2 variants skipped: needs torch, which is not installed",),
    methods=("cuda: default (event timer, cold cache, version 1)",),
)

BETWEEN = "between 3 processes the ceiling moved by 0.20 % and the canary"


def test_the_table_and_what_spoils_it():
    lines = text(REPORT).splitlines()
    assert lines[:15] == [
        "A/A  7e3f9a1 against itself, 3 rounds",
        "head    7e3f9a1 softmax: no temporary row",
        "",
        "suite        device class      compared  rounds             µs   noise  largest  processes          visible",
        f"elementwise  {CLASS}        10       3  2.48 to 253.1  0.08 %   0.21 %     1.23 %  0.15 % / 13.1 %",
        f"launch       {CLASS}        10       3           2.00  0.08 %   0.21 %     1.23 %  0.15 % / 13.1 %",
        "",
        f"device  {CLASS} GPU-3fe1, copy ceiling 4200 GB/s (88 % of the datasheet's), {BETWEEN} moved by",
        "        0.31 %, 2 of 75 blocks bad, SM clock 1755 to 1980 MHz",
        "",
        "spoils  GPU-3fe1: persistence mode is off",
        "remedy  nvidia-smi -pm 1 (root)",
        "",
        "without 2 variants skipped: needs torch, which is not installed",
        "method  cuda: default (event timer, cold cache, version 1)",
    ]
    assert "Nothing of this was stored." in " ".join(lines)


def test_a_quiet_device_is_said_to_be_quiet():
    quiet = msgspec.structs.replace(REPORT, disturbances=())
    assert "spoils  nothing was seen that spoils measuring" in text(quiet).splitlines()


def test_nothing_measured_is_exit_code_3_and_a_number_is_0():
    empty = msgspec.structs.replace(REPORT, families=(), noise=(), disturbances=())
    assert (REPORT.exit_code, empty.exit_code) == (0, 3)
    lines = text(empty).splitlines()
    assert "nothing could be measured" in lines
    assert not any("nothing was seen" in line for line in lines)


def test_one_round_has_gaps_and_a_narrow_terminal_cuts_nothing():
    one = msgspec.structs.replace(FAMILY, rounds=1, process_deviation=None, detectable=None, detectable_worst=None)
    shown = text(msgspec.structs.replace(REPORT, families=(one,)), Look(width=80, unicode=False))
    assert shown.isascii()
    (row,) = [line.split() for line in shown.splitlines() if line.strip().startswith(CLASS)]
    assert row == [CLASS, "10", "1", "2.48", "to", "253.1", "0.08", "%", "0.21", "%", "-", "-"]


def test_json_carries_everything_and_gives_the_report_back():
    data = msgspec.json.encode(REPORT)
    assert msgspec.json.decode(data, type=NoiseReport) == REPORT
    assert msgspec.json.decode(data)["schema"] == "perftrack.noise/1"

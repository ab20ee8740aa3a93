import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_builders import ADD, CLASS, device

from perftrack.chart import sparkline, svg
from perftrack.model import Status
from perftrack.report import tables, words
from perftrack.report.layout import Look, cell_width, pad, table
from perftrack.report.segments import segments
from perftrack.report.value import CompareRow, Comparison, DeviceRow, History, HistoryPoint


def point(number, time_s=1e-4, speedup=2.0, **more):
    return HistoryPoint(
        revision=f"{number:07d}",
        subject=f"commit {number}",
        committed_us=1_790_000_000_000_000,
        status=Status.OK,
        time_s=time_s,
        baseline_s=2e-4,
        speedup=speedup,
        **more,
    )


SERIES = History(
    suite="elementwise",
    case=ADD,
    device_class=CLASS,
    variant="fused",
    points=(
        point(1),
        HistoryPoint(revision="0000002", subject="broken", status=Status.WRONG),
        point(3, 1.1e-4, 1.82),
        HistoryPoint(revision="0000004"),
        point(5, 0.5e-4, 4.0, segment="new driver/"),
    ),
)


LEVELS = History(
    suite="elementwise",
    case=ADD,
    device_class=CLASS,
    variant="fused",
    points=(
        *(point(number, 1e-4 + number * 1e-7, 2.0, segment="a/m") for number in range(1, 12)),
        HistoryPoint(revision="0000012"),
        *(point(number, 1.2e-4 + number * 1e-7, 1.7, segment="a/m") for number in range(13, 20)),
        *(point(number, 0.5e-4, 4.0, segment="b/m") for number in range(20, 24)),
        *(point(number, 0.4e-4, 5.0, segment="c/n") for number in range(24, 26)),
    ),
    changes=((12, 1),),
)
COMPARED = Comparison(
    left="b81c0d4",
    right="7e3f9a1",
    rows=tuple(
        CompareRow(
            suite="elementwise",
            case=ADD,
            device_class=name,
            variant=variant,
            left_s=41.2e-6,
            right_s=49.1e-6,
            left_baseline_s=95e-6,
            left_speedup=2.31,
            right_speedup=1.94,
            change=1.192,
            verdict="slower",
        )
        for name in (CLASS, "cpu-AMD-EPYC-2c")
        for variant in ("fused", "graph")
    ),
    total=62,
    note="Not paired.",
)


@pytest.mark.parametrize("width", [80, 120, 200])
@pytest.mark.parametrize("color", [False, True])
def test_the_transcripts_are_the_golden_ones(width, color, golden):
    look = Look(width=width, color=color)
    golden(f"history-{width}{'-color' * color}.txt", tables.history(LEVELS, look) + "\n")
    golden(f"compare-{width}{'-color' * color}.txt", tables.comparison(COMPARED, look) + "\n")


def test_history_draws_gaps_and_tells_segments():
    assert tables.history(SERIES).splitlines() == [
        f"elementwise: {ADD} fused on {CLASS}",
        "▁·▁·█",
        "    ┆",
        "speedup, 3 of 5 revisions measured",
        "",
        "segment           measured     µs  speedup  step  began",
        "0000001..0000003    2 of 4  105.0    1.91x     -",
        "0000005             1 of 1   50.0    4.00x     -  other environment: commit 5",
        "",
        "revision                        µs  baseline µs  speedup         change  note",
        "0000005 2026-09-21 commit 5   50.0        200.0    4.00x              -  other environment",
        "0000004 1970-01-01               -            -        -              -  not measured",
        "0000003 2026-09-21 commit 3  110.0        200.0    1.82x  10.0 % slower",
        "0000002 1970-01-01 broken        -            -        -              -  wrong",
        "0000001 2026-09-21 commit 1  100.0        200.0    2.00x              -",
    ]


def test_segments_tell_the_step_and_what_began_them():
    told = [(one.first, one.last, one.measured, one.began, one.step and round(one.step, 3)) for one in segments(LEVELS)]
    assert told == [
        ("0000001", "0000011", 11, "", None),
        ("0000013", "0000019", 7, "change", pytest.approx(1.21, abs=0.01)),
        ("0000020", "0000023", 4, "other environment", None),
        ("0000024", "0000025", 2, "other environment and method", None),
    ]
    assert tables.history(LEVELS).splitlines()[2] == " " * 12 + "▲" + " " * 6 + "┆   ┆"


def test_noise_is_not_drawn_as_news():
    assert sparkline([1.0, 1.001, 1.0, 1.001]) == "▄▅▄▅"
    assert sparkline([1.0, 1.5]) == "▁█"
    assert "<polyline" in svg([1.0, 1.1, None, 1.0], title="a<b")
    assert svg([1.0, 1.1, None, 1.0], title="a<b").count("<circle") == 1
    assert svg([1.0, 1.1, 1.3, 1.2], title="", borders=[2]).count("<polyline") == 2
    assert "a&lt;b" in svg([], title="a<b")


def test_history_in_ascii_and_of_nothing():
    assert tables.history(SERIES, Look(unicode=False)).isascii()
    empty = History(suite="s", case="c", device_class="d", variant="v", points=())
    assert "0 of 0 revisions measured" in tables.history(empty)


def test_a_baseline_s_history_is_that_of_its_time():
    series = History(suite="s", case="c", device_class="d", variant="unfused", points=(point(1, speedup=None),))
    assert "time, 1 of 1 revision measured" in tables.history(series)


def test_a_long_history_draws_its_end_and_says_so():
    series = History(suite="s", case="c", device_class="d", variant="v", points=tuple(point(n) for n in range(200)))
    lines = tables.history(series, Look(width=80)).splitlines()
    assert lines[1:3] == ["▄" * 78, "speedup, 200 of 200 revisions measured, the last 78 drawn"]


def test_comparison_shows_both_sides():
    row = CompareRow(
        suite="elementwise",
        case=ADD,
        device_class=CLASS,
        variant="fused",
        left_s=41.2e-6,
        right_s=49.1e-6,
        left_speedup=2.31,
        right_speedup=1.94,
        change=1.192,
        verdict="slower",
    )
    lines = tables.comparison(Comparison(left="b81c0d4", right="7e3f9a1", rows=(row,), total=62, note="Not paired."))
    assert "b81c0d4 -> 7e3f9a1" in lines
    assert "41.2 -> 49.1            -  2.31x -> 1.94x  19.2 % slower  slower" in lines
    assert "1 of 62 shown. Not paired." in lines


def test_devices():
    rows = [
        DeviceRow(device=device(), environment={"driver": "580.65"}, runs=3),
        DeviceRow(device=device("cpu-1", "AMD-EPYC-2c", "n", "cpu"), problem="busy: pid 12"),
    ]
    assert tables.devices(rows).splitlines() == [
        "class             node    uuid      driver  cc  SMs   GB  runs  state",
        "NVIDIA-H200-141G  gpu-07  GPU-3fe1  580.65   -    -  141     3  ready",
        "AMD-EPYC-2c       n       cpu-1     -        -    -  141     -  busy: pid 12",
    ]
    assert tables.devices([]) == "no devices"


def test_a_table_that_is_too_wide_puts_its_first_column_above():
    lines = [
        "".join(piece for piece, _ in one)
        for one in table(["case", "µs"], [["a" * 10, "1"], ["a" * 10, "2"]], 8, align="lr")
    ]
    assert lines == ["case", "  µs", "a" * 10, "   1", "   2"]


@given(st.lists(st.none() | st.floats(0.1, 100), max_size=50), st.booleans())
def test_a_sparkline_has_one_letter_a_value(values, unicode):
    drawn = sparkline(values, unicode=unicode)
    assert len(drawn) == len(values)
    assert all((letter in "· ") == (value is None) for letter, value in zip(drawn, values, strict=True))


def test_wide_letters_take_two_columns():
    assert cell_width("日本é") == 5
    assert pad("日本", 6) == "日本  "
    assert pad("x", 3, right=True) == "  x"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (None, "-"),
        (2.476e-6, "2.48"),
        (9.996e-6, "10.0"),
        (127.42e-6, "127.4"),
        (999.96e-6, "1000"),
        (0.0123456, "12346"),
    ],
)
def test_times_have_three_to_five_digits(seconds, shown):
    assert words.microseconds(seconds) == shown


@pytest.mark.parametrize(
    ("ratio", "said"),
    [(1.031, "3.1 % slower"), (0.9, "10.0 % faster"), (1.0003, "0.0 %"), (1e30, "over 9999 % slower")],
)
def test_effects_name_their_direction(ratio, said):
    assert words.effect(ratio) == said

"""The answer of `perftrack doctor --measure`: its value and its text. Shares in the value are per cent in the text."""

from typing import Literal

import msgspec

from perftrack.foreign import plain
from perftrack.judge.disturbance import Disturbance
from perftrack.judge.noise import DeviceNoise, Family
from perftrack.model import Device
from perftrack.report import words
from perftrack.report.layout import Line, Look, entry, line, table, wrap
from perftrack.report.text import draw

SCHEMA = "perftrack.noise/1"

EXPLAINED = (
    "Head and base are the same commit, so every difference is noise. Noise = standard deviation of head / base over "
    "cases, variants and rounds; largest = the largest distance of one round from 1. Processes = standard deviation of "
    "a median time from process to process on one device. Visible = the smallest change that as many rounds can show, "
    "half of the comparisons / the worst. Nothing of this was stored."
)


class NoiseReport(msgspec.Struct, frozen=True, kw_only=True):
    """How well this pool measures, as JSON: `perftrack.noise/1`. Fields are added, never renamed."""

    schema: Literal["perftrack.noise/1"] = SCHEMA
    head: str
    head_sha: str
    head_subject: str
    rounds: int
    families: tuple[Family, ...]
    devices: tuple[Device, ...]
    noise: tuple[DeviceNoise, ...]
    disturbances: tuple[Disturbance, ...]
    unmeasured: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    """Suites that cannot be imported."""
    methods: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """0; 3 where nothing could be measured."""
        return 0 if self.families else 3


def text(report: NoiseReport, look: Look | None = None) -> str:
    """The table of noise, a line a device, what spoils measuring with its remedies, and what gave no number."""
    look = look or Look()
    lines: list[Line] = [
        line(f"A/A  {report.head} against itself, {words.counted(report.rounds, 'round')}", "bold"),
        *entry("head", f"{report.head}  {report.head_subject}", look.width),
        line(),
        *(_table(report, look.width) if report.families else [line("nothing could be measured", "red")]),
        line(),
    ]
    for one in report.noise:
        lines += entry("device", _device(one, report.devices), look.width)
    for one in report.disturbances:
        lines += [
            line(),
            *entry("spoils", f"{one.where}: {one.what}" if one.where else one.what, look.width),
            *entry("remedy", one.remedy, look.width),
        ]
    if report.families and not report.disturbances:
        lines += [line(), *entry("spoils", "nothing was seen that spoils measuring", look.width)]
    lines.append(line())
    for name, sentences in (
        ("without", report.unmeasured),
        ("problem", report.problems),
        ("method", report.methods),
    ):
        lines += [one for sentence in sentences for one in entry(name, sentence, look.width)]
    return draw([*lines, *(line(one, "dim") for one in wrap(EXPLAINED, look.width))], look)


def _table(report: NoiseReport, width: int) -> list[Line]:
    header = ["suite", "device class", "compared", "rounds", "µs", "noise", "largest", "processes", "visible"]
    cells = [
        [
            plain(one.suite),
            one.device_class,
            str(one.comparisons),
            str(one.rounds),
            " to ".join(dict.fromkeys((words.microseconds(one.fastest_s), words.microseconds(one.slowest_s)))),
            _share(one.deviation),
            _share(one.worst),
            _share(one.process_deviation),
            " / ".join(dict.fromkeys((_share(one.detectable), _share(one.detectable_worst)))),
        ]
        for one in report.families
    ]
    return table(header, cells, width, align="llrrrrrrr")


def _device(noise: DeviceNoise, devices: tuple[Device, ...]) -> str:
    peak = next((one.peak_bytes_per_s for one in devices if one.uuid == noise.uuid), None)
    parts = [f"{noise.device_class} {noise.uuid}"]
    if noise.ceiling_bytes_per_s:
        of_peak = f" ({words.share(noise.ceiling_bytes_per_s / peak)} of the datasheet's)" if peak else ""
        parts.append(f"copy ceiling {words.gigabytes(noise.ceiling_bytes_per_s)} GB/s{of_peak}")
    spreads = (("ceiling", noise.ceiling_spread), ("canary", noise.canary_spread))
    if moved := [f"the {name} moved by {_share(spread)}" for name, spread in spreads if spread is not None]:
        parts.append(f"between {noise.processes} processes {' and '.join(moved)}")
    parts.append(f"{noise.bad_blocks} of {noise.blocks} blocks bad")
    if noise.clock_low_mhz is not None and noise.clock_high_mhz is not None:
        clocks = dict.fromkeys((f"{noise.clock_low_mhz:.0f}", f"{noise.clock_high_mhz:.0f}"))
        parts.append(f"SM clock {' to '.join(clocks)} MHz")
    return ", ".join(parts)


def _share(value: float | None) -> str:
    """Per cent with two digits after the point while they matter: `0.08 %`, `2.31 %`, `12.3 %`."""
    if value is None:
        return words.NOT_KNOWN
    return f"{100 * value:.{2 if value < 0.09995 else 1}f} %" if value < 100 else "over 9999 %"

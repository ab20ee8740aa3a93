"""Other timers put to the same kernels: five anchors, a small function for each timer, one table.

An anchor is a verified variant of a declared case with its rotated sets of data; every timer calls the same launches
in the same turn, on the same stream. A timer returns seconds per call, or raises ImportError where its package is
absent. Nothing here imports a GPU's library before a timer is called.
"""

import csv
import itertools
import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from perftrack.declare import collect_suite
from perftrack.measure.checking import check
from perftrack.measure.engine import Engine, Launch
from perftrack.measure.prepare import Preparation
from perftrack.measure.subject import Subject
from perftrack.measure.timing import Timing
from perftrack.model import Job, Method

OURS = "perftrack"
LIMIT = 0.03
TRUTH = ("torch.profiler (CUPTI)", "event loop")
"""What long kernels are held against: the first of these that gave a time."""

SPAN_S = 0.2
"""Seconds of device time that a timer takes for an anchor, where it lets itself be told."""

BURST_S, REST_S = 2e-3, 4e-3
"""Traced calls go in bursts with rests between them, as ours do where the work would meet the power limit."""

MOST_CALLS = 5000
"""A longer trace would take longer to read than to make."""


@dataclass(frozen=True, eq=False)
class Anchor:
    """A kernel that all timers are put to."""

    name: str
    work: Preparation
    method: Method
    long: bool = True
    """Long enough that a launch's own time is nothing beside it."""

    @property
    def launches(self) -> tuple[Launch, ...]:
        (made,) = self.work.alive()
        return tuple(made.launches)

    def turn(self) -> Launch:
        """A function that calls the launches in turn."""
        following = itertools.cycle(self.launches).__next__

        def call() -> None:
            following()()

        return call

    def calls(self, seconds: float, least: int = 20) -> int:
        """How many calls take about so long."""
        (made,) = self.work.alive()
        return min(MOST_CALLS, max(least, round(seconds / self.work.engine.cost(made.rotation()).device_s)))


@dataclass(frozen=True)
class Reading:
    """What one timer said of one anchor, or why it said nothing."""

    anchor: str
    timer: str
    seconds: float | None = None
    note: str = ""


def prepare(engine: Engine, suite: str, key: str, variant: str, method: Method, **more: Any) -> Anchor:
    """Build and verify one variant of a declared case, on rotated sets; ValueError where it is not there or wrong."""
    declared = collect_suite(import_module(f"suites.{suite}"), suite)
    cases = [(made, case) for made in declared for case in made.cases(suite, engine.backend) if case.key == key]
    if not cases:
        raise ValueError(f"suite {suite} has no case {key} on {engine.backend}")
    benchmark, case = cases[0]
    work = Preparation(engine, Job(case=case, device_class="", round=1), [Subject("head", benchmark)], seed=1)
    work.candidates = [made for made in work.candidates if made.name == variant]
    with engine.active():
        work.prepare(method, lambda: check(work, 0))
    if len(work.alive()) != 1:
        raise ValueError(f"{key} {variant}: {'; '.join(made.message for made in work.candidates) or 'not declared'}")
    return Anchor(f"{case.benchmark} {variant}", work, method, **more)


def ours(anchor: Anchor) -> float:
    """By perftrack's own blocks: median over the samples of good ones."""
    (made,) = anchor.work.alive()
    timing = Timing(anchor.work, anchor.method, random.Random(1))  # noqa: S311 - an order, not a secret
    timing.warm_up()
    timing.run()
    bad = set(timing.blocks.bad(anchor.method))
    good = [seconds for block, seconds in zip(made.blocks, made.samples, strict=True) if block not in bad]
    return statistics.median(good or made.samples)


def cupyx_benchmark(anchor: Anchor) -> float:
    """`cupyx.profiler.benchmark`: events around one call, the device idle before each."""
    profiler = import_module("cupyx.profiler")
    made = profiler.benchmark(anchor.turn(), n_repeat=anchor.calls(SPAN_S), n_warmup=20)
    return statistics.median(made.gpu_times[0].tolist())


def event_loop(anchor: Anchor) -> float:
    """Events around a plain loop, without a head start for the host."""
    cupy = import_module("cupy")
    call, times = anchor.turn(), anchor.calls(SPAN_S / 20)
    samples: list[float] = []
    for _ in range(20):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        for _ in range(times):
            call()
        end.record()
        end.synchronize()
        samples.append(cupy.cuda.get_elapsed_time(begin, end) * 1e-3 / times)
    return statistics.median(samples)


def triton_do_bench(anchor: Anchor) -> float:
    """`triton.testing.do_bench`: events around one call, the cache overwritten before each."""
    torch, testing = import_module("torch"), import_module("triton.testing")
    with torch.cuda.stream(_torch_stream(torch)):
        return float(testing.do_bench(anchor.turn(), return_mode="median")) * 1e-3


def kineto(anchor: Anchor) -> float:
    """CUPTI's activity records through `torch.profiler`: median over calls of first start to last end."""
    profiler = import_module("torch.profiler")
    call, times, burst = anchor.turn(), anchor.calls(SPAN_S), anchor.calls(BURST_S, 1)

    def trace(count: int) -> Mapping[str, Any]:
        with profiler.profile(activities=[profiler.ProfilerActivity.CUDA]) as made:
            in_bursts(anchor, call, count, burst)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace.json"
            made.export_chrome_trace(str(path))
            return json.loads(path.read_text())

    trace(20)  # the first use of CUPTI in a process is slow and may miss what runs meanwhile
    return statistics.median(spans(trace_records(trace(times)), times)) * 1e-6


def in_bursts(anchor: Anchor, call: Launch, times: int, burst: int) -> None:
    """Make so many calls, waiting for all; the device idles after each `burst` of them."""
    for first in range(0, times, burst):
        for _ in range(min(burst, times - first)):
            call()
        anchor.work.engine.synchronize()
        time.sleep(REST_S)


def nvbench(anchors: Sequence[Anchor]) -> dict[str, float]:
    """NVBench, through its package `cuda.bench`: it runs once a process, so all anchors are given to it together."""
    cupy, bench = import_module("cupy"), import_module("cuda.bench")
    for index, anchor in enumerate(anchors):

        def measure(state: Any, anchor: Anchor = anchor) -> None:
            call = anchor.turn()

            def launch(on: Any) -> None:
                with cupy.cuda.ExternalStream(on.get_stream().addressof()):
                    call()

            state.exec(launch, batched=False)

        bench.register(measure).set_name(f"anchor_{index}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "nvbench.json"
        bench.run_all_benchmarks(["cross_check", "--devices", "0", "--json", str(path)])
        found = nvbench_seconds(json.loads(path.read_text()))
    return {anchor.name: found[f"anchor_{index}"] for index, anchor in enumerate(anchors) if f"anchor_{index}" in found}


TIMERS: dict[str, Callable[[Anchor], float]] = {
    OURS: ours,
    "event loop": event_loop,
    "cupyx.profiler.benchmark": cupyx_benchmark,
    "triton.testing.do_bench": triton_do_bench,
    "torch.profiler (CUPTI)": kineto,
}


def read_all(anchors: Sequence[Anchor], timers: Mapping[str, Callable[[Anchor], float]]) -> list[Reading]:
    """Every timer on every anchor, timer by timer; an absent one is not run, one that raises has failed."""
    return [_read(anchor.name, name, partial(timer, anchor)) for name, timer in timers.items() for anchor in anchors]


def read_together(
    anchors: Sequence[Anchor], timer: str, measure: Callable[[Sequence[Anchor]], Mapping[str, float]]
) -> list[Reading]:
    """A timer that takes all anchors at once; an anchor that it left out has no time."""
    found: dict[str, float] = {}
    whole = _read("", timer, lambda: found.update(measure(anchors)) or 0.0)
    note = whole.note or "no time given"
    return [
        Reading(anchor.name, timer, found.get(anchor.name), "" if anchor.name in found else note) for anchor in anchors
    ]


def _read(anchor: str, timer: str, measure: Callable[[], float]) -> Reading:
    reading = Reading(anchor, timer)
    try:
        return replace(reading, seconds=measure())
    except ImportError as error:
        return replace(reading, note=f"not run: {error}")
    except Exception as error:  # noqa: BLE001 - other people's timers may raise anything
        return replace(reading, note=f"failed: {type(error).__name__}: {error}")


def spans(records: Iterable[tuple[float, float]], calls: int) -> list[float]:
    """From the first start to the last end of each call; `records`: (start, end) of all kernels, in any one unit.

    ValueError where the kernels do not divide evenly among the calls: some are missing, or are somebody else's.
    """
    ordered = sorted(records)
    each, rest = divmod(len(ordered), calls)
    if rest or not each:
        raise ValueError(f"{len(ordered)} kernels were recorded for {calls} calls")
    groups = [ordered[first : first + each] for first in range(0, len(ordered), each)]
    return [max(end for _, end in group) - group[0][0] for group in groups]


def trace_records(trace: Mapping[str, Any]) -> list[tuple[float, float]]:
    """(start, end) of everything that ran on the device, from a Chrome trace: microseconds since the first start."""
    events = [
        event
        for event in trace["traceEvents"]
        if event.get("ph") == "X" and event.get("cat") in {"kernel", "gpu_memcpy", "gpu_memset"}
    ]
    origin = min((event["ts"] for event in events), default=0)
    return [(event["ts"] - origin, event["ts"] - origin + event["dur"]) for event in events]


def nvbench_seconds(document: Mapping[str, Any]) -> dict[str, float]:
    """Benchmark name → GPU seconds of NVBench's JSON: the median, or the mean in files older than it."""
    found: dict[str, float] = {}
    for benchmark in document["benchmarks"]:
        for state in benchmark["states"]:
            summaries = {one["tag"]: one for one in state.get("summaries") or []}
            for tag in ("nv/cold/time/gpu/median", "nv/cold/time/gpu/mean"):
                values = [each["value"] for each in summaries.get(tag, {}).get("data", []) if each["name"] == "value"]
                if values:
                    found[benchmark["name"]] = float(values[0])
                    break
    return found


def table(readings: Sequence[Reading]) -> str:
    """One line a reading: µs per call, and per cent above or below ours."""
    width = max(len(one.timer) for one in readings)
    lines: list[str] = []
    for anchor in dict.fromkeys(one.anchor for one in readings):
        lines.append(anchor)
        for one in (one for one in readings if one.anchor == anchor):
            away = _away(one, readings)
            said = one.note if one.seconds is None else f"{one.seconds * 1e6:10.2f} µs"
            lines.append(f"  {one.timer:<{width}}  {said}{'' if away is None else f'  {100 * away:+7.2f} %'}")
    return "\n".join(lines)


def write_csv(readings: Sequence[Reading], path: str | os.PathLike[str]) -> None:
    """The same as a file: anchor, timer, microseconds, per cent against ours, note; empty where there is none."""
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("anchor", "timer", "us", "percent_of_ours", "note"))
        for one in readings:
            away = None if one.timer == OURS else _away(one, readings)
            us = "" if one.seconds is None else f"{one.seconds * 1e6:.3f}"
            writer.writerow((one.anchor, one.timer, us, "" if away is None else f"{100 * away:.3f}", one.note))


def disagreements(readings: Sequence[Reading], anchors: Iterable[str]) -> list[str]:
    """For each of these anchors: why our time is not within LIMIT of CUPTI's (else of the event loop's), in words."""
    found: list[str] = []
    for anchor in anchors:
        mine = _seconds(readings, anchor, OURS)
        truth = next((name for name in TRUTH if _seconds(readings, anchor, name) is not None), None)
        right = _seconds(readings, anchor, truth) if truth else None
        if mine is None or right is None:
            found.append(f"{anchor}: there is nothing to compare")
        elif abs(mine / right - 1) > LIMIT:
            found.append(f"{anchor}: {mine * 1e6:.2f} µs, {truth} says {right * 1e6:.2f} µs")
    return found


def _seconds(readings: Sequence[Reading], anchor: str, timer: str) -> float | None:
    return next((one.seconds for one in readings if (one.anchor, one.timer) == (anchor, timer)), None)


def _away(reading: Reading, readings: Sequence[Reading]) -> float | None:
    mine = _seconds(readings, reading.anchor, OURS)
    return None if reading.seconds is None or mine is None or reading.timer == OURS else reading.seconds / mine - 1


def _torch_stream(torch: Any) -> Any:
    """CuPy's current stream, as PyTorch sees it."""
    return torch.cuda.ExternalStream(import_module("cupy").cuda.get_current_stream().ptr)

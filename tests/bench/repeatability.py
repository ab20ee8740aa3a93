"""How medians repeat: whole rounds of all suites, each in a fresh process, on one device.

`run` measures what a submission of this checkout with `--base none` measures, without a pool: its kernels are first
compiled by some processes at once, then every round is one measuring child. Results are added to FOLDER/rounds.jsonl
as they come, and a second `run` goes on where the first ended. `table` says how far medians lie from the median of
their series, and speedups likewise.
"""

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from perftrack.declare import collect_suite
from perftrack.measure.checking import check
from perftrack.measure.child_environment import child_environment
from perftrack.measure.collect import collect_tree
from perftrack.measure.device import choose_backend, open_engine
from perftrack.measure.methods import default_method
from perftrack.measure.prepare import Preparation
from perftrack.measure.subject import Subject
from perftrack.measure.wire import Done, Message, Order
from perftrack.model import Case, Job, JobResult

ROOT = Path(__file__).resolve().parents[2]
SUITES = ("suites",)
FEWEST_ROUNDS = 3
LIMITS = (0.0025, 0.005)
LONG_S = 15e-6
NOT_COMPILED_BESIDE_OTHERS = ("relu_huge",)
"""Its kernels are those of other cases, and it takes half of the memory."""


def say(text: str) -> None:
    """A line, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def cases_here() -> list[Case]:
    """All cases of this machine's backend."""
    return [case for case in collect_tree(ROOT, SUITES).cases if case.backend == choose_backend()]


def environment(folder: Path) -> dict[str, str]:
    """Of a measuring child whose caches outlive it."""
    scratch = folder / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    cores = len(os.sched_getaffinity(0))
    made = child_environment(os.environ, scratch=scratch, caches=folder / "caches", cores=cores, gpu=True)
    return {**made, "CUDA_VISIBLE_DEVICES": os.environ.get("CUDA_VISIBLE_DEVICES", "0")}


def compile_share(share: int, shares: int) -> None:
    """Build and check once what every `shares`-th case declares, beginning with `share`."""
    backend = choose_backend()
    engine = open_engine(backend)
    method = replace(default_method(backend), sets=2)
    mine = [case for case in cases_here() if not case.key.startswith(NOT_COMPILED_BESIDE_OTHERS)][share::shares]
    for case in mine:
        for benchmark in collect_suite(importlib.import_module(f"{SUITES[0]}.{case.suite}"), case.suite):
            if case.key not in {one.key for one in benchmark.cases(case.suite, backend)}:
                continue
            with engine.active():
                work = Preparation(engine, Job(case=case, device_class="", round=1), [Subject("head", benchmark)], 0)
                work.prepare(method, lambda work=work: check(work, 0))
                for made in work.candidates:
                    made.drop()
                work.inputs.clear()
            engine.release()


def compile_all(folder: Path, shares: int) -> None:
    """`compile_share` for all shares at once."""
    began = time.monotonic()
    command = [sys.executable, __file__, "compile", "--shares", str(shares), "--share"]
    at_work = [
        subprocess.Popen([*command, str(share)], env={**environment(folder), "PYTHONPATH": _import_path()}, cwd=ROOT)
        for share in range(shares)
    ]
    codes = [process.wait() for process in at_work]
    say(f"compiled in {time.monotonic() - began:.0f} s, exit codes {codes}")


def _import_path() -> str:
    return os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))


def measure_round(folder: Path, number: int, cases: list[Case]) -> Iterator[JobResult]:
    """The results of one round, as they come from its child."""
    backend = choose_backend()
    order = Order(
        backend=backend,
        trees={"head": str(ROOT)},
        suite_paths=SUITES,
        method=default_method(backend),
        round=number,
        jobs=tuple(Job(case=case, device_class="", round=number) for case in cases),
    )
    command = [sys.executable, "-P", "-s", "-m", "perftrack.measure.child"]
    with (
        (folder / "stderr").open("ab") as errors,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=environment(folder)
        ) as child,
    ):
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(msgspec.json.encode(order))
        child.stdin.close()
        for line in child.stdout:
            message = msgspec.json.decode(line, type=Message)
            if isinstance(message, Done):
                yield message.result


def row_of(result: JobResult) -> dict[str, Any]:
    """What is kept of a result: of each variant its status, median, mode and clock."""
    return {
        "round": result.round,
        "case": result.case_key,
        "suite": result.suite,
        "status": result.status,
        "device": result.device_uuid,
        "sets": result.sets,
        "blocks": len(result.canary_s),
        "bad_blocks": len(result.bad_blocks),
        "canary_s": statistics.median(result.canary_s) if result.canary_s else None,
        "copy_bytes_per_s": result.ceiling_bytes_per_s,
        "wall_s": result.wall_s,
        "timed_s": result.timed_s,
        "variants": {
            one.variant: {
                "status": one.status,
                "median_s": statistics.median(one.samples_s) if one.samples_s else None,
                "mode": one.mode,
                "clock_mhz": one.clock_mhz,
                "message": one.message,
            }
            for one in result.measurements
        },
    }


def read(folder: Path) -> list[dict[str, Any]]:
    """All rows so far."""
    file = folder / "rounds.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def run(folder: Path, rounds: int, shares: int) -> None:
    """Measure what is missing of `rounds` rounds."""
    folder.mkdir(parents=True, exist_ok=True)
    cases, there = cases_here(), {(row["round"], row["case"]) for row in read(folder)}
    if shares and not there:
        compile_all(folder, shares)
    with (folder / "rounds.jsonl").open("a") as file:
        for number in range(1, rounds + 1):
            missing = [case for case in cases if (number, case.key) not in there]
            began = time.monotonic()
            for result in measure_round(folder, number, missing) if missing else ():
                file.write(json.dumps(row_of(result)) + "\n")
                file.flush()
            say(f"round {number}: {len(missing)} cases in {time.monotonic() - began:.0f} s")


def deviations(series: list[float]) -> list[float]:
    """How far each value is from the median of all, as a share of it; none where there are too few."""
    if len(series) < FEWEST_ROUNDS:
        return []
    middle = statistics.median(series)
    return [abs(value - middle) / middle for value in series]


def table(folder: Path) -> None:
    """Print how medians and speedups repeat, by how their calls were issued, and the worst series."""
    medians: dict[tuple[str, str], list[tuple[str, float]]] = defaultdict(list)
    speedups: dict[tuple[str, str], list[float]] = defaultdict(list)
    rows = read(folder)
    for row in rows:
        timed = {name: one for name, one in row["variants"].items() if one["median_s"]}
        for name, one in timed.items():
            medians[row["case"], name].append((one["mode"], one["median_s"]))
            unfused_s = timed["unfused"]["median_s"] if "unfused" in timed else 0.0
            if name != "unfused" and one["mode"] != "eager" and min(unfused_s, one["median_s"]) > LONG_S:
                speedups[row["case"], name].append(unfused_s / one["median_s"])
    found: dict[str, list[float]] = defaultdict(list)
    worst: list[tuple[float, str]] = []
    for (case, name), series in medians.items():
        modes, values = {mode for mode, _ in series}, [value for _, value in series]
        away = deviations(values)
        long = statistics.median(values) > LONG_S
        found[modes.pop() if len(modes) == 1 else "several modes"] += away
        if long and not {"eager"} & {mode for mode, _ in series}:
            found["over 15 µs, not eager"] += away
            worst.append((sum(one > LIMITS[0] for one in away) / max(1, len(away)), f"{case} {name}"))
    found["speedups of those"] = [one for series in speedups.values() for one in deviations(series)]
    bad, blocks = sum(row["bad_blocks"] for row in rows), sum(row["blocks"] for row in rows)
    say(f"{len({row['round'] for row in rows})} rounds, {len(rows)} jobs, {bad} of {blocks} blocks bad\n")
    say("| issued as | medians | within 0.25 % | within 0.5 % | 95 % within |\n| --- | ---: | ---: | ---: | ---: |")
    for name, away in sorted(found.items(), key=lambda item: (item[0].startswith(("over", "speed")), item[0])):
        if away:
            shares = " | ".join(f"{sum(one <= limit for one in away) / len(away):.1%}" for limit in LIMITS)
            say(f"| {name} | {len(away)} | {shares} | {sorted(away)[int(0.95 * (len(away) - 1))]:.2%} |")
    say("\nmost often beyond 0.25 %:")
    for share, name in sorted(worst, reverse=True)[:20]:
        say(f"  {share:4.0%} {name}")


def main() -> None:
    """Parse and do."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    measured = commands.add_parser("run")
    measured.add_argument("folder", type=Path)
    measured.add_argument("--rounds", type=int, default=10)
    measured.add_argument("--compile-at-once", type=int, default=6)
    commands.add_parser("table").add_argument("folder", type=Path)
    share = commands.add_parser("compile")
    share.add_argument("--share", type=int, required=True)
    share.add_argument("--shares", type=int, required=True)
    asked = parser.parse_args()
    if asked.command == "compile":
        compile_share(asked.share, asked.shares)
    elif asked.command == "run":
        run(asked.folder.resolve(), asked.rounds, asked.compile_at_once)
        table(asked.folder)
    else:
        table(asked.folder)


if __name__ == "__main__":
    main()

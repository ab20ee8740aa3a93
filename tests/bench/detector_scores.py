"""Scores of the history detector: `python tests/bench/detector_scores.py [SEED …]`, `make bench-detector`.

Seeded tracks as GPU kernels give them (five kinds of noise, 0.1 % to 5 % of it, steps of 1 % to 20 %), histories
without a change read one commit at a time, steps put into the noise of the labelled real series, and those series
themselves, where ../shared/data/series is. A change is found where an alert of its direction lies within two commits.
"""

import json
import math
import sys
import time
import zlib
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from perftrack.judge.history import change_points
from perftrack.judge.replay import replay
from perftrack.judge.triage import Past, triage

SERIES = Path(__file__).parents[3] / "shared" / "data" / "series"
KINDS = ("gauss", "heavy", "two modes", "lasting modes", "drift")
SPREADS = (0.001, 0.003, 0.01, 0.02, 0.05)
STEPS = (0.01, 0.02, 0.05, 0.1, 0.2)
GPU = ("cuda", "metal", "amdgpu", "koma")
TOLERANCE = 2
Changes = list[tuple[int, int]]


class Score(NamedTuple):
    """Changes found, alerts that are none, changes missed."""

    right: int = 0
    wrong: int = 0
    missed: int = 0

    def __add__(self, other: object) -> "Score":
        assert isinstance(other, Score)
        return Score(*(mine + its for mine, its in zip(self, other, strict=True)))

    def __str__(self) -> str:
        precision, recall = self.right / max(1, self.right + self.wrong), self.right / max(1, self.right + self.missed)
        harmonic = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        return f"P {precision:.2f} R {recall:.2f} F1 {harmonic:.2f}"


def score(found: Iterable[tuple[int, int]], truth: Changes, unsure: Iterable[tuple[int, int]] = ()) -> Score:
    """Nearest pairs first; direction 0 stands for either, alerts in a window that is unsure count neither way."""
    found, windows = list(found), list(unsure)
    pairs = sorted(
        (abs(place - at), one, other)
        for one, (place, direction) in enumerate(found)
        for other, (at, right) in enumerate(truth)
        if abs(place - at) <= TOLERANCE and right in {0, direction}
    )
    used: set[int] = set()
    hit: set[int] = set()
    for _, one, other in pairs:
        if one not in used and other not in hit:
            used.add(one)
            hit.add(other)
    near = [truth[other][0] for other in hit]
    wrong = [
        place
        for one, (place, _) in enumerate(found)
        if one not in used
        and not any(abs(place - at) <= TOLERANCE for at in near)
        and not any(low - TOLERANCE <= place <= high + TOLERANCE for low, high in windows)
    ]
    return Score(len(hit), len(wrong), len(truth) - len(hit))


def generator(*key: object) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(repr(key).encode()))


def noise(kind: str, count: int, spread: float, draw: np.random.Generator) -> np.ndarray:
    """Relative noise of one kind."""
    core = spread * draw.standard_normal(count)
    if kind == "heavy":
        slow = (draw.random(count) < 0.03) * draw.uniform(5, 30, count)
        return spread * (draw.standard_t(3, count) / math.sqrt(3) - slow)
    if kind == "two modes":
        return core - (draw.random(count) < draw.uniform(0.2, 0.5)) * spread * draw.uniform(3, 8)
    if kind == "lasting modes":
        return core - np.logical_xor.accumulate(draw.random(count) < 0.2) * spread * draw.uniform(3, 6)
    if kind == "drift":
        for at in range(1, count):
            core[at] = 0.5 * core[at - 1] + math.sqrt(0.75) * core[at]
        part = np.arange(count) / count
        wave = np.sin(2 * math.pi * (draw.uniform(0.5, 2) * part + draw.random()))
        return core + spread * (draw.uniform(0.5, 1.5) * wave + draw.uniform(-2, 2) * part)
    return core


def track(kind: str, count: int, spread: float, steps: Changes | list[tuple[int, float]], draw: np.random.Generator):
    """Values, and the deviation inside each run; `steps` are (index, relative size)."""
    level = np.zeros(count)
    for at, size in steps:
        level[at:] += math.log1p(size)
    values = 2.5 * np.exp(level + noise(kind, count, spread, draw))
    return values, 0.5 * spread * values * draw.uniform(0.7, 1.3, count)


def synthetic(seed: int) -> Iterator[tuple[float, Score]]:
    """(step, score) of histories with no change (step 0), one change, and two close changes (step −1)."""
    for kind in KINDS:
        for spread in SPREADS:
            for number in range(4):
                draw = generator(seed, "none", kind, spread, number)
                values, inside = track(kind, int(draw.integers(60, 301)), spread, [], draw)
                yield 0.0, score(change_points(values, inside), [])
            for step in STEPS:
                for number in range(2):
                    draw = generator(seed, "one", kind, spread, step, number)
                    count, direction = int(draw.integers(60, 301)), 1 if draw.random() < 0.5 else -1
                    at = int(draw.integers(count // 4, 3 * count // 4))
                    size = step if direction > 0 else 1 / (1 + step) - 1
                    values, inside = track(kind, count, spread, [(at, size)], draw)
                    yield step, score(change_points(values, inside), [(at, direction)])
            for step in STEPS[2:]:
                draw = generator(seed, "two", kind, spread, step)
                count = int(draw.integers(100, 301))
                at, length = int(draw.integers(count // 4, count // 2)), int(draw.integers(5, 16))
                steps = [(at, 1 / (1 + step) - 1), (at + length, step * float(draw.choice([1.0, 0.5])))]
                values, inside = track(kind, count, spread, steps, draw)
                yield -1.0, score(change_points(values, inside), [(at, -1), (at + length, 1)])


def false_alarms(seed: int) -> tuple[int, int]:
    """Alerts and commits of histories without a change, judged anew after each of the commits 81 to 180."""
    alerts = commits = 0
    for kind in KINDS:
        for spread in SPREADS:
            for number in range(2):
                values, inside = track(kind, 180, spread, [], generator(seed, "clean", kind, spread, number))
                told = change_points(values[:80], inside[:80])
                for end in range(81, 181):
                    new = [
                        (place, direction)
                        for place, direction in change_points(values[:end], inside[:end])
                        if not any(abs(place - other) <= 3 and direction == its for other, its in told)
                    ]
                    told += new
                    alerts, commits = alerts + len(new), commits + 1
    return alerts, commits


def alerted_within_five(seed: int) -> dict[float, list[bool]]:
    """By step: whether a step at the end is alerted while it has at most five values."""
    soon: dict[float, list[bool]] = defaultdict(list)
    for step in STEPS:
        for kind in KINDS:
            for spread in (0.003, 0.01, 0.03):
                for number in range(2):
                    draw = generator(seed, "delay", step, kind, spread, number)
                    at = int(draw.integers(60, 141))
                    values, inside = track(kind, at + 5, spread, [(at, 1 / (1 + step) - 1)], draw)
                    soon[step].append(
                        any(
                            abs(place - at) <= TOLERANCE and direction < 0
                            for end in range(at + 1, at + 6)
                            for place, direction in change_points(values[:end], inside[:end])
                        )
                    )
    return soon


def real_series() -> Iterator[tuple[str, np.ndarray, np.ndarray | None, dict[str, Any]]]:
    """Name, values, deviation inside runs where all are known, labels."""
    for file in sorted(SERIES.glob("*.json")):
        series = json.loads(file.read_text())
        for one in series if isinstance(series, list) else []:
            inside = np.array(one["std"] or [math.nan], dtype=float)
            yield (
                one["id"],
                np.array(one["values"], float),
                inside if np.isfinite(inside).all() else None,
                one["labels"],
            )


def real() -> dict[str, Score]:
    scores: dict[str, Score] = defaultdict(Score)
    for name, values, inside, labels in real_series():
        one = score(change_points(values, inside), [(at, 0) for at in labels["changes"]], labels["dont_care"])
        for group in ("all", "GPU" if name.split("::")[0] in GPU else "others"):
            scores[group] += one
    return scores


def resampled(seed: int) -> Iterator[tuple[float, Score]]:
    """(step, score) of 160 values: short blocks of a real series' noise, with one step down or none."""
    pools: list[list[np.ndarray]] = []
    for name, values, _, labels in real_series():
        if name.startswith("tcpd") or values.min() <= 0:
            continue
        sure = np.ones(len(values), dtype=bool)
        for low, high in labels["dont_care"]:
            sure[low : high + 1] = False
        edges = sorted({0, len(values), *labels["changes"]})
        levels = [values[low:high][sure[low:high]] for low, high in pairwise(edges)]
        rests = [np.log(level / np.median(level)) for level in levels if len(level) >= 25]
        if sum(map(len, rests)) >= 60:
            pools.append(rests)
    for step in (0.0, *STEPS) if pools else ():
        for number in range(60):
            draw = generator(seed, "resampled", step, number)
            rests, blocks = pools[(7 * number + round(100 * step)) % len(pools)], list[np.ndarray]()
            while sum(map(len, blocks)) < 160:
                rest = rests[int(draw.integers(len(rests)))]
                start = int(draw.integers(0, max(1, len(rest) - 3)))
                blocks.append(rest[start : start + 3])
            log, at = np.concatenate(blocks)[:160], int(draw.integers(50, 110))
            log[at:] -= math.log1p(step)
            yield step, score(change_points(2.5 * np.exp(log)), [(at, -1)] if step else [])


def suspicious_runs(seed: int, count: int, degrees: int | None) -> float:
    """Share of 200 unchanged runs of 20 series, each with so many values of a past, in which triage suspects any.

    Noise is Gaussian or Student's t; its size differs between series (log-normal, factor 1.6 a deviation).
    """
    suspicious = 0
    for number in range(200):
        draw = generator(seed, "triage", count, degrees, number)
        pasts: dict[Hashable, Past] = {}
        heads: dict[Hashable, float] = {}
        for name in range(20):
            spread = 0.01 * math.exp(0.5 * draw.standard_normal())
            core = draw.standard_normal(count + 1) if degrees is None else draw.standard_t(degrees, count + 1)
            *past, heads[name] = np.exp(spread * core).tolist()
            pasts[name] = Past.of(past)
        suspicious += any(one.reading not in {"usual", "unknown"} for one in triage(pasts, heads).values())
    return suspicious / 200


def cpu_times(seed: int) -> str:
    spent: list[float] = []
    for count in (300, 3000):
        values, inside = track("heavy", count, 0.01, [(count // 3, 0.05), (2 * count // 3, -0.05)], generator(seed))
        change_points(values, inside)
        starts = [time.process_time()]
        for _ in range(5):
            change_points(values, inside)
            starts.append(time.process_time())
        spent.append(1000 * float(np.diff(starts).min()))
    start, tracks = time.process_time(), 20
    for number in range(tracks):
        draw = generator(seed, "replay", number)
        steps = [(100, 0.05), (250, -0.1), (400, 0.02)][: number % 4]
        replay(track(KINDS[number % 5], 500, SPREADS[number % 4], steps, draw)[0])
    each = (time.process_time() - start) / tracks
    return (
        f"CPU: 300 values {spent[0]:.1f} ms, 3000 values {spent[1]:.1f} ms; "
        f"500 series × 500 commits replayed {500 * each:.0f} s of one core"
    )


def total(scores: Iterable[Score]) -> Score:
    return sum(scores, Score())


def recalls(scores: list[tuple[float, Score]]) -> str:
    found = (total(one for step, one in scores if step == size) for size in STEPS)
    return " / ".join(f"{100 * one.right / max(1, one.right + one.missed):.0f}" for one in found)


def lines(seeds: list[int]) -> Iterator[str]:
    tracks = [one for seed in seeds for one in synthetic(seed)]
    yield f"seeds {seeds}"
    yield f"synthetic: {total(one for _, one in tracks)}; recall % at 1/2/5/10/20 %: {recalls(tracks)}"
    yield f"two changes 5 to 15 commits apart: {total(one for step, one in tracks if step < 0)}"
    alerts, commits = (sum(part) for part in zip(*map(false_alarms, seeds), strict=True))
    yield f"false alarms: {alerts} in {commits} clean commits, {1000 * alerts / commits:.2f} per 1000"
    soon = [alerted_within_five(seed) for seed in seeds]
    shares = (100 * np.mean([hit for one in soon for hit in one[step]]) for step in STEPS)
    yield f"alerted within five values, % at 1/2/5/10/20 %: {' / '.join(f'{share:.0f}' for share in shares)}"
    for group, one in real().items():
        yield f"labelled real series, {group}: {one} ({one.right} right, {one.wrong} wrong, {one.missed} missed)"
    blocks = [one for seed in seeds for one in resampled(seed)]
    if blocks:
        clean = sum(one.wrong for step, one in blocks if not step)
        values = 160 * sum(not step for step, _ in blocks)
        yield (
            f"steps in resampled real noise: {total(one for _, one in blocks)}; recall % {recalls(blocks)}; "
            f"{1000 * clean / values:.1f} false alarms per 1000"
        )
    for degrees, kind in ((None, "Gaussian noise"), (4, "Student's t of 4 degrees")):
        suspicious = " / ".join(f"{100 * suspicious_runs(seeds[0], count, degrees):.1f}" for count in (2, 3, 6))
        yield f"unchanged runs with a suspicion, pasts of 2/3/6 values, {kind}: {suspicious} %"
    yield cpu_times(seeds[0])


if __name__ == "__main__":
    for line in lines([int(one) for one in sys.argv[1:]] or [11, 12, 13, 14]):
        print(line, flush=True)  # noqa: T201

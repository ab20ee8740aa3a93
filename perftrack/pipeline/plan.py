"""Which jobs a run consists of: cases × device classes × rounds."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import msgspec

from perftrack.errors import UsageError
from perftrack.model import Case, Device, Job, RunOptions, Side
from perftrack.pipeline.select import select
from perftrack.pipeline.trees import Trees


@dataclass(frozen=True, slots=True)
class Pair:
    """One case as head and as base declare it, on one device class."""

    device_class: str
    head: Case | None
    base: Case | None

    @property
    def case(self) -> Case:
        """Head's declaration, else base's."""
        case = self.head or self.base
        if case is None:
            raise ValueError("a pair has at least one side")
        return case

    @property
    def identity(self) -> tuple[str, str, str]:
        """(suite, case key, device class)."""
        return (self.case.suite, self.case.key, self.device_class)

    def job(self, number: int, prefer: str = "") -> Job | None:
        """The job of round `number`, on the device `prefer` if it is there; None for a case that head no longer has."""
        if self.head is None:
            return None
        sides: tuple[Side, ...] = ("head", "base") if self.base else ("head",)
        return Job(case=self.head, device_class=self.device_class, round=number, sides=sides, prefer=prefer)


def selected(trees: Trees, options: RunOptions, side: Side) -> list[Case]:
    """The cases of one side that the options ask for."""
    wanted = set(options.suites)
    cases = [case for case in trees.cases(side) if not wanted or case.suite in wanted]
    return select(cases, options.expression)


def check_selection(trees: Trees, options: RunOptions) -> None:
    """UsageError where a suite is unknown or nothing is selected."""
    known = sorted({suite for side in trees.collected.values() for suite in side.suites})
    for name in options.suites:
        if name not in known:
            raise UsageError(f"unknown suite {name!r} in {trees.head.label}: there are {', '.join(known)}")
    if not selected(trees, options, "head") and not selected(trees, options, "base") and not trees.problems:
        count = len(trees.cases("head"))
        raise UsageError(
            f"-k {options.expression!r} matches none of the {count} cases of {trees.head.label}"
            if options.expression
            else f"the suites of {trees.head.label} declare no case"
        )


def pairs(trees: Trees, options: RunOptions, devices: Sequence[Device]) -> list[Pair]:
    """Every selected case on every device class that is there, in order of declaration."""
    classes = {device.device_class: device.backend for device in devices}
    made: list[Pair] = []
    for device_class, backend in classes.items():
        sides = {
            side: {(c.suite, c.key): c for c in selected(trees, options, side) if c.backend == backend}
            for side in ("head", "base")
        }
        names = dict.fromkeys([*sides["head"], *sides["base"]])
        made.extend(Pair(device_class, sides["head"].get(name), sides["base"].get(name)) for name in names)
    return made


def jobs(
    wanted: Iterable[Pair],
    rounds: Iterable[int],
    done: set[tuple[str, str, str, int]],
    turns: Mapping[tuple[str, str, str], Sequence[str]] = MappingProxyType({}),
    attempts: Mapping[tuple[str, str, str, int], int] = MappingProxyType({}),
) -> list[Job]:
    """The jobs of these rounds that are not done yet.

    `turns`: pair → device UUIDs that take its rounds in turn. `attempts`: job → how often it was tried before.
    """
    planned = [
        pair.job(number, mine[index % len(mine)] if (mine := turns.get(pair.identity)) else "")
        for index, number in enumerate(rounds)
        for pair in wanted
    ]
    return [
        msgspec.structs.replace(job, attempt=1 + attempts.get(job.identity, 0))
        for job in planned
        if job is not None and job.identity not in done
    ]


def within(
    seconds: float,
    wanted: Iterable[tuple[Pair, int]],
    costs: Mapping[tuple[str, str, str], float],
    devices: Sequence[Device],
) -> list[Pair]:
    """The first of `wanted` whose rounds fit into the time, in each device class; one always does.

    `wanted`: pairs, each with its number of rounds. `costs`: seconds of a job of each pair. The jobs of a class are
    shared by its devices.
    """
    spent: dict[str, float] = {}
    fit: list[Pair] = []
    for pair, rounds in wanted:
        alike = sum(device.device_class == pair.device_class for device in devices)
        before = spent.get(pair.device_class, 0.0)
        spent[pair.device_class] = after = before + rounds * costs.get(pair.identity, 0.0) / max(alike, 1)
        if not before or after <= seconds:
            fit.append(pair)
    return fit


def other_devices_first(
    wanted: Iterable[Pair], devices: Sequence[Device], seen: Mapping[tuple[str, str, str], str]
) -> dict[tuple[str, str, str], list[str]]:
    """For each pair the UUIDs of its class, the one that `seen` names for it last: a second look is taken elsewhere.

    With every device taking its turn, a change that only one of them shows is told from one that the code makes.
    """
    turns: dict[tuple[str, str, str], list[str]] = {}
    for pair in wanted:
        uuids = [device.uuid for device in devices if device.device_class == pair.device_class]
        turns[pair.identity] = sorted(uuids, key=lambda uuid: uuid == seen.get(pair.identity))
    return turns

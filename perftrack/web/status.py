"""The first page: the newest runs on every device class, the worst first word in each cell; what is open."""

import time
from collections.abc import Sequence

import msgspec

from perftrack.judge import life
from perftrack.judge.life import CaseId, Kind, Regression, State
from perftrack.pipeline.life import rows_of as regression_rows
from perftrack.report.value import RegressionRow
from perftrack.store import Store
from perftrack.store.overview import Tally
from perftrack.store.value import RunEntry
from perftrack.web.page import Page, Query

_OPEN_SHOWN = 10
_BROKEN = frozenset({"failed", "wrong"})
_NO_VERDICT = frozenset({"missing", "unstable", "infra"})


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One run on one device class. Its report (`run`) has the verdict with all its reasons."""

    device_class: str
    word: str
    """red, incomplete, failing (nothing red, but what failed or was wrong before still is), accepted (nothing red but
    what people accepted), good, or first (nothing to compare with)."""
    red: int
    accepted: int
    """Candidates that would be red but for what people said of them."""
    counts: dict[str, int]
    """By verdict; without a base, by status of the measurement."""


class RunLine(msgspec.Struct, frozen=True, kw_only=True):
    """One run."""

    run: str
    repo: str
    state: str
    started_us: int
    head: str
    head_subject: str
    base: str | None
    jobs: int
    expected_jobs: int
    problems: int
    cells: tuple[Cell, ...]


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """The newest runs, the newest first."""

    device_classes: tuple[str, ...]
    runs: tuple[RunLine, ...]
    open: tuple[RegressionRow, ...]


def status(store: Store, query: Query) -> Page:
    """Runs × device classes; open regressions."""
    last = query.number("last", 20, high=200)
    entries = store.runs(last=last)
    by_run: dict[str, list[Tally]] = {}
    for one in store.tallies([entry.run.uid for entry in entries]):
        by_run.setdefault(one.run_uid, []).append(one)
    known = store.regressions()
    silenced = _silenced(known)
    lines = [_line(entry, by_run.get(entry.run.uid, ()), silenced) for entry in entries]
    classes = sorted({cell.device_class for line in lines for cell in line.cells})
    data = Status(
        device_classes=tuple(classes), runs=tuple(lines), open=tuple(regression_rows(known, everything=False))
    )
    return Page(
        template="status.html.j2",
        title="Status",
        data=data,
        header=("run", "repo", "state", "started_us", "head", "base", "device_class", "word", "red", "accepted"),
        rows=[
            (one.run, one.repo, one.state, one.started_us, one.head, one.base, *_cells(cell))
            for one in lines
            for cell in one.cells or (None,)
        ],
        extra={
            "by_class": [{cell.device_class: cell for cell in line.cells} for line in lines],
            "open_shown": data.open[-_OPEN_SHOWN:][::-1],
            "last": last,
        },
    )


def _cells(cell: Cell | None) -> tuple[object, ...]:
    return (cell.device_class, cell.word, cell.red, cell.accepted) if cell else ("", "", 0, 0)


def _silenced(known: Sequence[Regression]) -> dict[tuple[str, str], int]:
    """(run, device class) → red candidates that people accepted, all regressions of theirs."""
    now_us = time.time_ns() // 1000
    states: dict[tuple[str, str], dict[tuple[CaseId, Kind], set[bool]]] = {}
    for one in known:
        if one.kind is Kind.LESS_ACCURATE:
            continue
        for seen in one.sightings:
            if not seen.gone:
                is_open = life.stands(one, seen, now_us).state is State.OPEN
                cases = states.setdefault((seen.run_uid, one.device_class), {})
                cases.setdefault((seen.case, one.kind), set()).add(is_open)
    return {where: sum(True not in open_ for open_ in cases.values()) for where, cases in states.items()}


def _line(entry: RunEntry, tallies: Sequence[Tally], silenced: dict[tuple[str, str], int]) -> RunLine:
    run = entry.run
    return RunLine(
        run=run.uid,
        repo=run.repo,
        state=run.state,
        started_us=run.started_us,
        head=run.head.label,
        head_subject=run.head.subject,
        base=run.base.label if run.base else None,
        jobs=entry.jobs,
        expected_jobs=run.expected_jobs,
        problems=len(run.problems),
        cells=tuple(
            _cell(entry, name, [one for one in tallies if one.device_class == name], silenced.get((run.uid, name), 0))
            for name in sorted({one.device_class for one in tallies})
        ),
    )


def _cell(entry: RunEntry, name: str, tallies: Sequence[Tally], silenced: int) -> Cell:
    counts: dict[str, int] = {}
    for one in tallies:
        counts[one.verdict] = counts.get(one.verdict, 0) + one.count
    red = sum(one.count for one in tallies if one.red)
    accepted = min(red, silenced)
    unsure = any(one.flaky or (one.verdict == "slower" and not one.red) for one in tallies)
    unsure = unsure or bool(_NO_VERDICT & counts.keys())
    if red > accepted:
        word = "red"
    elif unsure or entry.run.state != "complete" or any(text.startswith("head ") for text in entry.run.problems):
        word = "incomplete"
    elif not accepted and _BROKEN & counts.keys():
        word = "failing"
    elif accepted:
        word = "accepted"
    else:
        word = "good" if entry.run.base else "first"
    return Cell(device_class=name, word=word, red=red - accepted, accepted=accepted, counts=counts)

"""Runs, and how far one of them is: read from the store anew each time the page is."""

import time

import msgspec

from perftrack.model import Run
from perftrack.store import Store, read
from perftrack.store.progress import CardProgress, Progress, Trouble
from perftrack.store.progress import progress as stored_progress
from perftrack.store.value import RunEntry
from perftrack.web.page import Page, Query
from perftrack.web.paging import Part, count

ON_A_PAGE = 50
EVERY_S = 5
"""Between two looks of a reader who follows."""

_SHOWN = 20


class RunProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How far one run is."""

    run: str
    repo: str
    state: str
    head: str
    head_subject: str
    base: str | None
    started_us: int
    finished_us: int | None
    done: int
    """Jobs that need no further attempt; confirming suspects adds to those that were expected."""
    expected: int
    left_s: float | None
    """What is expected takes so much longer at the pace so far; None where nothing is left or nothing is known."""
    idle_s: float | None
    """Since the newest attempt of a running run ended; None where there is none."""
    problems: tuple[str, ...]
    cards: tuple[CardProgress, ...]
    troubles: tuple[Trouble, ...]


def progress(store: Store, query: Query) -> Page:
    """One run: jobs, pace, cards, and attempts that failed."""
    uid = store.find_run(query.needed("id", "give the first digits of a run, as in progress?id=7d7a3f2f, or latest"))
    run, found = store.read(lambda connection: stored_progress(connection, uid))
    data = _progress(run, found, time.time_ns() // 1000)
    follow = query.choice("follow", ("no", "yes"))
    return Page(
        template="progress.html.j2",
        title=f"{data.done} of {data.expected} jobs of {data.head}" if run.state == "running" else f"Run {uid[:8]}",
        data=data,
        header=(*_SCALARS, *(f"card_{name}" for name in CardProgress.__struct_fields__)),
        rows=[
            (*(getattr(data, name) for name in _SCALARS), *(msgspec.structs.astuple(card) if card else _NO_CARD))
            for card in data.cards or (None,)
        ],
        extra={
            "refresh": EVERY_S if follow == "yes" and run.state == "running" else None,
            "every_s": EVERY_S,
            "shown": data.troubles[:_SHOWN],
            "share": min(1.0, data.done / data.expected) if data.expected else 0.0,
        },
    )


_SCALARS = ("run", "repo", "state", "head", "base", "started_us", "finished_us", "done", "expected", "left_s", "idle_s")
_NO_CARD = ("",) * len(CardProgress.__struct_fields__)


def _progress(run: Run, found: Progress, now_us: int) -> RunProgress:
    running = run.state == "running"
    last_us = max((card.last_us for card in found.cards), default=None)
    left = run.expected_jobs - found.done
    pace_s = (last_us - run.started_us) / 1e6 / found.done if last_us and found.done else None
    return RunProgress(
        run=run.uid,
        repo=run.repo,
        state=run.state,
        head=run.head.label,
        head_subject=run.head.subject,
        base=run.base.label if run.base else None,
        started_us=run.started_us,
        finished_us=run.finished_us,
        done=found.done,
        expected=run.expected_jobs,
        left_s=left * pace_s if running and pace_s and left > 0 else None,
        idle_s=max(0.0, (now_us - last_us) / 1e6) if running and last_us else None,
        problems=run.problems,
        cards=found.cards,
        troubles=found.troubles,
    )


class RunLine(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the list."""

    run: str
    repo: str
    state: str
    head: str
    head_subject: str
    base: str | None
    started_us: int
    finished_us: int | None
    attempts: int
    expected_jobs: int
    problems: int
    verdicts: dict[str, int]


def runs(store: Store, query: Query) -> Page:
    """Every run, the newest first; a page at a time also as JSON and CSV."""
    total = store.read(read.run_count)
    pages = count(total, ON_A_PAGE)
    number = min(query.number("page", 1, high=100_000), pages)
    lines = [_line(entry) for entry in store.runs(last=ON_A_PAGE, skip=(number - 1) * ON_A_PAGE)]
    running = any(line.state == "running" for line in lines)
    follow = query.choice("follow", ("no", "yes"))
    return Page(
        template="runs.html.j2",
        title="Runs",
        data=lines,
        header=tuple(name for name in RunLine.__struct_fields__ if name != "verdicts"),
        rows=[msgspec.structs.astuple(line)[:-1] for line in lines],
        extra={
            "part": Part(items=lines, number=number, pages=pages, total=total),
            "asked": {},
            "running": running,
            "refresh": EVERY_S if running and follow == "yes" else None,
            "every_s": EVERY_S,
        },
    )


def _line(entry: RunEntry) -> RunLine:
    run = entry.run
    return RunLine(
        run=run.uid,
        repo=run.repo,
        state=run.state,
        head=run.head.label,
        head_subject=run.head.subject,
        base=run.base.label if run.base else None,
        started_us=run.started_us,
        finished_us=run.finished_us,
        attempts=entry.jobs,
        expected_jobs=run.expected_jobs,
        problems=len(run.problems),
        verdicts=entry.verdicts,
    )

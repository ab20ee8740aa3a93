"""`perftrack judge --replay`: the rules of the history over what is stored, as if each commit had just come."""

import os
import signal
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from perftrack import stats
from perftrack.errors import IncompleteError, PerftrackError, UsageError
from perftrack.judge import life
from perftrack.judge.life import CaseId, Kind, Regression, State
from perftrack.judge.replay import Alert, replay
from perftrack.judge.suspicions import Series, Suspicion, suspicions
from perftrack.pipeline.lines import lines_at
from perftrack.report.replay import ReplayReport, Suspected, Told, Untold
from perftrack.revision import Repository
from perftrack.store import Store
from perftrack.store.tracks import Track
from perftrack.store.value import StoredRevision

_NEAR = 2
"""Commits of a series between a change told and a regression remembered that are still the same."""
_LEVEL = 30
"""Newest times before a change that its size is told from."""
_ALONE = 20_000
"""So many times take a second or two: other processes would have to start first."""
_CHUNK = 4

_Key = tuple[str, str, str, str, str]
"""(repository, suite, case key, device class, variant)."""


def replay_of(
    store: Store, of: str, *, device: str, since: str, start: Path, min_effect: float | None = None
) -> ReplayReport:
    """What would have been told of a suite, or of cases that match `of` (empty: of all), and when.

    `since`: a commit, by its first digits or as git knows it at `start`; what was told before it is left out, while the
    rules see all of the past. `min_effect`, as a benchmark declares it: a change that was smaller when the rules saw it
    begins a level and is not told. Only reads. IncompleteError where nothing is stored, UsageError for an unknown
    commit and a `min_effect` that is no share.
    """
    if min_effect is not None and not 0 < min_effect < 1:
        raise UsageError(f"--min-effect is {min_effect}; give a share between 0 and 1, e.g. 0.02")
    tracks = store.tracks(of or "*", device=device, lines=lines_at(start, store))
    first = store.find_revision(None, _commit(start, since)) if since else None
    if first is not None:
        tracks = [one for one in tracks if one.repo == first.repo and one.revisions[-1].order >= first.order]
    if not tracks:
        asked = " ".join(
            filter(None, (of and repr(of), f"on {device}" if device else "", f"since {since}" if since else ""))
        )
        raise IncompleteError(
            f"{store.label} has no history{' of ' if asked else ''}{asked}: `perftrack submit` makes one"
        )
    now_us, known = time.time_ns() // 1000, _remembered(store)
    alerts_of = replay_all(tracks)
    told: list[tuple[tuple[bool, int, int, int], Told]] = []
    untold: list[Untold] = []
    for track, found in zip(tracks, alerts_of, strict=True):
        alerts = [one for one in found if _counts(_change(track, found, one), min_effect)]
        shown = [one for one in alerts if first is None or track.revisions[one.seen].order >= first.order]
        matched = _matched(track, alerts, known.get(_key(track), ()))
        told += [(track.revisions[one.seen].order, _told(track, found, one, matched.get(one), now_us)) for one in shown]
        missing = [one for one in known.get(_key(track), ()) if one not in matched.values()]
        untold += _untold(track, missing, first, now_us)
    judged = [_judged(track, first) for track in tracks]
    revisions = sorted({one.id: one for part in judged for one, _ in part}.values(), key=lambda one: one.order)
    return ReplayReport(
        series=len(tracks),
        commits=len(revisions),
        values=sum(seconds is not None for part in judged for _, seconds in part),
        first=revisions[0].revision.label,
        last=revisions[-1].revision.label,
        told=tuple(one for _, one in sorted(told, key=lambda each: each[0])),
        min_effect=min_effect,
        false_alarms=sum(one.state is State.INVALID for _, one in told),
        not_looked_at=sum(one.direction > 0 and not one.looked_at for _, one in told),
        untold=tuple(untold),
        suspected=tuple(_suspected(tracks, alerts_of, known, first)),
    )


def _suspected(
    tracks: Sequence[Track],
    alerts_of: Sequence[list[Alert]],
    known: Mapping[_Key, Sequence[Regression]],
    first: StoredRevision | None,
) -> Iterator[Suspected]:
    """What the triage of heads would have measured again, a repository and a device class at a time."""
    together: dict[tuple[str, str], list[int]] = {}
    for number, track in enumerate(tracks):
        together.setdefault((track.repo, track.device_class), []).append(number)
    for numbers in together.values():
        mine = [tracks[number] for number in numbers]
        revisions = sorted({one.id: one for track in mine for one in track.revisions}.values(), key=lambda r: r.order)
        order = {one.id: at for at, one in enumerate(revisions)}
        of = [
            Series(
                values=track.values,
                commits=[order[one.id] for one in track.revisions],
                segments=track.segments,
                cards=track.cards,
                alerts=alerts_of[number],
                known=[at for one in known.get(_key(track), ()) if (at := _place(track, one)) is not None],
            )
            for number, track in zip(numbers, mine, strict=True)
        ]
        for one in suspicions(of):
            track = mine[one.series]
            if first is None or track.revisions[one.place].order >= first.order:
                yield _suspicion(track, one)


def _suspicion(track: Track, one: Suspicion) -> Suspected:
    revision = track.revisions[one.place].revision
    return Suspected(
        repo=track.repo,
        suite=track.suite,
        case=track.case_key,
        device_class=track.device_class,
        variant=track.variant,
        reading=one.reading,
        change=1 + one.change,
        commit=revision.label,
        sha=revision.sha,
    )


def replay_all(tracks: Sequence[Track]) -> list[list[Alert]]:
    """What is told of each track; by as many processes as there are CPUs where that is worth their start."""
    items = [(one.values, one.borders, one.cards) for one in tracks]
    processes = len(os.sched_getaffinity(0))
    if processes == 1 or sum(len(values) for values, _, _ in items) < _ALONE:
        return [_replayed(one) for one in items]
    # a fork would take the threads and the database's connections along
    with ProcessPoolExecutor(processes, get_context("spawn"), _leave_interrupts_to_the_parent) as pool:
        return list(pool.map(_replayed, items, chunksize=_CHUNK))


def _replayed(item: tuple[list[float], list[int], tuple[str, ...]]) -> list[Alert]:
    values, borders, cards = item
    return replay(values, borders=borders, cards=cards)


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _commit(start: Path, name: str) -> str:
    try:
        return Repository.discover(start).commit_id(name)
    except PerftrackError:
        return name


def _key(track: Track) -> _Key:
    return (track.repo, track.suite, track.case_key, track.device_class, track.variant)


def _remembered(store: Store) -> Mapping[_Key, list[Regression]]:
    """The remembered slowdowns of each series."""
    found: dict[_Key, list[Regression]] = {}
    for one in store.regressions():
        if one.kind is Kind.SLOWER:
            for case in one.cases():
                found.setdefault((one.repo, case.suite, case.case_key, one.device_class, case.variant), []).append(one)
    return found


def _judged(track: Track, first: StoredRevision | None) -> list[tuple[StoredRevision, float | None]]:
    pairs = zip(track.revisions, track.times_s, strict=True)
    return [(one, seconds) for one, seconds in pairs if first is None or one.order >= first.order]


def _place(track: Track, regression: Regression) -> int | None:
    """Of the commit that a regression was found at; None where this series does not have it."""
    shas = [one.revision.sha for one in track.revisions]
    return shas.index(regression.found.sha) if regression.found.sha in shas else None


def _matched(track: Track, alerts: Iterable[Alert], known: Sequence[Regression]) -> dict[Alert, Regression]:
    """Of each slowdown that was told the nearest remembered one."""
    places = [(place, one) for one in known if (place := _place(track, one)) is not None]
    matched: dict[Alert, Regression] = {}
    for alert in alerts:
        near = [(abs(place - alert.start), one.id, one) for place, one in places if abs(place - alert.start) <= _NEAR]
        if near and alert.direction > 0:
            matched[alert] = min(near, key=lambda each: each[:2])[2]
    return matched


def _told(track: Track, alerts: Sequence[Alert], alert: Alert, known: Regression | None, now_us: int) -> Told:
    start, seen = (track.revisions[at].revision for at in (alert.start, alert.seen))
    return Told(
        repo=track.repo,
        suite=track.suite,
        case=track.case_key,
        device_class=track.device_class,
        variant=track.variant,
        direction=alert.direction,
        change=_change(track, alerts, alert),
        commit=start.label,
        sha=start.sha,
        subject=start.subject,
        committed_us=start.committed_us,
        seen=seen.label,
        seen_sha=seen.sha,
        delay=alert.delay,
        regression=known.id if known else None,
        state=_state(track, known, now_us) if known else None,
        looked_at=known is not None and bool(known.marks),
    )


def _counts(change: float, min_effect: float | None) -> bool:
    """As for the verdicts: the limits are 1 + min_effect and its inverse."""
    return min_effect is None or not 1 / (1 + min_effect) < change < 1 + min_effect


def _change(track: Track, alerts: Sequence[Alert], alert: Alert) -> float:
    """Median time from the change to its telling ÷ that of the level before."""
    edges = [0, *track.borders, *(one.start for one in alerts if one.seen <= alert.seen)]
    begin = max(edge for edge in edges if edge < alert.start)
    before = [seconds for seconds in track.times_s[begin : alert.start] if seconds is not None][-_LEVEL:]
    after = [seconds for seconds in track.times_s[alert.start : alert.seen + 1] if seconds is not None]
    return stats.median(after) / stats.median(before)


def _state(track: Track, regression: Regression, now_us: int) -> State:
    return life.standing(regression, CaseId(track.suite, track.case_key, track.variant), now_us).state


def _untold(track: Track, missing: Iterable[Regression], first: StoredRevision | None, now_us: int) -> Iterator[Untold]:
    for one in missing:
        place, state = _place(track, one), _state(track, one, now_us)
        if place is None or state in (State.INVALID, State.INFRA):
            continue
        if first is None or track.revisions[place].order >= first.order:
            yield Untold(
                regression=one.id,
                state=state,
                suite=track.suite,
                case=track.case_key,
                device_class=track.device_class,
                variant=track.variant,
                commit=one.found.label,
            )

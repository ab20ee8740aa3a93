"""Answers from what is stored: a run's report, two revisions side by side, one case's history, the devices."""

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

import msgspec

from perftrack.declare import NEVER_GATED
from perftrack.errors import IncompleteError, PerftrackError, UsageError
from perftrack.judge import change_points
from perftrack.judge.value import Finding
from perftrack.model import Accuracy, DeviceReport, Run, Status
from perftrack.report.build import build
from perftrack.report.segments import borders
from perftrack.report.value import CardUse, CompareRow, Comparison, DeviceRow, History, HistoryPoint, Report
from perftrack.revision import Repository
from perftrack.store import Store
from perftrack.store.lines import Lines, main_lines
from perftrack.store.overview import SeriesName
from perftrack.store.value import StoredRevision, StoredSummary


def report_of(store: Store, uid: str) -> Report:
    """The report of a stored run, with its regressions as they stand now."""
    stored = store.load_run(uid)
    unread = [problem for problem in stored.run.problems if problem.startswith("head ")]
    return build(
        stored.run,
        stored.cases,
        stored.devices,
        stored.summaries,
        stored.findings,
        incomplete=unread,
        use=_use(stored.run, store.busy(uid)),
        regressions=store.regressions(run_uid=uid),
        now_us=time.time_ns() // 1000,
    )


def _use(run: Run, busy: Mapping[str, tuple[int, float]]) -> list[CardUse]:
    """What each card did."""
    wall_s = (run.finished_us - run.started_us) / 1e6 if run.finished_us else 0.0
    return [
        CardUse(uuid=uuid, jobs=jobs, busy_s=busy_s, busy_share=busy_s / wall_s if wall_s > 0 else None)
        for uuid, (jobs, busy_s) in busy.items()
    ]


def comparison_of(store: Store, left: str, right: str, *, device: str, start: Path | None) -> Comparison:
    """Two stored revisions side by side, one row a candidate variant; unpaired, so it says no verdict of its own.

    Each may be a commit's first digits, or any name git knows in the repository at `start`; None: in no repository.
    """
    names = [_commit(start, name) for name in (left, right)]
    newest = [_newest(store.summaries(name, device=device)) for name in names]
    for name, found in zip((left, right), newest, strict=True):
        if not found:
            raise IncompleteError(f"nothing is stored for {name}: measure it with `perftrack submit --head {name}`")
    before, after = newest
    sides = [next(iter(found.values())).revision for found in newest]
    paired = {_finding_key(finding): finding for finding in store.findings(*sides)}
    keys = sorted(key for key in {*before, *after} if key[3] not in NEVER_GATED)
    rows = tuple(_compare_row(key, before.get(key), after.get(key), paired.get(key)) for key in keys)
    note = (
        "Verdicts are of the run that measured both side by side."
        if paired
        else "Each side was measured at its own time; `perftrack submit --base` measures them side by side."
    )
    labels = [side.revision.label for side in sides]
    return Comparison(left=labels[0], right=labels[1], rows=rows, total=len(rows), note=note)


def _finding_key(finding: Finding) -> "_Key":
    return (finding.suite, finding.case_key, finding.device_class, finding.variant)


def _commit(start: Path | None, name: str) -> str:
    if start is None:
        return name
    try:
        return Repository.discover(start).commit_id(name)
    except PerftrackError:
        return name


_Key = tuple[str, str, str, str]


def _newest(points: Iterable[StoredSummary]) -> dict[_Key, StoredSummary]:
    found: dict[_Key, StoredSummary] = {}
    for point in sorted(points, key=lambda point: point.measured_us):
        one = point.summary
        if one.status is Status.OK and one.variant != point.baseline:
            found[one.suite, one.case_key, one.device_class, one.variant] = point
    return found


def _compare_row(
    key: _Key, left: StoredSummary | None, right: StoredSummary | None, paired: Finding | None
) -> CompareRow:
    before, after = (point.summary if point else None for point in (left, right))
    change = after.time_s / before.time_s if before and after and before.time_s and after.time_s else None
    return CompareRow(
        suite=key[0],
        case=key[1],
        device_class=key[2],
        variant=key[3],
        left_s=before.time_s if before else None,
        right_s=after.time_s if after else None,
        left_baseline_s=before.baseline_s if before else None,
        right_baseline_s=after.baseline_s if after else None,
        left_speedup=before.speedup.point if before and before.speedup else None,
        right_speedup=after.speedup.point if after and after.speedup else None,
        change=change,
        verdict=paired.verdict.value if paired else "",
        left_error=before.error_l2 if before else None,
        right_error=after.error_l2 if after else None,
        accuracy=paired.accuracy if paired else Accuracy.NONE,
    )


def histories_of(
    store: Store, case: str, *, device: str, variant: str, last: int, lines: Lines | None = None
) -> list[History]:
    """The stored series of one case: one for each suite, device class and candidate variant, oldest point first.

    A new segment starts where another environment or method does, and where the level changed (`judge.change_points` of
    all commits of the main line, also of those before the `last`). `lines` is as for `Store.tracks`; where a series has
    any commit of its line, the others are aside. UsageError where the store has none of that name.
    """
    points = store.history(case, device=device or None, variant=variant or None, last=last)
    series: dict[_Key, list[StoredSummary]] = {}
    for point in points:
        one = point.summary
        if variant or (one.variant != point.baseline and one.variant not in NEVER_GATED):
            series.setdefault((one.suite, one.case_key, one.device_class, one.variant), []).append(point)
    if not series:
        raise UsageError(f"the store has no results of {case!r}: name a whole case, as `perftrack report` prints it")
    begun: dict[_Key, dict[int, int]] = {}
    placed: dict[_Key, set[int]] = {}
    for track in store.tracks(case, device=device, variant=variant, lines=lines):
        key = (track.suite, track.case_key, track.device_class, track.variant)
        begun.setdefault(key, {}).update((track.revisions[at].id, direction) for at, direction in track.changes())
        placed.setdefault(key, set()).update(one.id for one in track.revisions)
    return [
        _newest_of(_history(key, found, placed.get(key, set())), _places(found, begun.get(key, {})), last)
        for key, found in series.items()
    ]


def _places(points: Sequence[StoredSummary], begun: Mapping[int, int]) -> list[tuple[int, int]]:
    """Of each revision that begins a level the first point, since it may have been measured more than once."""
    firsts: dict[int, int] = {}
    for index, point in enumerate(points):
        firsts.setdefault(point.revision.id, index)
    return sorted((firsts[revision], direction) for revision, direction in begun.items() if revision in firsts)


def newest_histories(store: Store, names: Sequence[SeriesName], *, runs: int) -> list[History]:
    """What the newest `runs` say of these series, with the changes among them; in the order of `names`."""
    found: dict[_Key, list[StoredSummary]] = {}
    revisions: dict[int, StoredRevision] = {}
    for point in store.newest_points(names, runs=runs):
        one = point.summary
        found.setdefault((one.suite, one.case_key, one.device_class, one.variant), []).append(point)
        revisions[point.revision.id] = point.revision
    lines = store.read(lambda connection: main_lines(connection, revisions.values()))
    placed = {
        number
        for number, one in revisions.items()
        if not one.revision.dirty and one.revision.sha in lines.get(one.repo, ())
    }
    whole = [
        _history(key, found.get(key, ()), placed)
        for key in ((one.suite, one.case, one.device_class, one.variant) for one in names)
    ]
    return [msgspec.structs.replace(one, changes=_changes(one.points)) for one in whole]


def _changes(points: Sequence[HistoryPoint]) -> tuple[tuple[int, int], ...]:
    times = [math.nan if point.time_s is None or point.aside else point.time_s for point in points]
    return tuple(change_points(times, borders=borders(points)))


def _newest_of(series: History, changes: Sequence[tuple[int, int]], last: int) -> History:
    """Only the newest points, with the changes among them: what lies before was needed to see these."""
    cut = max(0, len(series.points) - last)
    kept = tuple((index - cut, direction) for index, direction in changes if index > cut)
    return msgspec.structs.replace(series, points=series.points[cut:], changes=kept)


def _history(key: _Key, points: Sequence[StoredSummary], placed: AbstractSet[int]) -> History:
    """`placed`: row numbers of the revisions of the main line."""
    suite, case, device_class, variant = key
    any_placed = any(point.revision.id in placed for point in points)
    return History(
        suite=suite,
        case=case,
        device_class=device_class,
        variant=variant,
        points=tuple(
            HistoryPoint(
                revision=point.revision.revision.label,
                subject=point.revision.revision.subject,
                committed_us=point.revision.revision.committed_us,
                status=point.summary.status,
                time_s=point.summary.time_s,
                baseline_s=point.summary.baseline_s,
                speedup=point.summary.speedup.point if point.summary.speedup else None,
                segment=f"{point.summary.environment_digest[:6]}/{point.method_digest[:6]}",
                aside=any_placed and not point.revision.revision.dirty and point.revision.id not in placed,
            )
            for point in points
        ),
    )


def device_rows(reports: Iterable[DeviceReport]) -> list[DeviceRow]:
    """What the pool says of its devices."""
    return [
        DeviceRow(device=report.device, environment=report.environment.entries, problem=report.problem)
        for report in reports
    ]

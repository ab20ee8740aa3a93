"""`pytest --perftrack`: what pytest-benchmark measured, into the store, and what its series say to it."""

import json
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perftrack import config
from perftrack.errors import PerftrackError
from perftrack.judge.value import Summary, spell
from perftrack.model import Revision, Verdict
from perftrack.pipeline.imports import FileReport, Request, import_files
from perftrack.report.words import counted
from perftrack.revision import Repository
from perftrack.store import Store, StoredSummary, default_url
from perftrack.store.unpaired import change, verdict

_WORST_FIRST = (Verdict.SLOWER, Verdict.FASTER, Verdict.AMBIGUOUS, Verdict.SAME, Verdict.NEW)
_SHOWN = (Verdict.SLOWER, Verdict.FASTER)
_MOST_LINES = 10


@dataclass(frozen=True, slots=True)
class Recorded:
    """What became of a session: lines for its end."""

    run: str | None
    """Uid; None where nothing was measured."""
    lines: tuple[str, ...]


def database(root: Path, url: str) -> str:
    """Where a session below `root` is stored: `url`, else as for every command."""
    return config.database_url(url or None, config.settings_near(root)) or default_url()


def record(document: Mapping[str, Any], root: Path, url: str) -> Recorded:
    """Store the JSON of a pytest-benchmark session of the repository at `root`.

    Where that fails the JSON stays in `root`, and the error names it. Raises the errors of `errors`.
    """
    with tempfile.TemporaryDirectory(prefix="perftrack-pytest-") as folder:
        path = Path(folder, "a pytest session")
        text = json.dumps(document, default=str)
        path.write_text(text, encoding="utf-8")
        try:
            with Store.open(database(root, url)) as store:
                request = Request(start=root, files=(path,), format="pytest-benchmark")
                report = import_files(request, store, head=_head(root)).files[0]
                return _recorded(store, report)
        except PerftrackError as error:
            kept = root / "perftrack-not-stored.json"
            kept.write_text(text, encoding="utf-8")
            raise type(error)(f"{error}; the results are in {kept}: `perftrack import` stores them") from error


def _head(root: Path) -> Revision | None:
    """The work tree as it is; None outside a repository."""
    try:
        with Repository.discover(root).worktree_revision() as (_, head):
            return head
    except PerftrackError:
        return None


def _recorded(store: Store, report: FileReport) -> Recorded:
    if not report.runs:
        return Recorded(None, ("no benchmark ran: nothing stored",))
    uid = report.runs[0]
    where = (
        f"{counted(report.results, 'result')} of {report.revisions[0]} on {report.devices[0]} stored in {store.label}"
    )
    problems = tuple(f"not stored: {problem.text}" for problem in report.notes.bad)
    return Recorded(uid, (f"{where}, run {uid[:8]}", *problems, *_verdicts(store, uid)))


def _verdicts(store: Store, uid: str) -> list[str]:
    """Each result against the newest earlier revision of its series; these were measured at other times."""
    stored = store.load_run(uid)
    counts: Counter[Verdict] = Counter()
    lines: list[str] = []
    for one in stored.summaries:
        before, now = _newest_two(store, stored.run.repo, uid, one)
        found, _ = verdict(before, now)
        counts[found] += 1
        moved = change(before.summary, one) if before else None
        if found in _SHOWN and before and moved:
            since = before.revision.revision.label
            lines.append(f"  {one.suite}: {one.case_key} {spell(moved.point)} than at {since}")
    told = ", ".join(
        f"{counts[word]} {word.value}" for word in dict.fromkeys((*_WORST_FIRST, *Verdict)) if counts[word]
    )
    more = [f"  and {len(lines) - _MOST_LINES} more"] if len(lines) > _MOST_LINES else []
    return [f"against the revision before, not side by side: {told}", *sorted(lines)[:_MOST_LINES], *more]


def _newest_two(store: Store, repo: str, uid: str, one: Summary) -> tuple[StoredSummary | None, StoredSummary | None]:
    """The newest point of an earlier revision, and this run's own."""
    points = [
        point
        for point in store.history(one.case_key, device=one.device_class, variant=one.variant, suite_name=one.suite)
        if point.revision.repo == repo and point.summary.device_class == one.device_class
    ]
    now = next((point for point in points if point.run_uid == uid), None)
    if now is None:
        return None, None
    earlier = [
        point for point in points if point.revision.id != now.revision.id and point.measured_us < now.measured_us
    ]
    return (earlier[-1] if earlier else None), now

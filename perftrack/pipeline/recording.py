"""`pytest --perftrack`: what pytest-benchmark measured, into the store, and what its series say to it."""

import itertools
import json
import tempfile
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perftrack import config
from perftrack.errors import InfrastructureError, PerftrackError
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
    refused: bool = False
    """Something was measured, and nothing of it could be stored."""


def database(root: Path, url: str) -> str:
    """Where a session below `root` is stored: `url`, else as for every command."""
    return config.database_url(url or None, config.settings_near(root)) or default_url()


def record(document: Mapping[str, Any], root: Path, url: str) -> Recorded:
    """Store the JSON of a pytest-benchmark session of the repository at `root`.

    Where that fails the JSON stays in a new file in `root`, or where that cannot be written in the folder of
    temporary files, and the error names it. Raises the errors of `errors`.
    """
    text = json.dumps(document, default=str)
    try:
        with tempfile.TemporaryDirectory(prefix="perftrack-pytest-") as folder:
            path = Path(folder, "a pytest session")
            path.write_text(text, encoding="utf-8")
            with Store.open(database(root, url)) as store:
                head, line = _here(root)
                request = Request(start=root, files=(path,), format="pytest-benchmark")
                report = import_files(request, store, head=head).files[0]
                return _recorded(store, report, line)
    except PerftrackError as error:
        raise type(error)(f"{error}; {_kept(text, root)}") from error
    except OSError as error:
        raise InfrastructureError(f"{error}; {_kept(text, root)}") from error


def _kept(text: str, root: Path) -> str:
    """Where the results lie now, in words; no file that is there is written over."""
    try:
        path = _new_file(text, root)
    except OSError as error:
        return f"the results are lost, for they could not be kept in a file either: {error}"
    return f"the results are in {path}: `perftrack import` stores them"


def _new_file(text: str, root: Path) -> Path:
    for number in itertools.count(1):
        path = root / f"perftrack-not-stored{'' if number == 1 else f'-{number}'}.json"
        try:
            file = path.open("x", encoding="utf-8")
        except FileExistsError:
            continue
        except OSError:
            break
        try:
            with file:
                file.write(text)
        except OSError:
            path.unlink()
            break
        return path
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", prefix="perftrack-not-stored-", suffix=".json", delete=False
    ) as file:
        file.write(text)
    return Path(file.name)


def _here(root: Path) -> tuple[Revision | None, Collection[str]]:
    """The work tree as it is, and the commits in its line of first parents; nothing outside a repository."""
    try:
        repository = Repository.discover(root)
        with repository.worktree_revision() as (_, head):
            return head, repository.line(head)
    except PerftrackError:
        return None, ()


def _recorded(store: Store, report: FileReport, line: Collection[str]) -> Recorded:
    problems = [f"not stored: {problem.text}" for problem in report.notes.bad]
    if report.notes.bad_count > len(problems):
        problems.append(f"not stored: {report.notes.bad_count - len(problems)} more")
    if not report.runs:
        if problems:
            return Recorded(None, ("NOT STORED: no result could be read", *problems), refused=True)
        return Recorded(None, ("no benchmark ran: nothing stored",))
    uid = report.runs[0]
    where = (
        f"{counted(report.results, 'result')} of {report.revisions[0]} on {report.devices[0]} stored in {store.label}"
    )
    return Recorded(uid, (f"{where}, run {uid[:8]}", *problems, *_verdicts(store, uid, line)))


def _verdicts(store: Store, uid: str, line: Collection[str]) -> list[str]:
    """Each result against the revision before in its series; these were measured at other times."""
    stored = store.load_run(uid)
    counts: Counter[Verdict] = Counter()
    lines: list[str] = []
    for one in stored.summaries:
        before, now = _two(store, stored.run.repo, uid, one, line)
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


def _two(
    store: Store, repo: str, uid: str, one: Summary, line: Collection[str]
) -> tuple[StoredSummary | None, StoredSummary | None]:
    """The point that this run's own is held against, and that itself."""
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
    return _before(earlier, now, line), now


def _before(earlier: Sequence[StoredSummary], now: StoredSummary, line: Collection[str]) -> StoredSummary | None:
    """The newest point of the nearest commit in the `line` of now.

    Where the series has none of these (a rebase, a shallow clone, no repository), the point that was measured last:
    one with a place in history where now has one and there is such a point.
    """

    def place(point: StoredSummary) -> int:
        position = point.revision.revision.position
        return -1 if position is None else position

    own = [point for point in earlier if point.revision.revision.sha in line and not point.revision.revision.dirty]
    if own:
        return max(own, key=lambda point: (place(point), point.measured_us))
    placed = [point for point in earlier if place(point) >= 0] if place(now) >= 0 else []
    return max(placed or earlier, key=lambda point: point.measured_us, default=None)

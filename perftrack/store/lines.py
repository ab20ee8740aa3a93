"""Which stored commits make up a repository's main line of history, as far as a store knows that by itself."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import sqlalchemy as sa

from perftrack.model import BY_MERGE_BASE, BY_PARENT
from perftrack.store.columns import is_one_of
from perftrack.store.schema import revision, run
from perftrack.store.value import StoredRevision

Lines = Mapping[str, frozenset[str]]
"""Repository → ids of the commits of one line of its history."""

_head = revision.alias("head")
_RUNS = sa.select(
    _head.c.repo, run.c.head_id, run.c.base_id, _head.c.dirty, run.c.base_note, run.c.head_branch
).join_from(run, _head, run.c.head_id == _head.c.id)


def main_lines(connection: sa.Connection, known: Iterable[StoredRevision]) -> dict[str, frozenset[str]]:
    """Of each repository, of these revisions: at most one commit for each first-parent position.

    A commit is on the main branch where a submission found it there, or as its merge-base. It is another branch's where
    a submission found only its merge-base there, or was made on a branch of another name (if none says otherwise). What
    is known of neither (a sweep, an import, a named base) is taken as the main branch's, but it gives way to a commit
    that is known to be, to the parent of the next newer one, and to one that was made later. So does a rebased commit.
    The first parent of a commit of the line is of the line, too, whatever was said of it before it was merged. Of
    commits without a position all are taken that no submission found on another branch.
    """
    of: dict[str, list[StoredRevision]] = defaultdict(list)
    for one in known:
        of[one.repo] += [] if one.revision.dirty else [one]
    said = _said(connection, [one.id for several in of.values() for one in several])
    return {repo: frozenset(_line(revisions, said)) for repo, revisions in of.items()}


def _line(revisions: Sequence[StoredRevision], said: Mapping[int, bool]) -> list[str]:
    at: dict[int, list[StoredRevision]] = defaultdict(list)
    line: list[str] = []
    for one in revisions:
        if one.revision.position is not None:
            at[one.revision.position].append(one)
        elif said.get(one.id, True):
            line.append(one.revision.sha)
    parent: str | None = None
    for position in sorted(at, reverse=True):
        able = [one for one in at[position] if said.get(one.id, True) or one.revision.sha == parent]
        if able:
            best = max(able, key=lambda one: (said.get(one.id, False), one.revision.sha == parent, one.order))
            line.append(best.revision.sha)
            parent = best.revision.parent
    return line


def _said(connection: sa.Connection, revisions: Sequence[int]) -> dict[int, bool]:
    """Revision → whether it lies on the main branch, where a run tells."""
    sides = is_one_of(run.c.head_id, revisions), is_one_of(run.c.base_id, revisions)
    rows = connection.execute(_RUNS.where(sa.or_(*sides))).all()
    mains: dict[str, set[str]] = defaultdict(set)
    for repo, _, _, _, note, _ in rows:
        if note.startswith(BY_MERGE_BASE):
            mains[repo].add(note.removeprefix(BY_MERGE_BASE).partition(",")[0].strip())
    found: dict[int | None, bool] = {}
    for repo, head, base, dirty, note, branch in rows:
        # uncommitted changes say of the commit under them where it was made
        made = base if dirty else head
        if base is not None and note.startswith(BY_MERGE_BASE):
            found[base] = True
            found.setdefault(made, False)
        elif note.startswith(BY_PARENT):
            found[made] = True
        if branch and mains[repo]:
            found[made] = found.get(made, False) or any(f"/{name}".endswith(f"/{branch}") for name in mains[repo])
    return {number: told for number, told in found.items() if number is not None}

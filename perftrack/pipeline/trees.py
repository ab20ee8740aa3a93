"""Which revisions a submission is about, their files, and the cases that those declare."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from perftrack.errors import UsageError
from perftrack.measure.collect import Collected, collect_tree
from perftrack.model import Case, Revision, Run, Side, TreeArchive
from perftrack.pool.tree_cache import cache_folder, unpack
from perftrack.revision import Repository


@dataclass(frozen=True, slots=True)
class Trees:
    """Head and base, exported and collected."""

    head: Revision
    base: Revision | None
    base_note: str
    archives: dict[Side, TreeArchive]
    collected: dict[Side, Collected]
    problems: tuple[str, ...] = field(default=())

    def cases(self, side: Side) -> list[Case]:
        """What the side declares; nothing for an absent base."""
        return self.collected[side].cases if side in self.collected else []


@contextmanager
def revisions(repository: Repository, head: str | None, base: str, main: str | None) -> Generator["Compared"]:
    """Resolve what is compared; the repository inside can read a dirty tree's objects."""
    if head is None:
        with repository.worktree_revision() as (inside, revision):
            yield _with_base(inside, revision, base, main)
    else:
        yield _with_base(repository, repository.revision(head), base, main)


@contextmanager
def revisions_of(repository: Repository, run: Run) -> Generator["Compared"]:
    """The revisions of a run that is resumed; UsageError where its dirty tree has changed since."""
    if not run.head.dirty:
        yield Compared(repository, repository.revision(run.head.sha), run.base, run.base_note)
        return
    with repository.worktree_revision() as (inside, revision):
        if revision.tree != run.head.tree:
            raise UsageError(
                f"run {run.uid[:8]} measured uncommitted changes that are no longer in the work tree; "
                "its results are kept, but it cannot be finished: submit again"
            )
        yield Compared(inside, revision, run.base, run.base_note)


@dataclass(frozen=True, slots=True)
class Compared:
    """Head, base and how base was found."""

    repository: Repository
    head: Revision
    base: Revision | None
    base_note: str


def _with_base(repository: Repository, head: Revision, base: str, main: str | None) -> Compared:
    if base == "none":
        return Compared(repository, head, None, "not asked for (--base none)")
    if base == "auto":
        return Compared(repository, head, *repository.base_for(head, main))
    given = repository.revision(base)
    return Compared(repository, head, given, f"--base {base}, {repository.distance(given, head)}")


def export(compared: Compared, suite_paths: tuple[str, ...], scratch: Path) -> Trees:
    """Export and collect both sides; UsageError where head declares no suite at all."""
    sides: list[tuple[Side, Revision | None]] = [("head", compared.head), ("base", compared.base)]
    archives: dict[Side, TreeArchive] = {
        side: compared.repository.export(revision, scratch) for side, revision in sides if revision is not None
    }
    return collect(compared.head, compared.base, compared.base_note, archives, suite_paths)


def collect(
    head: Revision,
    base: Revision | None,
    base_note: str,
    archives: dict[Side, TreeArchive],
    suite_paths: tuple[str, ...],
) -> Trees:
    """Unpack and collect exported trees; UsageError where head declares no suite at all."""
    collected: dict[Side, Collected] = {}
    for side, archive in archives.items():
        root = unpack(archive, Path(archive.path).read_bytes(), cache_folder("trees"))
        collected[side] = collect_tree(root, suite_paths)
    if not collected["head"].suites:
        raise UsageError(
            f"no suites found in {head.label} under {', '.join(suite_paths)}: a suite is a .py file with "
            "benchmarks; name the folder in [tool.perftrack] suites, and commit the file"
        )
    labels = {"head": head.label, "base": base.label if base else ""}
    problems = tuple(
        f"{side} {labels[side]}: {text}" for side, found in collected.items() for text in found.problems.values()
    )
    return Trees(head, base, base_note, archives, collected, problems)


def beside(
    trees: Trees, repository: Repository, base: Revision, note: str, suite_paths: tuple[str, ...], scratch: Path
) -> Trees:
    """The same head with another base; the problems of its suites are the head's alone."""
    archive = repository.export(base, scratch)
    root = unpack(archive, Path(archive.path).read_bytes(), cache_folder("trees"))
    return replace(
        trees,
        base=base,
        base_note=note,
        archives={**trees.archives, "base": archive},
        collected={**trees.collected, "base": collect_tree(root, suite_paths)},
        problems=tuple(text for text in trees.problems if text.startswith("head ")),
    )

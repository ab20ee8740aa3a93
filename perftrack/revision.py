"""Git: which revision is meant, which one it is compared with, and the files of both as tar archives.

The only place that runs git. Trees are exported from git's objects, never from the working directory, so
that what runs is what the commit holds: no attribute, filter or ignored file can slip in.
"""

import hashlib
import io
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from perftrack import trailers
from perftrack.errors import InfrastructureError, UsageError
from perftrack.model import BY_MERGE_BASE, BY_PARENT, Revision, TreeArchive

MAX_ARCHIVE_BYTES = 100 * 2**20
"""A tree larger than this is refused: it would be shipped to every worker."""

_HOOK_VARIABLES = frozenset(
    {
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_COMMON_DIR",
        "GIT_INDEX_FILE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_NAMESPACE",
        "GIT_PREFIX",
    }
)

_SYMLINK, _EXECUTABLE, _FILE, _DIRECTORY, _GITLINK = "120000", "100755", "100644", "40000", "160000"


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One commit of a line of history, for those who choose among many."""

    sha: str
    tree: str
    tagged: bool = False
    merge: bool = False


@dataclass(frozen=True, slots=True)
class Repository:
    """A git work tree."""

    root: Path
    environment: Mapping[str, str]

    @classmethod
    def discover(cls, start: Path) -> "Repository":
        """The repository that holds `start`; UsageError where there is none."""
        try:
            top = _run(["git", "-C", str(start), "rev-parse", "--show-toplevel"], {})
        except _GitError as error:
            raise UsageError(_no_repository(start, str(error))) from error
        return cls(root=Path(top.decode().strip()), environment={})

    def git(self, *args: str, stdin: bytes | None = None) -> bytes:
        """Run git in this repository and return what it printed."""
        return _run(["git", "-C", str(self.root), *args], self.environment, stdin)

    def try_git(self, *args: str) -> str | None:
        """Run git; its output, or None where it says no."""
        try:
            return self.git(*args).decode().strip()
        except _GitError:
            return None

    @property
    def name(self) -> str:
        """Last part of the origin's URL, else of the folder."""
        url = self.try_git("config", "--get", "remote.origin.url") or str(self.root)
        return re.sub(r"\.git$", "", re.split(r"[/:]", url.rstrip("/"))[-1]) or "repository"

    @property
    def shallow(self) -> bool:
        """The history is cut (`git clone --depth`)."""
        return self.try_git("rev-parse", "--is-shallow-repository") == "true"

    def commit_id(self, name: str) -> str:
        """40 hex digits of the commit that `name` means; UsageError naming it where there is none."""
        found = self.try_git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        if found is None:
            if self.try_git("rev-parse", "--verify", "--quiet", "HEAD") is None:
                raise UsageError(f"{self.root} has no commit yet; commit something first, then submit it")
            hint = "; the clone is shallow: try `git fetch --unshallow`" if self.shallow else ""
            raise UsageError(f"unknown revision {name!r} in {self.root}: give a branch, tag or commit{hint}")
        return found

    def revision(self, name: str) -> Revision:
        """The committed revision `name`."""
        sha = self.commit_id(name)
        tree, parents, seconds, subject = (
            self.git("show", "--no-patch", "--format=%T%n%P%n%ct%n%s", sha).decode(errors="replace").split("\n", 3)
        )
        return Revision(
            sha=sha,
            tree=tree,
            dirty=False,
            parent=parents.split()[0] if parents else None,
            position=self._position(sha),
            committed_us=int(seconds) * 1_000_000,
            subject=subject.strip(),
            branch=self.try_git("symbolic-ref", "--quiet", "--short", "HEAD") if name == "HEAD" else None,
        )

    def _position(self, sha: str) -> int | None:
        if self.shallow:
            return None
        return int(self.git("rev-list", "--first-parent", "--count", sha)) - 1

    @contextmanager
    def worktree_revision(self) -> Generator[tuple["Repository", Revision]]:
        """What lies in the work tree now: HEAD itself when it is clean, else HEAD plus the dirty tree's hash.

        Yields a repository that can read the dirty tree's objects, which are kept out of the user's own
        object store and index, and the revision.
        """
        head = self.revision("HEAD")
        with tempfile.TemporaryDirectory(prefix="perftrack-git-") as scratch:
            objects = self.git("rev-parse", "--git-path", "objects").decode().strip()
            index = self.git("rev-parse", "--git-path", "index").decode().strip()
            private = Path(scratch, "index")
            if Path(self.root, index).exists():
                shutil.copy2(Path(self.root, index), private)  # with its time: git reads again what is no older
            inside = Repository(
                self.root,
                {
                    "GIT_INDEX_FILE": str(private),
                    "GIT_OBJECT_DIRECTORY": scratch,
                    "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(Path(self.root, objects)),
                },
            )
            inside.git("add", "--all", "--", ":/")
            tree = inside.git("write-tree").decode().strip()
            if tree == head.tree:
                yield self, head
                return
            yield (
                inside,
                Revision(
                    sha=head.sha,
                    tree=tree,
                    dirty=True,
                    parent=head.sha,
                    position=None if head.position is None else head.position + 1,
                    committed_us=head.committed_us,
                    subject="uncommitted changes",
                    branch=head.branch,
                ),
            )

    def base_for(self, head: Revision, main_branch: str | None = None) -> tuple[Revision | None, str]:
        """The revision that `head` is compared with by default, and how it was found.

        The merge-base with the main branch; where head is on the main branch, its first parent; for a dirty
        tree its commit. None for a first commit. UsageError saying what to type where a shallow clone hides it.
        """
        if head.dirty:
            return self.revision(head.sha), "the commit under the uncommitted changes"
        main = self.main_branch(main_branch)
        fork = self.try_git("merge-base", head.sha, main) if main else None
        if fork and fork != head.sha:
            base = self.revision(fork)
            return base, f"{BY_MERGE_BASE} {main}, {self.distance(base, head)}"
        if head.parent is None:
            if self.shallow:
                raise UsageError(_shallow(head))
            return None, "first commit: there is nothing to compare with"
        if self.try_git("cat-file", "-e", f"{head.parent}^{{commit}}") is None:
            raise UsageError(_shallow(head))
        return self.revision(head.parent), BY_PARENT

    def distance(self, base: Revision, head: Revision) -> str:
        """How far base lies from head, in words: `3 commits back`, and how many commits of its own head has not."""
        behind, own = (
            int(self.git("rev-list", "--count", f"{left.sha}..{right.sha}"))
            for left, right in ((base, head), (head, base))
        )
        if not behind and not own:
            return "the commit under the uncommitted changes" if head.dirty else "the same commit"
        said = f"{'at least ' if self.shallow else ''}{_commits(behind)} back"
        return f"{said}, with {_commits(own)} that head has not" if own else said

    def commits(self, head: Revision, without: Revision | None = None) -> frozenset[str]:
        """Ids of the commits that `head` has, itself included, and `without` has not."""
        return frozenset(self.git("rev-list", head.sha, *([f"^{without.sha}"] if without else [])).decode().split())

    def line(self, head: Revision) -> frozenset[str]:
        """Ids of the commits in the first-parent line of `head`, itself included."""
        return frozenset(self.git("rev-list", "--first-parent", head.sha).decode().split())

    def between(self, good: str, bad: str) -> list[str]:
        """Ids of the commits from `good` (included) to `bad` in first-parent order, oldest first.

        UsageError where `bad` has not `good` behind it, or both are the same commit.
        """
        first, last = self.commit_id(good), self.commit_id(bad)
        if first == last:
            raise UsageError(f"{good}..{bad}: both are {first[:7]}; give two commits with others between them")
        if self.try_git("merge-base", "--is-ancestor", first, last) is None:
            hint = "; the clone is shallow: try `git fetch --unshallow`" if self.shallow else ""
            raise UsageError(f"{good}..{bad}: {bad} does not have {good} behind it; give an earlier commit first{hint}")
        inside = self.git("rev-list", "--first-parent", "--reverse", f"{first}..{last}").decode().split()
        return [first, *inside]

    def first_parents(self, head: str, since: str | None = None) -> list[Commit]:
        """First-parent commits up to `head`, oldest first, without those that `since` has; a shallow clone's end early.

        UsageError where one of them is unknown.
        """
        span = [self.commit_id(head), *([f"^{self.commit_id(since)}"] if since else [])]
        tags = self.git("for-each-ref", "--format=%(objectname) %(*objectname)", "refs/tags").decode().split()
        rows = self.git("log", "--first-parent", "--reverse", "--format=%H %T %P", *span).decode().splitlines()
        return [
            Commit(sha=sha, tree=tree, tagged=sha in tags, merge=len(parents) > 1)
            for sha, tree, *parents in map(str.split, rows)
        ]

    def descends(self, sha: str, ancestor: str) -> bool:
        """Whether the commit `sha` is here and has the commit `ancestor` behind it, or is that one."""
        return self.try_git("merge-base", "--is-ancestor", ancestor, sha) is not None

    def accepted(self, head: Revision, base: Revision | None = None) -> list[trailers.Accepted]:
        """What the commits that `head` has and `base` has not accept by a trailer `Perftrack-Accept`, the newest first.

        Of `head` alone where there is no base; nothing of uncommitted changes. UsageError where a trailer of `head` has
        no reason.
        """
        if head.dirty:
            return []
        span = ["--no-walk", head.sha] if base is None else [head.sha, f"^{base.sha}"]
        log = self.git("log", "-z", "--no-show-signature", f"--format={trailers.LOG_FORMAT}", *span)
        return trailers.read(log.decode(errors="replace"), head.sha)

    @property
    def user(self) -> str:
        """Who works here, by git's configuration; empty where it does not say."""
        return self.try_git("config", "--get", "user.name") or ""

    def main_branch(self, configured: str | None) -> str | None:
        """The name of the main branch, by default that of the origin; UsageError where what is configured is none."""
        if configured:
            self.commit_id(configured)
            return configured
        default = self.try_git("symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD")
        names = [default, "origin/main", "origin/master", "main", "master"]
        return next((name for name in names if name and self.try_git("rev-parse", "--verify", "--quiet", name)), None)

    def export(self, revision: Revision, folder: Path) -> TreeArchive:
        """Write the files of `revision` as a tar file into `folder`, sorted and without times: same tree, same bytes.

        UsageError where it is larger than MAX_ARCHIVE_BYTES.
        """
        entries = [_entry(line) for line in self.git("ls-tree", "-r", "-z", revision.tree).split(b"\0") if line]
        blobs = [entry for entry in entries if entry.mode != _GITLINK]
        contents = self.git("cat-file", "--batch", stdin=b"".join(b"%s\n" % blob.sha.encode() for blob in blobs))
        if len(contents) > MAX_ARCHIVE_BYTES:
            raise UsageError(
                f"the tree of {revision.label} has {len(contents) / 2**20:.0f} MiB, more than the "
                f"{MAX_ARCHIVE_BYTES / 2**20:.0f} MiB that are shipped to workers; keep data out of the repository"
            )
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for blob, data in zip(blobs, _batch(contents), strict=True):
                tar.addfile(*_member(blob, data))
        data = buffer.getvalue()
        name = hashlib.sha256(data).hexdigest()
        path = folder / f"{name}.tar"
        path.write_bytes(data)
        gitlinks = {entry.path: entry.sha for entry in entries if entry.mode == _GITLINK}
        return TreeArchive(path=str(path), sha256=name, tree=revision.tree, gitlinks=gitlinks)


@dataclass(frozen=True, slots=True)
class _Entry:
    mode: str
    sha: str
    path: str


def _entry(line: bytes) -> _Entry:
    head, _, path = line.partition(b"\t")
    mode, _kind, sha = head.decode().split()
    return _Entry(mode, sha, os.fsdecode(path))


def _batch(contents: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(contents):
        end = contents.index(b"\n", at)
        size = int(contents[at:end].rsplit(b" ", 1)[1])
        yield contents[end + 1 : end + 1 + size]
        at = end + size + 2


def _member(entry: _Entry, data: bytes) -> tuple[tarfile.TarInfo, io.BytesIO | None]:
    member = tarfile.TarInfo(entry.path)
    if entry.mode == _SYMLINK:
        member.type, member.linkname = tarfile.SYMTYPE, os.fsdecode(data)
        return member, None
    member.mode = 0o755 if entry.mode == _EXECUTABLE else 0o644
    member.size = len(data)
    return member, io.BytesIO(data)


def tree_id(root: Path, gitlinks: Mapping[str, str]) -> str:
    r"""The git tree id of the files below `root`, computed without git.

    `gitlinks` maps a submodule's path to its commit. Empty folders do not exist for git. The format is git's
    own: sha1 of `tree <size>\0` and the entries `<mode> <name>\0<20 bytes>`, sorted with folders as `name/`.
    """
    links = {path.split("/", 1)[0]: path for path in gitlinks}
    rows: list[tuple[bytes, bytes]] = []
    names = {path.name for path in root.iterdir()} if root.is_dir() else set[str]()
    for name in names | set(links):
        path = root / name
        if name in gitlinks:
            mode, sha = _GITLINK, gitlinks[name]
        elif path.is_symlink():
            mode, sha = _SYMLINK, _object_id(b"blob", os.fsencode(path.readlink()))
        elif path.is_dir() or not path.exists():
            inside = {p.split("/", 1)[1]: c for p, c in gitlinks.items() if p.startswith(f"{name}/")}
            mode, sha = _DIRECTORY, tree_id(path, inside)
            if sha == _object_id(b"tree", b""):
                continue
        else:
            executable = path.stat().st_mode & 0o100
            mode, sha = (_EXECUTABLE if executable else _FILE), _object_id(b"blob", path.read_bytes())
        raw = os.fsencode(name)
        rows.append((raw + b"/" * (mode == _DIRECTORY), b"%s %s\0%s" % (mode.encode(), raw, bytes.fromhex(sha))))
    return _object_id(b"tree", b"".join(row for _, row in sorted(rows)))


def _object_id(kind: bytes, data: bytes) -> str:
    return hashlib.sha1(b"%s %d\0%s" % (kind, len(data), data), usedforsecurity=False).hexdigest()


class _GitError(InfrastructureError):
    """Git said no; its own last line."""


def _run(command: list[str], environment: Mapping[str, str], stdin: bytes | None = None) -> bytes:
    # a hook's GIT_DIR and friends would point every command at another repository
    clean = {key: value for key, value in os.environ.items() if key not in _HOOK_VARIABLES}
    try:
        done = subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            check=False,
            env={**clean, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", **environment},
        )
    except FileNotFoundError as error:
        raise InfrastructureError("git is not installed or not on the PATH; perftrack needs it") from error
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {done.returncode}"]
        raise _GitError(f"git {command[3]} failed: {lines[-1]}")
    return done.stdout


def _no_repository(start: Path, said: str) -> str:
    if "dubious ownership" in said:
        return f"git does not trust {start} (it belongs to another user): `git config --global --add safe.directory …`"
    return f"{start} is not in a git repository: run perftrack inside one (`git init` makes one)"


def _commits(count: int) -> str:
    return f"{count} commit{'' if count == 1 else 's'}"


def _shallow(head: Revision) -> str:
    return (
        f"the parent of {head.label} is not here because the clone is shallow: "
        "type `git fetch --deepen 50` (in CI: fetch-depth: 0), or submit with --base none"
    )

"""Every file of a tree that a suite could read, as one digest: equal digests, and nothing it uses has changed.

A suite may open a file as well as import it: a text of CUDA C++, a table of sizes, weights. So whatever is in the tree
counts, but for what is there for people, for git and for tests.
"""

import functools
import hashlib
import os
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path

DOCUMENTATION = frozenset({"doc", "docs"})
"""Folders at the top of a tree, of which no file counts."""

TESTS = frozenset({"test", "tests"})
"""Folders at the top of a tree, of which no Python file counts; their data may be a benchmark's as well."""

TEXTS = frozenset({".md", ".rst"})
"""Suffixes of texts that do not count, wherever they are."""

_OF_GIT = ".git"
"""How names at the top of a tree begin that tell git and its hosts what to do: .gitignore, .github, .gitlab-ci.yml."""


def source_digest(root: Path, loaded: AbstractSet[str]) -> str:
    """SHA-256 of the names and contents of all files below `root` but for those that differ without harm.

    `loaded`: the entries at the top from which modules were loaded; of those every file counts.
    """
    whole = hashlib.sha256()
    for entry in sorted(root.iterdir()):
        if found := _entry_digest(entry, whole=entry.name in loaded):
            whole.update(f"{entry.name}\0{found}\n".encode(errors="surrogateescape"))
    return whole.hexdigest()


@functools.cache
def _entry_digest(entry: Path, *, whole: bool) -> str:
    """Of one entry at the top; empty where nothing of it counts."""
    said = hashlib.sha256()
    count = 0
    for path in _files(entry):
        if whole or not _is_harmless(path.relative_to(entry.parent)):
            name = path.relative_to(entry.parent).as_posix()
            said.update(f"{name}\0{_content(path)}\n".encode(errors="surrogateescape"))
            count += 1
    return said.hexdigest() if count else ""


def _files(entry: Path) -> Iterator[Path]:
    """Files and links, in order; what Python has compiled is made of them."""
    if entry.is_symlink() or not entry.is_dir():
        yield entry
        return
    for folder, folders, names in os.walk(entry):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        links = [name for name in folders if Path(folder, name).is_symlink()]
        yield from (Path(folder, name) for name in sorted((*names, *links)))


def _is_harmless(path: Path) -> bool:
    top = path.parts[0]
    return (
        path.suffix in TEXTS
        or top.startswith(_OF_GIT)
        or (len(path.parts) > 1 and (top in DOCUMENTATION or (top in TESTS and path.suffix == ".py")))
    )


def _content(path: Path) -> str:
    """Digest of a file; of a link also where it leads, which may be a folder."""
    target = f"{path.readlink()}\0" if path.is_symlink() else ""
    data = path.read_bytes() if path.is_file() else b""
    return hashlib.sha256(target.encode(errors="surrogateescape") + data).hexdigest()

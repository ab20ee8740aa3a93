"""The files of revisions on a worker: unpacked once a node and user, checked each time they are used.

A folder is named by the SHA-256 of its archive and appears by rename, so that any number of workers may
unpack the same archive at once.
"""

import contextlib
import hashlib
import io
import os
import shutil
import stat
import tarfile
import tempfile
import time
from pathlib import Path

import platformdirs

from perftrack.errors import PoolError
from perftrack.model import TreeArchive
from perftrack.revision import tree_id

MAX_CACHE_BYTES = 2 * 2**30
"""Above this the folders that were not used for the longest time are removed."""

KEEP_S = 86400.0
"""A folder that was used within this time is never removed: a run may still need it."""


def cache_folder(name: str) -> Path:
    """`name` inside the per-user cache, made if need be."""
    path = Path(platformdirs.user_cache_dir("perftrack")) / name
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise PoolError(f"cannot make the cache folder {path}: {error.strerror}; set XDG_CACHE_HOME") from error
    return path


def unpack(archive: TreeArchive, data: bytes, folder: Path) -> Path:
    """Root of the tree of `archive`, whose tar file is `data`; PoolError where it is not what it says it is."""
    if hashlib.sha256(data).hexdigest() != archive.sha256:
        raise PoolError(f"the archive of tree {archive.tree[:12]} was damaged on its way: its SHA-256 differs")
    root = folder / archive.sha256
    if root.is_dir():
        if tree_id(root, archive.gitlinks) == archive.tree:
            os.utime(root)
            return root
        remove(root)
    evict(folder)
    scratch = Path(tempfile.mkdtemp(prefix=".new-", dir=folder))
    try:
        _extract(archive, data, scratch)
        with contextlib.suppress(FileExistsError):
            _rename_new(scratch, root)
    finally:
        remove(scratch)
    return root


def _extract(archive: TreeArchive, data: bytes, root: Path) -> None:
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as tar:
            tar.extractall(root, filter="data")
    except tarfile.FilterError as error:
        raise PoolError(f"tree {archive.tree[:12]} is refused: {error}") from error
    except (tarfile.TarError, OSError) as error:
        raise PoolError(f"tree {archive.tree[:12]} cannot be unpacked into {root.parent}: {error}") from error
    found = tree_id(root, archive.gitlinks)
    if found != archive.tree:
        raise PoolError(f"the archive of tree {archive.tree[:12]} holds other files: their tree id is {found[:12]}")
    _set_writable(root, writable=False)


def _rename_new(scratch: Path, root: Path) -> None:
    """Rename, or FileExistsError where another worker was first (its files have the same checked content)."""
    try:
        scratch.rename(root)
    except OSError as error:
        if root.is_dir():
            raise FileExistsError(root) from error
        raise PoolError(f"cannot move a tree to {root}: {error.strerror}") from error


def evict(folder: Path, limit_bytes: int = MAX_CACHE_BYTES) -> None:
    """Remove the folders in `folder` that were unused longest, until `limit_bytes` are kept."""
    kept = 0
    entries = sorted(folder.iterdir(), key=_used_at, reverse=True)
    for entry in entries:
        kept += _size(entry)
        if kept > limit_bytes and time.time() - _used_at(entry) > KEEP_S:
            remove(entry)


def remove(root: Path) -> None:
    """Delete a tree, also a read-only one; nothing happens where there is none."""
    if root.exists():
        _set_writable(root, writable=True)
        shutil.rmtree(root, ignore_errors=True)


def _used_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:  # another worker removed it
        return 0.0


def _size(root: Path) -> int:
    total = 0
    for folder, _, names in os.walk(root):
        for name in names:
            with contextlib.suppress(OSError):
                total += Path(folder, name).lstat().st_size
    return total


def _set_writable(root: Path, *, writable: bool) -> None:
    """Owner's write permission of everything below and including `root`; links are left alone."""
    for folder, _, names in os.walk(root):
        for path in (Path(folder), *(Path(folder, name) for name in names)):
            if path.is_symlink():
                continue
            with contextlib.suppress(FileNotFoundError):  # another worker removes the same tree
                mode = stat.S_IMODE(path.stat().st_mode)
                path.chmod(mode | stat.S_IWUSR if writable else mode & ~0o222)

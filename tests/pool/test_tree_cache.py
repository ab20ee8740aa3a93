"""Trees on a worker are what the commit holds, or they are refused."""

import hashlib
import io
import os
import stat
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from perftrack.errors import PoolError
from perftrack.model import TreeArchive
from perftrack.pool.tree_cache import KEEP_S, evict, remove, unpack
from perftrack.revision import Repository

pytestmark = pytest.mark.fault


@pytest.fixture
def exported(repo, tmp_path):
    repo.write({"kernels/a.py": "A = 1\n", "run.sh": "#!/bin/sh\n"})
    (repo.root / "run.sh").chmod(0o755)
    (repo.root / "link").symlink_to("kernels/a.py")
    repo.commit("one")
    out = tmp_path / "out"
    out.mkdir()
    repository = Repository.discover(repo.root)
    archive = repository.export(repository.revision("HEAD"), out)
    return archive, Path(archive.path).read_bytes()


@pytest.fixture
def cache(tmp_path):
    folder = tmp_path / "cache"
    folder.mkdir()
    return folder


def tar(*members):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as out:
        for member in members:
            out.addfile(member)
    data = buffer.getvalue()
    return TreeArchive(path="", sha256=hashlib.sha256(data).hexdigest(), tree="0" * 40), data


def test_a_tree_is_unpacked_checked_and_read_only(exported, cache):
    root = unpack(*exported, cache)
    assert (root / "kernels/a.py").read_text() == "A = 1\n"
    assert (root / "link").readlink() == Path("kernels/a.py")
    assert (root / "run.sh").stat().st_mode & stat.S_IXUSR
    assert not any(path.lstat().st_mode & 0o222 for path in root.rglob("*") if not path.is_symlink())
    assert [path.name for path in cache.iterdir()] == [exported[0].sha256]


def test_a_second_unpack_uses_the_first(exported, cache):
    root = unpack(*exported, cache)
    inode = (root / "run.sh").stat().st_ino
    assert unpack(*exported, cache) == root
    assert (root / "run.sh").stat().st_ino == inode


def test_a_changed_copy_is_replaced(exported, cache):
    root = unpack(*exported, cache)
    victim = root / "kernels/a.py"
    victim.chmod(0o644)
    victim.write_text("A = 2\n")
    assert (unpack(*exported, cache) / "kernels/a.py").read_text() == "A = 1\n"


def test_a_damaged_archive_is_refused(exported, cache):
    archive, data = exported
    with pytest.raises(PoolError, match="SHA-256 differs"):
        unpack(archive, data[:-1] + b"x", cache)
    assert list(cache.iterdir()) == []


def test_other_files_than_the_tree_id_says_are_refused(exported, cache):
    archive, data = exported
    with pytest.raises(PoolError, match="holds other files"):
        unpack(msgspec.structs.replace(archive, tree="1" * 40), data, cache)
    assert list(cache.iterdir()) == []


def test_links_devices_and_paths_that_lead_outside_are_refused(cache):
    link = tarfile.TarInfo("link")
    link.type, link.linkname = tarfile.SYMTYPE, "../../etc/passwd"
    absolute = tarfile.TarInfo("absolute")
    absolute.type, absolute.linkname = tarfile.SYMTYPE, "/etc/passwd"
    device = tarfile.TarInfo("device")
    device.type = tarfile.CHRTYPE
    for member in (link, absolute, device, tarfile.TarInfo("../outside")):
        with pytest.raises(PoolError, match="is refused"):
            unpack(*tar(member), cache)
    assert list(cache.iterdir()) == []
    assert not (cache.parent / "outside").exists()


def test_what_is_no_tar_file_is_refused(cache):
    data = b"not a tar file at all"
    archive = TreeArchive(path="", sha256=hashlib.sha256(data).hexdigest(), tree="0" * 40)
    with pytest.raises(PoolError, match="cannot be unpacked"):
        unpack(archive, data, cache)


def test_many_may_unpack_the_same_tree_at_once(exported, cache):
    with ThreadPoolExecutor(8) as pool:
        roots = list(pool.map(lambda _: unpack(*exported, cache), range(16)))
    assert set(roots) == {cache / exported[0].sha256}
    assert len(list(cache.iterdir())) == 1


def test_many_may_remove_the_same_tree_at_once(cache):
    for number in range(5):
        root = cache / f"old-{number}"
        for name in range(300):
            (root / f"{name % 10}").mkdir(parents=True, exist_ok=True)
            (root / f"{name % 10}" / f"{name}").touch(mode=0o444)
        with ThreadPoolExecutor(8) as pool:
            for done in [pool.submit(remove, root) for _ in range(8)]:
                done.result()
        assert not root.exists()


def test_only_old_folders_are_evicted_and_only_above_the_limit(exported, cache):
    old = unpack(*exported, cache)
    new = cache / "new"
    new.mkdir()
    (new / "data").write_bytes(b"x" * 1000)
    long_ago = old.stat().st_mtime - 2 * KEEP_S
    os.utime(old, (long_ago, long_ago))
    evict(cache, limit_bytes=10_000)
    assert old.exists()
    evict(cache, limit_bytes=500)
    assert not old.exists()
    assert new.exists()

import os
import tarfile
from pathlib import Path

import pytest

from perftrack.errors import UsageError
from perftrack.revision import Repository, tree_id
from perftrack.trailers import Accepted


def test_a_commit_is_described(repo):
    first = repo.commit("one", {"a.py": "1"})
    second = repo.commit("two: tidy", {"a.py": "2"})
    found = Repository.discover(repo.root).revision("HEAD")
    assert (found.sha, found.parent, found.position, found.subject) == (second, first, 1, "two: tidy")
    assert found.branch == "main"
    assert found.tree == repo.git("rev-parse", "HEAD^{tree}")
    assert not found.dirty


def test_which_commits_a_revision_has_and_what_it_accepts(repo):
    first = repo.commit("one", {"a.py": "1"})
    second = repo.commit("two", {"a.py": "2"})
    repo.git("checkout", "-q", "-b", "side", first)
    trailers = "Perftrack-Accept: softmax* exact\n  sums\nReviewed-by: Bob\nperftrack-accept: add[n=1]  small"
    side = repo.commit(f"three\n\nPerftrack-Accept: not a trailer here\n\n{trailers}", {"b.py": "3"})
    repo.git("merge", "-q", "--no-ff", "-m", "merge", "main")
    found = Repository.discover(repo.root)
    merge, main, topic = (found.revision(name) for name in ("HEAD", "main", side))
    assert found.commits(merge) == {first, second, side, merge.sha}
    assert found.commits(merge, without=main) == {side, merge.sha}
    assert [found.descends(merge.sha, one.sha) for one in (main, topic)] == [True, True]
    assert not found.descends(second, side)
    assert not found.descends("f" * 40, side)
    accepted = [Accepted("softmax*", "exact sums", "Ada", side), Accepted("add[n=1]", "small", "Ada", side)]
    assert found.accepted(topic) == accepted
    assert found.accepted(merge) == []
    assert found.accepted(merge, main) == accepted, "the merge of a pull request, as a code host makes it"
    assert found.accepted(merge, topic) == []
    repo.write({"a.py": "dirty"})
    with found.worktree_revision() as (inside, dirty):
        assert (dirty.dirty, inside.accepted(dirty)) == (True, [])


def test_unknown_revision_is_named(repo):
    repo.commit("one", {"a.py": "1"})
    with pytest.raises(UsageError, match=r"unknown revision 'nope'.*branch, tag or commit"):
        Repository.discover(repo.root).revision("nope")


def test_an_option_is_not_a_revision(repo):
    repo.commit("one", {"a.py": "1"})
    with pytest.raises(UsageError, match="unknown revision '--all'"):
        Repository.discover(repo.root).revision("--all")


def test_outside_a_repository(tmp_path):
    with pytest.raises(UsageError, match="not in a git repository"):
        Repository.discover(tmp_path)


def test_a_repository_without_commits(repo):
    with pytest.raises(UsageError, match="has no commit yet"):
        Repository.discover(repo.root).revision("HEAD")


def test_clean_work_tree_is_the_commit(repo):
    sha = repo.commit("one", {"a.py": "1", ".gitignore": "out/\n"})
    repo.write({"out/big.bin": "ignored"})
    with Repository.discover(repo.root).worktree_revision() as (_, revision):
        assert (revision.sha, revision.dirty) == (sha, False)


def test_dirty_work_tree_is_its_own_tree_and_leaves_git_alone(repo, tmp_path):
    sha = repo.commit("one", {"a.py": "1", "b.py": "b"})
    repo.write({"a.py": "changed", "new.py": "untracked counts"})
    (repo.root / "b.py").unlink()
    before = {path: path.stat().st_mtime_ns for path in (repo.root / ".git").rglob("*") if path.is_file()}
    with Repository.discover(repo.root).worktree_revision() as (inside, revision):
        archive = inside.export(revision, tmp_path)
    after = {path: path.stat().st_mtime_ns for path in (repo.root / ".git").rglob("*") if path.is_file()}
    assert after == before
    assert (revision.sha, revision.parent, revision.dirty, revision.position) == (sha, sha, True, 1)
    with tarfile.open(archive.path) as tar:
        assert sorted(tar.getnames()) == ["a.py", "new.py"]
    repo.git("add", "-A")
    assert revision.tree == repo.git("write-tree")


def test_base_is_the_parent_on_the_main_branch(repo):
    first = repo.commit("one", {"a.py": "1"})
    repo.commit("two", {"a.py": "2"})
    git = Repository.discover(repo.root)
    base, note = git.base_for(git.revision("HEAD"))
    assert base is not None
    assert (base.sha, note) == (first, "parent, 1 commit back")


def test_base_is_the_merge_base_on_a_branch(repo):
    fork = repo.commit("one", {"a.py": "1"})
    repo.git("checkout", "-q", "-b", "topic")
    repo.commit("t1", {"a.py": "t1"})
    repo.commit("t2", {"a.py": "t2"})
    repo.git("checkout", "-q", "main")
    repo.commit("two", {"b.py": "2"})
    git = Repository.discover(repo.root)
    base, note = git.base_for(git.revision("topic"))
    assert base is not None
    assert (base.sha, note) == (fork, "merge-base with main, 2 commits back")


def test_the_distance_of_a_given_base_is_said_in_commits(repo):
    fork = repo.commit("one", {"a.py": "1"})
    repo.git("checkout", "-q", "-b", "topic")
    topic = repo.commit("t1", {"a.py": "t1"})
    repo.git("checkout", "-q", "main")
    repo.commit("two", {"b.py": "2"})
    main = repo.commit("three", {"b.py": "3"})
    git = Repository.discover(repo.root)

    def said(base, head):
        return git.distance(git.revision(base), git.revision(head))

    assert said(fork, main) == "2 commits back"
    assert said(topic, main) == "2 commits back, with 1 commit that head has not"
    assert said(main, main) == "the same commit"
    repo.write({"b.py": "4"})
    with git.worktree_revision() as (_, dirty):
        assert git.distance(git.revision(main), dirty) == "the commit under the uncommitted changes"


def test_base_of_a_merge_commit_is_its_first_parent(repo):
    repo.commit("one", {"a.py": "1"})
    repo.git("checkout", "-q", "-b", "topic")
    repo.commit("t1", {"t.py": "t1"})
    repo.git("checkout", "-q", "main")
    main = repo.commit("two", {"b.py": "2"})
    repo.git("merge", "-q", "--no-ff", "-m", "merge", "topic")
    git = Repository.discover(repo.root)
    base, _ = git.base_for(git.revision("HEAD"))
    assert base is not None
    assert base.sha == main


def test_detached_head_works(repo):
    first = repo.commit("one", {"a.py": "1"})
    second = repo.commit("two", {"a.py": "2"})
    repo.git("checkout", "-q", "--detach", second)
    git = Repository.discover(repo.root)
    head = git.revision("HEAD")
    base, _ = git.base_for(head)
    assert base is not None
    assert (head.branch, base.sha) == (None, first)


def test_first_commit_has_no_base(repo):
    repo.commit("one", {"a.py": "1"})
    git = Repository.discover(repo.root)
    assert git.base_for(git.revision("HEAD")) == (None, "first commit: there is nothing to compare with")


def test_dirty_tree_is_compared_with_its_commit(repo):
    sha = repo.commit("one", {"a.py": "1"})
    repo.write({"a.py": "2"})
    git = Repository.discover(repo.root)
    with git.worktree_revision() as (inside, revision):
        base, _ = inside.base_for(revision)
    assert base is not None
    assert base.sha == sha


def test_shallow_clone_says_what_to_type(repo, tmp_path):
    repo.commit("one", {"a.py": "1"})
    repo.commit("two", {"a.py": "2"})
    repo.git("clone", "-q", "--depth", "1", f"file://{repo.root}", str(tmp_path / "shallow"))
    git = Repository.discover(tmp_path / "shallow")
    head = git.revision("HEAD")
    assert head.position is None
    with pytest.raises(UsageError, match="git fetch --deepen"):
        git.base_for(head)


def test_hook_environment_does_not_redirect_git(repo, make_repo, monkeypatch):
    other = make_repo("other")
    other.commit("theirs", {"x.py": "x"})
    sha = repo.commit("ours", {"a.py": "1"})
    monkeypatch.setenv("GIT_DIR", str(other.root / ".git"))
    assert Repository.discover(repo.root).revision("HEAD").sha == sha


def test_archive_is_the_tree_bit_for_bit(repo, tmp_path):
    repo.write(
        {"pkg/a.py": "a\r\n", ".gitattributes": "*.py export-ignore\n*.txt export-subst\n", "v.txt": "$Format:%H$"}
    )
    (repo.root / "link").symlink_to("pkg/a.py")
    script = repo.root / "run.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    repo.commit("one")
    git = Repository.discover(repo.root)
    head = git.revision("HEAD")
    archive = git.export(head, tmp_path)
    again = git.export(head, tmp_path)
    assert archive == again
    out = tmp_path / "out"
    with tarfile.open(archive.path) as tar:
        tar.extractall(out, filter="data")
    assert tree_id(out, {}) == head.tree
    assert (out / "pkg" / "a.py").read_bytes() == b"a\r\n"
    assert (out / "v.txt").read_text() == "$Format:%H$"
    assert (out / "link").readlink() == Path("pkg/a.py")
    assert os.access(out / "run.sh", os.X_OK)
    (out / "pkg" / "a.py").write_text("tampered")
    assert tree_id(out, {}) != head.tree


def test_submodules_count_in_the_tree_id(repo, make_repo, tmp_path):
    library = make_repo("library")
    library.commit("lib", {"lib.py": "x"})
    repo.commit("one", {"a.py": "1"})
    repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.root), "deps/library")
    repo.commit("with submodule")
    git = Repository.discover(repo.root)
    head = git.revision("HEAD")
    archive = git.export(head, tmp_path)
    assert list(archive.gitlinks) == ["deps/library"]
    out = tmp_path / "out"
    with tarfile.open(archive.path) as tar:
        tar.extractall(out, filter="data")
    assert tree_id(out, archive.gitlinks) == head.tree


def test_too_large_a_tree_is_refused(repo, tmp_path, monkeypatch):
    repo.commit("one", {"a.py": "1" * 4000})
    monkeypatch.setattr("perftrack.revision.MAX_ARCHIVE_BYTES", 1000)
    git = Repository.discover(repo.root)
    with pytest.raises(UsageError, match="keep data out of the repository"):
        git.export(git.revision("HEAD"), tmp_path)

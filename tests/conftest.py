"""Fixtures that every area uses: throw-away git repositories."""

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest


class GitRepo:
    """A real repository with a fixed identity; `commit` writes files and returns the commit's id."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *args: str) -> str:
        identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false"]
        done = subprocess.run(
            ["git", "-C", str(self.root), *identity, *args], check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def write(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def commit(self, message: str, files: Mapping[str, str] | None = None) -> str:
        self.write(files or {})
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def make_repo(tmp_path: Path) -> Callable[[str], GitRepo]:
    return lambda name: GitRepo(tmp_path / name)


@pytest.fixture
def repo(make_repo: Callable[[str], GitRepo]) -> GitRepo:
    return make_repo("repo")

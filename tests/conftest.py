"""Fixtures that every area uses: throw-away git repositories, and a Ray cluster."""

import os
import secrets
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from ports import free_port
from ray_processes import START, started

TOGETHER = ("cli", "pool", "store")
"""Folders whose tests share what takes long to make: a Ray cluster, a server. Elsewhere, those of a file do at most."""


def pytest_configure() -> None:
    """A shell that begins something in the background lets it ignore Ctrl-C, and all that it starts."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What shares something stays together when `make test` divides the tests among processes.

    A file that shares nothing with the others of its folder says so itself.
    """
    for item in items:
        if item.get_closest_marker("xdist_group"):
            continue
        path = item.path.relative_to(Path(__file__).parent)
        group = path.parts[0] if path.parts[0] in TOGETHER else str(path)
        item.add_marker(pytest.mark.xdist_group(group))


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


@pytest.fixture(scope="session")
def repo_in() -> Callable[[Path], GitRepo]:
    """For repositories that several tests share."""
    return GitRepo


@pytest.fixture
def make_repo(tmp_path: Path) -> Callable[[str], GitRepo]:
    return lambda name: GitRepo(tmp_path / name)


@pytest.fixture
def repo(make_repo: Callable[[str], GitRepo]) -> GitRepo:
    return make_repo("repo")


@dataclass(frozen=True)
class Cluster:
    """A Ray cluster that this machine is in."""

    address: str
    environment: Mapping[str, str]
    """What a process needs to join it."""


@pytest.fixture(scope="session")
def cache_home(tmp_path_factory: pytest.TempPathFactory) -> str:
    """For XDG_CACHE_HOME: trees and kernels of the tests do not go to the user's cache."""
    return str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def head_of() -> Callable[..., AbstractContextManager[None]]:
    """`ray_head`, for tests that need a head with other options."""
    return ray_head


@pytest.fixture(scope="session")
def cluster(cache_home: str) -> Iterator[Cluster]:
    """A cluster that is there already: an embedded Ray costs every pool the start of ten processes.

    One node with all CPUs and three GPUs that only Ray believes in. The fake child of tests/pool says of GPU-2
    that somebody else uses it.
    """
    port = free_port()
    door = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    others = {key: value for key, value in os.environ.items() if not key.startswith("RAY_")}
    settings = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0", "NVIDIA_FAKE_BUSY": "2"}
    size = (f"--num-cpus={len(os.sched_getaffinity(0))}", "--num-gpus=3", "--include-dashboard=false")
    with ray_head(port, others | settings | door | {"XDG_CACHE_HOME": cache_home}, *size):
        address = f"127.0.0.1:{port}"
        yield Cluster(address, door | {"RAY_ADDRESS": address, "XDG_CACHE_HOME": cache_home})


@contextmanager
def ray_head(port: int, environment: Mapping[str, str], *options: str) -> Iterator[None]:
    """A head of a cluster of its own, with everything that it has started."""
    with TemporaryDirectory(prefix="ptc-", ignore_cleanup_errors=True) as folder:  # sockets need a short path
        command = [
            *(*START, "--head", f"--port={port}", f"--object-store-memory={512 << 20}", f"--temp-dir={folder}"),
            *options,
        ]
        with started(command, environment) as head:
            yield
            head.terminate()
            with suppress(subprocess.TimeoutExpired):
                head.wait(30)
            with suppress(ProcessLookupError):
                os.killpg(head.pid, signal.SIGKILL)

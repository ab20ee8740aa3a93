"""Jobs for the fake child, and a look at what a pool leaves behind."""

from pathlib import Path

import pytest

from perftrack.model import Case, Job, Traffic

FAKE_CHILD = Path(__file__).with_name("fake_child.py")


@pytest.fixture(scope="session")
def fake_child():
    return ("-P", "-s", str(FAKE_CHILD))


@pytest.fixture(scope="session")
def make_job():
    """A job whose benchmark names what the fake kernel does."""

    def make(benchmark, *, suite="suite", backend="cpu", device_class="", round_=1, attempt=1, **params):
        axes = ",".join(f"{key}={value}" for key, value in sorted(params.items()))
        case = Case(
            suite=suite,
            benchmark=benchmark,
            key=f"{benchmark}[{axes}]",
            backend=backend,
            params=params,
            variants=("unfused", "fused"),
            traffic=Traffic(read_bytes=1, write_bytes=1),
            min_effect=0.02,
        )
        device_class = device_class or ("cpu-fake-2c" if backend == "cpu" else "FakeGPU-1G")
        return Job(case=case, device_class=device_class, round=round_, attempt=attempt)

    return make


@pytest.fixture(autouse=True, scope="session")
def _cache(cache_home):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", cache_home)
        yield


@pytest.fixture
def joined(cluster, monkeypatch):
    """Address of the tests' cluster; this process may join it."""
    for name, value in cluster.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("RAY_ADDRESS")
    return cluster.address

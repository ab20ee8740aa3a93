"""pytest plug-in: `pytest suites/` runs every case and variant that can run here as a pytest-benchmark item.

Files below the folders that `[tool.perftrack] suites` names are collected as suites; anything else is left alone.
An item times `launch()` and the wait for its end on the device; `extra_info` has what only perftrack knows:
speedup over the baseline variant (interleaved, device time), achieved bandwidth and utilization.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from perftrack.errors import PerftrackError

if TYPE_CHECKING:
    from perftrack.declare import Benchmark
    from perftrack.measure.session import Session
    from perftrack.model import Case

_SETTINGS = pytest.StashKey[Any]()
"""The Settings of the root folder, or None."""
_SESSION = pytest.StashKey["Session"]()


def pytest_configure(config: pytest.Config) -> None:
    """Read `[tool.perftrack]` of the root folder, once."""
    from perftrack.config import resolve, table_of

    try:
        tracked = table_of(config.rootpath / "pyproject.toml") is not None
        config.stash[_SETTINGS] = resolve(config.rootpath) if tracked else None
    except PerftrackError as error:
        raise pytest.UsageError(str(error)) from error


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> "SuiteFile | None":
    """A suite file becomes a collector of its own."""
    settings = parent.config.stash[_SETTINGS]
    if settings is None or file_path.suffix != ".py" or file_path.name.startswith("_"):
        return None
    roots = [parent.config.rootpath / name for name in settings.suites]
    if not any(file_path == root or root in file_path.parents for root in roots):
        return None
    return SuiteFile.from_parent(parent, path=file_path)


class SuiteFile(pytest.Module):
    """One suite: an item for each case × variant of this machine's backend."""

    def collect(self) -> Iterator[pytest.Item]:
        """Import the suite and expand it; a bad declaration is a collection error in one sentence."""
        session = _session(self.config)
        try:
            cases = session.cases(self.obj, self.path.stem)
        except PerftrackError as error:
            raise self.CollectError(str(error)) from error
        for benchmark, case in cases:
            for variant in case.variants:
                yield pytest.Function.from_parent(
                    self, name=f"{case.key}::{variant}", callobj=_item(session, benchmark, case, variant)
                )


def _session(config: pytest.Config) -> "Session":
    from perftrack.measure.session import Session

    if _SESSION not in config.stash:
        config.stash[_SESSION] = Session()
    return config.stash[_SESSION]


def _item(session: "Session", declared: "Benchmark", case: "Case", variant: str) -> Any:
    def run(benchmark: Any) -> None:
        from perftrack.model import Status

        prepared = session.prepare(declared, case, variant)
        if prepared.status is Status.SKIPPED:
            pytest.skip(prepared.message)
        if prepared.status is not Status.OK:
            pytest.fail(f"{prepared.status}: {prepared.message}", pytrace=False)
        seconds, baseline = prepared.pair_s()
        bandwidth = case.traffic.min_bytes / seconds
        benchmark.extra_info.update(
            case=case.key,
            variant=variant,
            device_class=session.report.device.device_class,
            speedup=baseline / seconds,
            gb_per_s=bandwidth / 1e9,
            utilization=bandwidth / prepared.ceiling_bytes_per_s,
        )
        benchmark(prepared.run)

    return run

"""pytest plug-in: `pytest suites/` runs every case and variant that can run here as a pytest-benchmark item.

Files below the folders that `[tool.perftrack] suites` names are collected as suites; anything else is left alone.
An item times `launch()` and the wait for its end on the device; `extra_info` has what only perftrack knows:
speedup over the baseline variant (interleaved, device time), achieved bandwidth and utilization.

`pytest --perftrack[=URL]` stores the results of pytest-benchmark, of any project, as series by the host's clock.
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
_RECORDED = pytest.StashKey[tuple[str, ...]]()
"""Lines for the end of the session."""

NOT_STORED = 3
"""Exit status of a session that measured and could not store."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """One option."""
    parser.getgroup("perftrack").addoption(
        "--perftrack",
        nargs="?",
        const="",
        metavar="URL",
        help="Store pytest-benchmark's results in perftrack's database: --perftrack=URL, else as `perftrack` finds it.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Read `[tool.perftrack]` of the root folder, once."""
    from perftrack.config import resolve, table_of

    try:
        tracked = table_of(config.rootpath / "pyproject.toml") is not None
        config.stash[_SETTINGS] = resolve(config.rootpath) if tracked else None
    except PerftrackError as error:
        raise pytest.UsageError(str(error)) from error
    _check_recording(config)


def _check_recording(config: pytest.Config) -> None:
    """Nothing is measured for a database that cannot be written."""
    url = config.getoption("perftrack")
    if url is None or hasattr(config, "workerinput"):
        return
    place = url.partition("::")[0]
    if url and (place.endswith(".py") or (config.invocation_params.dir / place).is_dir()):
        raise pytest.UsageError(
            f"--perftrack {url} names tests, not a database: write --perftrack=URL, or give it last"
        )
    from perftrack.pipeline.recording import database
    from perftrack.store import Store

    try:
        Store.open(database(config.rootpath, url)).close()
    except PerftrackError as error:
        raise pytest.UsageError(f"--perftrack: {error}") from error


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Store what pytest-benchmark measured; where that fails the session fails too, for CI would not notice else."""
    config = session.config
    url = config.getoption("perftrack")
    if url is None or hasattr(config, "workerinput"):  # a worker of xdist, where benchmarks are off
        return
    from perftrack.pipeline.recording import record

    document = _benchmark_json(config)
    if document is None:
        config.stash[_RECORDED] = ("no benchmark ran: nothing stored",)
        return
    try:
        recorded = record(document, config.rootpath, url)
        config.stash[_RECORDED], stored = recorded.lines, not recorded.refused
    except PerftrackError as error:
        config.stash[_RECORDED], stored = (f"NOT STORED: {error}",), False
    if not stored:
        session.exitstatus = session.exitstatus or NOT_STORED


def _benchmark_json(config: pytest.Config) -> dict[str, Any] | None:
    """What `--benchmark-json` would write, made by the same hooks; None where no benchmark ran."""
    session: Any = getattr(config, "_benchmarksession", None)
    if session is None or not any(not one.has_error for one in session.benchmarks):
        return None
    hook: Any = config.hook
    commit_info = hook.pytest_benchmark_generate_commit_info(config=config)
    hook.pytest_benchmark_update_commit_info(config=config, commit_info=commit_info)
    document: dict[str, Any] = hook.pytest_benchmark_generate_json(
        config=config,
        benchmarks=session.benchmarks,
        include_data=True,
        machine_info=session.get_machine_info(),
        commit_info=commit_info,
    )
    hook.pytest_benchmark_update_json(config=config, benchmarks=session.benchmarks, output_json=document)
    return document


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say what was stored."""
    lines = config.stash.get(_RECORDED, ())
    if lines:
        terminalreporter.section("perftrack")
        for line in lines:
            terminalreporter.write_line(line)


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

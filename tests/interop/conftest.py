"""Files of other tools, imported into an SQLite store of their own."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from perftrack.pipeline.imports import FileReport, Request, import_files
from perftrack.store import Store

REAL_FILES = Path(__file__).parents[2].parent / "shared" / "data" / "results"
"""As other projects publish them; not part of this repository."""


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "perf.db"
    Store.open(str(path)).close()
    return path


@pytest.fixture
def store(template: Path, tmp_path: Path) -> Iterator[Store]:
    path = tmp_path / "perf.db"
    path.write_bytes(template.read_bytes())
    with Store.open(str(path)) as opened:
        yield opened


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write a file: bytes and text as they are, anything else as JSON."""

    def made(content: Any, name: str = "results.json") -> Path:
        path = tmp_path / "files" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not isinstance(content, bytes):
            content = (content if isinstance(content, str) else json.dumps(content)).encode()
        path.write_bytes(content)
        return path

    return made


@pytest.fixture
def load(store: Store, write: Callable[..., Path], tmp_path: Path) -> Callable[..., FileReport]:
    """Import one file (a path, or its content) from outside any repository."""

    def made(content: Any, name: str = "results.json", **asked: Any) -> FileReport:
        path = content if isinstance(content, Path) else write(content, name)
        return import_files(Request(start=tmp_path, files=(path,), **asked), store).files[0]

    return made


@pytest.fixture
def stored(store: Store) -> Callable[[], dict[tuple[str, str, str], Any]]:
    """Every stored summary, by suite, case and variant."""

    def made() -> dict[tuple[str, str, str], Any]:
        found = [one for entry in store.runs() for one in store.load_run(entry.run.uid).summaries]
        return {(one.suite, one.case_key, one.variant): one for one in found}

    return made


@pytest.fixture
def times(stored: Callable[[], dict[tuple[str, str, str], Any]]) -> Callable[[], dict[str, float | None]]:
    """Stored times by case, of files with one variant."""
    return lambda: {case: one.time_s for (_, case, _), one in stored().items()}


@pytest.fixture
def real() -> Callable[[str], list[Path]]:
    """Real files of a tool, sorted; the test is skipped where they are not here."""

    def made(pattern: str) -> list[Path]:
        found = sorted(REAL_FILES.glob(pattern))
        if not found:
            pytest.skip(f"no {pattern} here")
        return found

    return made

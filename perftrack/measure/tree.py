"""Tracked code loaded from a tree of files, so that two trees live side by side in one process.

Head and base have modules of the same names. Each suite of each tree gets a `Workspace` with modules of its
own; while it is active, `sys.path`, `sys.modules` and a finder make them the ones that an import finds.
"""

import functools
import importlib
import sys
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import perftrack
from perftrack.declare import Benchmark, collect_suite
from perftrack.errors import SuiteError
from perftrack.measure.failure import describe
from perftrack.measure.sources import source_digest

_HARNESS = "perftrack"


def isolate_harness() -> None:
    """Keep an editable install's own repository, where perftrack was imported from, from being importable.

    Its `kernels` and `suites` must never stand in for modules that a tree lacks. For a child process only.
    """
    home = Path(perftrack.__file__).resolve().parent.parent
    if home.name not in {"site-packages", "dist-packages"}:
        sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != home]


def find_suites(root: Path, suite_paths: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Suite name → dotted module, and suite name → problem, of the suites below `suite_paths`.

    A path is a folder, whose `*.py` files are suites unless they start with `_`, or one file; relative to `root`.
    """
    modules: dict[str, str] = {}
    problems: dict[str, str] = {}
    for path in suite_paths:
        place = root / path
        files = sorted(place.glob("*.py")) if place.is_dir() else [place] if place.suffix == ".py" else []
        for file in files:
            name, module = file.stem, ".".join(file.relative_to(root).with_suffix("").parts)
            if name.startswith("_") or not file.is_file() or modules.get(name) == module:
                continue
            if name in modules:
                problems[name] = (
                    f"suite {name}: {modules[name]} and {module} have the same name; rename one of the files"
                )
            modules[name] = module
    for name in problems:
        del modules[name]
    return modules, problems


class Workspace:
    """The modules that one suite of one tree loads, kept apart from those of every other workspace."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._names = _importable(self.root)
        self._own: dict[str, ModuleType] = {}
        self._hidden: dict[str, ModuleType] = {}

    def load(self, suite: str, module: str) -> list[Benchmark]:
        """Import the suite and return its benchmarks; SuiteError, in a sentence, where that fails."""
        with self.active():
            try:
                return collect_suite(importlib.import_module(module), suite)
            except SuiteError:
                raise
            except (Exception, SystemExit) as error:  # a suite's own code may raise anything
                raise SuiteError(f"suite {suite} cannot be imported: {describe(error)}") from error

    @contextmanager
    def active(self) -> Generator[None]:
        """While inside, imports find this workspace's modules; the one active before comes back after."""
        before = _Current.workspace
        _switch(self)
        try:
            yield
        finally:
            _switch(before)

    def activate(self) -> None:
        """Stay active until another workspace is activated."""
        _switch(self)

    def source_digest(self) -> str:
        """Of every file of the tree that the suite could read: see `sources.source_digest`."""
        with self.active():
            loaded = {top for module in list(sys.modules.values()) if (top := self._entry(module))}
        return source_digest(self.root, loaded)

    def find(self, name: str, path: Sequence[str] | None) -> ModuleSpec | None:
        """The module `name` of this tree; `path` is its package's, None for a top-level module."""
        if name.partition(".")[0] not in self._names:
            return None
        spec = PathFinder.find_spec(name, [str(self.root)] if path is None else path)
        if spec is None:
            return None
        if type(spec.loader) is SourceFileLoader:
            spec.loader = _TreeLoader(spec.loader.name, spec.loader.path)
        elif spec.loader is None and spec.submodule_search_locations is not None:
            # a folder without __init__.py: a plain list, which a change of sys.path does not recompute
            spec.submodule_search_locations = list(spec.submodule_search_locations)
        return spec

    def install(self) -> None:
        """Put this workspace's modules where imports look; what they cover is hidden."""
        self._hidden = self._take()
        sys.modules.update(self._own)
        sys.path.insert(0, str(self.root))

    def park(self) -> None:
        """Undo `install`, keeping the modules."""
        self._own = self._take()
        sys.modules.update(self._hidden)
        if str(self.root) in sys.path:
            sys.path.remove(str(self.root))

    def _take(self) -> dict[str, ModuleType]:
        names = self._names
        found = [name for name in sys.modules if name.partition(".")[0] in names]
        return {name: sys.modules.pop(name) for name in found}

    def _entry(self, module: ModuleType | None) -> str:
        file = getattr(module, "__file__", None)
        if not isinstance(file, str) or not file.startswith(f"{self.root}/"):
            return ""
        return Path(file).relative_to(self.root).parts[0]


class _Current:
    """Which workspace is active in this process."""

    workspace: Workspace | None = None


class _TreeLoader(SourceFileLoader):
    """Writes no bytecode: trees are read-only, and their files are checked against their git id."""

    def set_data(self, path: str, data: Any, *, _mode: int = 0o666) -> None:
        """Nothing is written."""


class _Finder(MetaPathFinder):
    """Finds the active workspace's modules before anything else can."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Only what the active tree has; the rest is left to the other finders."""
        del target
        workspace = _Current.workspace
        return workspace.find(fullname, path) if workspace is not None else None


_finder = _Finder()


def _switch(to: Workspace | None) -> None:
    if to is _Current.workspace:
        return
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    if _Current.workspace is not None:
        _Current.workspace.park()
    if to is not None:
        to.install()
    _Current.workspace = to


@functools.cache
def _importable(root: Path) -> frozenset[str]:
    """Top-level names that the tree may provide: its Python files and its folders that hold some."""
    names: set[str] = set()
    for entry in root.iterdir():
        if entry.suffix == ".py" or (entry.is_dir() and next(entry.rglob("*.py"), None)):
            names.add(entry.stem if entry.suffix == ".py" else entry.name)
    return frozenset(names - set(sys.stdlib_module_names) - {_HARNESS})

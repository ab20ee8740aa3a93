"""`perftrack publish`: the pages as files that open without a server."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from perftrack.declare import NEVER_GATED
from perftrack.errors import IncompleteError, UsageError
from perftrack.store import Store, read
from perftrack.store.overview import SeriesName
from perftrack.web import cases, fusion, newest, paging, progress, roofline, site
from perftrack.web.links import KINDS, FileLinks, Target, file_of, target
from perftrack.web.page import Query, as_csv, as_json

_LIST = ".perftrack-site.json"
"""The files that the last publication wrote: what the next one may remove."""


def publish(store: Store, folder: Path, *, runs: int, say: Callable[[str], None]) -> int:
    """Write the site of the newest `runs` into `folder`; the number of its pages.

    The folder must be empty, new, or one that was published into; other files in it stay. UsageError otherwise.
    """
    before = _published_before(folder)
    wanted = list(dict.fromkeys(_targets(store, runs)))
    known = frozenset(wanted)
    written: list[str] = []
    left_out: list[Target] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for one in wanted:
            try:
                written += _write_page(store, folder, one, known)
            except (UsageError, IncompleteError) as error:
                # links to it stand in other pages: a file that says why must be there
                left_out.append(one)
                written.append(
                    _write(
                        folder, file_of(one, "html"), _sorry(one, str(error).replace(store.label, "the store"), known)
                    )
                )
        written.append(_write(folder, "site.css", site.style()))
        for path in before - set(written):
            (folder / path).unlink(missing_ok=True)
        _write(folder, _LIST, json.dumps(sorted(written), indent=0))
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {error.strerror}") from error
    if left_out:
        say(f"{len(left_out)} pages only say why they cannot be shown")
    return len(wanted)


def _published_before(folder: Path) -> set[str]:
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; name a folder")
    if not folder.exists() or not any(folder.iterdir()):
        return set()
    try:
        listed = json.loads((folder / _LIST).read_text("utf-8"))
    except FileNotFoundError:
        raise UsageError(f"{folder} has files of something else in it; name a new folder or an empty one") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{folder / _LIST} cannot be read ({error}); remove the folder, or name another") from error
    inside = folder.resolve()
    names = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
    return {name for name in names if (inside / name).resolve().is_relative_to(inside)}


def _targets(store: Store, runs: int) -> Iterator[Target]:
    """Every page that the site has; those of one question each first."""
    for name in site.MENU:
        if name != "compare":
            yield target(name, {})
    names = [one for one in store.series_names() if one.variant != one.baseline and one.variant not in NEVER_GATED]
    yield from _pages("cases", {}, len(names), cases.ON_A_PAGE)
    yield from _pages("runs", {}, store.read(read.run_count), progress.ON_A_PAGE)
    for state in site.REGRESSION_STATES[1:]:
        yield target("regressions", {"state": state})
    for one in store.regressions():
        yield target("regressions", {"id": str(one.id)})
    yield from _cases(names)
    for name in newest.classes(names):
        yield from _of_class(store, name)
    for entry in store.runs(last=runs):
        run = entry.run
        yield target("run", {"id": run.uid})
        yield target("commit", {"sha": run.head.label})
        if run.base:
            yield target("compare", {"base": run.base.label, "head": run.head.label})


def _cases(names: Sequence[SeriesName]) -> Iterator[Target]:
    """Of every case the page of all device classes, and one of each."""
    on: dict[tuple[str, str], dict[str, None]] = {}
    for one in names:
        on.setdefault((one.suite, one.case), {})[one.device_class] = None
    for (suite, case), classes in on.items():
        yield target("case", {"suite": suite, "case": case})
        yield from _pages("case", {"suite": suite, "case": case}, len(classes), cases.CLASSES_ON_A_PAGE)
        for device_class in classes:
            yield target("case", {"suite": suite, "case": case, "device": device_class})


def _pages(name: str, values: dict[str, str], total: int, size: int) -> Iterator[Target]:
    """The parts of a list after the first."""
    for number in range(2, paging.count(total, size) + 1):
        yield target(name, {**values, "page": str(number)})


def _of_class(store: Store, name: str) -> Iterator[Target]:
    """Roofline and fusion of one device class; none where the newest runs have not used it."""
    try:
        found = newest.newest(store, Query({"device": name}))
    except UsageError:
        return
    candidates = [one for one in found.values if newest.role(one) == "candidate"]
    benchmarks = dict.fromkeys((one.summary.suite, one.benchmark) for one in candidates)
    lines = {(one.summary.suite, one.benchmark, one.summary.variant) for one in candidates}
    for page, total, size in (
        ("roofline", len(found.values), roofline.ON_A_PAGE),
        ("fusion", len(lines), fusion.ON_A_PAGE),
    ):
        yield target(page, {"device": name})
        yield from _pages(page, {"device": name}, total, size)
    for suite, benchmark in benchmarks:
        yield target("fusion", {"device": name, "suite": suite, "benchmark": benchmark})


def _write_page(store: Store, folder: Path, one: Target, known: frozenset[Target]) -> list[str]:
    name, keys = one
    page = site.PAGES[name](store, Query(dict(keys)))
    shown = {
        "html": site.html(page, name, FileLinks(one, known)),
        "json": as_json(page),
        "csv": as_csv(page),
    }
    return [_write(folder, file_of(one, kind), shown[kind]) for kind in KINDS]


def _sorry(one: Target, sentence: str, known: frozenset[Target]) -> str:
    return site.message("Not here", sentence, FileLinks(one, known))


def _write(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="")
    return name

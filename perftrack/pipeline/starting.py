"""`perftrack init`: the configuration and a first suite, in somebody's repository."""

import re
import tomllib
from importlib import resources
from pathlib import Path, PurePosixPath

from perftrack import config
from perftrack.errors import UsageError
from perftrack.revision import Repository

SUITE = "perftrack_example.py"
"""Name of the suite that is written."""

_PACKAGE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def begin(start: Path, folder: str) -> list[Path]:
    """Write `[tool.perftrack]` and a suite into the repository around `start`; the files that were written.

    `folder` is relative to the repository's root. Nothing is overwritten, and nothing is written at all where something
    stands against it: UsageError then.
    """
    root = Repository.discover(start).root
    document = root / "pyproject.toml"
    path = _package(folder)
    whole = _configured(document, path.as_posix())
    place = _place(root, path)
    text = (resources.files("perftrack.pipeline") / "starter" / "example.py.txt").read_text("utf-8")
    try:
        place.mkdir(parents=True, exist_ok=True)
        with (place / SUITE).open("x", encoding="utf-8") as file:
            file.write(text)
        document.write_bytes(whole)
    except OSError as error:
        raise UsageError(
            f"{error.filename}: {error.strerror}; make the repository writable, or name another"
        ) from error
    return [document, place / SUITE]


def _package(folder: str) -> PurePosixPath:
    path = PurePosixPath(folder)
    if not path.parts or not all(map(_PACKAGE.fullmatch, path.parts)) or path.parts[0] == "perftrack":
        raise UsageError(
            f"{folder!r} cannot be a folder of suites, which are imported by its name from the repository's root; "
            "give a relative one of letters, digits, _ and -, such as `suites`"
        )
    return path


def _place(root: Path, path: PurePosixPath) -> Path:
    """The folder for suites; every Python file in it becomes one, so there must be none yet."""
    place = root / path
    if not place.resolve().is_relative_to(root.resolve()):
        raise UsageError(f"{place} leads out of the repository {root}; name another folder: perftrack init FOLDER")
    if place.exists() and not place.is_dir():
        raise UsageError(f"{place} is a file; name another folder: perftrack init FOLDER")
    found = sorted(file.name for file in place.glob("*.py") if not file.name.startswith("_"))
    if found:
        raise UsageError(
            f"{place} has {found[0]} already, and every Python file in it would be taken for a suite; "
            "name another folder: perftrack init FOLDER"
        )
    return place


def _configured(document: Path, folder: str) -> bytes:
    """The pyproject.toml with the section at its end, and with the line ends it had."""
    if config.table_of(document) is not None:
        raise UsageError(f"{document} has a [tool.perftrack] section already; nothing was written")
    before = document.read_bytes() if document.exists() else b""
    end = b"\r\n" if b"\r\n" in before else b"\n"
    lines = [b"[tool.perftrack]", f'suites = ["{folder}"]'.encode()]
    gap = b"" if not before else end if before.endswith(b"\n") else end * 2
    whole = before + gap + end.join(lines) + end
    try:
        read = tomllib.loads(whole.decode())["tool"]["perftrack"]["suites"]
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, TypeError, KeyError):
        read = None
    if read != [folder]:
        raise UsageError(
            f'{document} cannot get a section at its end; add suites = ["{folder}"] to its tool.perftrack by hand'
        )
    return whole

"""What is shipped to a cluster from outside: the run that is to be carried out, and the trees it needs."""

import platform
import shutil
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import msgspec

from perftrack import __version__
from perftrack.errors import UsageError
from perftrack.judge.value import Finding
from perftrack.model import Run, Side, TreeArchive
from perftrack.pipeline.execution import Execution

NAME = "parcel.json"
ENTRYPOINT = '"${PERFTRACK_PYTHON:-python}" -P -s -m perftrack.pipeline.inside'
"""In the folder of the parcel, by a shell of the head: the Python that its environment names, else on its PATH."""

ENDED = "perftrack-ended "
"""Begins the last line that the job prints; a document of `Ended` follows."""


class Versions(msgspec.Struct, frozen=True, kw_only=True):
    """Of what must, or should, be the same on both sides."""

    perftrack: str = __version__
    ray: str = msgspec.field(default_factory=lambda: version("ray"))
    python: str = msgspec.field(default_factory=platform.python_version)

    def difference(self, other: "Versions") -> str:
        """What differs here from there, in words; empty where nothing does."""
        pairs = [(name, getattr(self, name), getattr(other, name)) for name in self.__struct_fields__]
        return ", ".join(f"{name} {mine} here and {its} at the head" for name, mine, its in pairs if mine != its)


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How the job ended: exit code as of a command, and why."""

    code: int
    text: str = ""
    stopped: bool = False
    """On purpose: what was measured is kept, and the run goes on with the next command."""


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a parcel; its archives' paths are relative to the parcel."""

    run: Run
    archives: dict[Side, TreeArchive]
    line: list[str] | None = None
    """First-parent line of the head, where its history is asked: the cluster has no repository."""
    suspected: list[Finding] = []
    alpha: float
    spread: bool


class _Label(msgspec.Struct, frozen=True, kw_only=True):
    versions: Versions


class Parcel(msgspec.Struct, frozen=True, kw_only=True):
    """Runs to be carried out one after the other, and for how long at most."""

    versions: Versions
    items: tuple[Item, ...]
    seconds: float | None = None


def pack(folder: Path, executions: Sequence[Execution], seconds: float | None) -> None:
    """Write the parcel into a folder, each tree once."""
    made: list[Item] = []
    for one in executions:
        archives: dict[Side, TreeArchive] = {}
        for side, archive in one.trees.archives.items():
            name = f"{archive.sha256}.tar"
            if not (folder / name).exists():
                shutil.copyfile(archive.path, folder / name)
            archives[side] = msgspec.structs.replace(archive, path=name)
        made.append(
            Item(
                run=one.run,
                archives=archives,
                line=sorted(one.history.line(one.run.head)) if one.history else None,
                suspected=one.suspected,
                alpha=one.alpha,
                spread=one.spread,
            )
        )
    parcel = Parcel(versions=Versions(), items=tuple(made), seconds=seconds)
    (folder / NAME).write_bytes(msgspec.json.encode(parcel))


def unpack(folder: Path) -> Parcel:
    """Read it again; UsageError where another perftrack packed it, whose fields need not be those of this one."""
    data = (folder / NAME).read_bytes()
    theirs, mine = msgspec.json.decode(data, type=_Label).versions.perftrack, Versions().perftrack
    if theirs != mine:
        raise UsageError(
            f"perftrack is {theirs} where the run was submitted and {mine} at the head: "
            "install the same version on both"
        )
    try:
        return msgspec.json.decode(data, type=Parcel)
    except msgspec.ValidationError as error:
        raise UsageError(
            f"perftrack {mine} where the run was submitted is not the one at the head ({error}): "
            "install it from the same source on both"
        ) from error

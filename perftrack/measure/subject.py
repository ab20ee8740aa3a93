"""One side of a job: its benchmark as declared there, and the workspace its code lives in."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from perftrack.declare import Benchmark
from perftrack.measure.tree import Workspace
from perftrack.model import Side


@dataclass(frozen=True, slots=True)
class Subject:
    """A benchmark of one side; without a workspace its code is importable as it is."""

    side: Side
    benchmark: Benchmark
    workspace: Workspace | None = None

    def active(self) -> AbstractContextManager[Any]:
        """Inside, imports find this side's modules."""
        return nullcontext() if self.workspace is None else self.workspace.active()

    def ready(self) -> None:
        """From now on, imports find this side's modules."""
        if self.workspace is not None:
            self.workspace.activate()

    def digest(self) -> str:
        """Hash of every file of the tree that the suite could read; empty when it is not from a tree."""
        return "" if self.workspace is None else self.workspace.source_digest()

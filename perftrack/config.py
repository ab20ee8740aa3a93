"""Settings: flag > environment > file > default, resolved once into a frozen value."""

import math
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from perftrack.errors import UsageError

_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")


def seconds(text: str) -> float:
    """`3h`, `90m`, `1h30m` or `45s`; ValueError naming what is none of them."""
    found = _DURATION.fullmatch(text.strip())
    if not found or not any(found.groups()):
        raise ValueError(f"{text!r} is no time: write it like 3h, 90m or 1h30m")
    hours, minutes, rest = (int(part or 0) for part in found.groups())
    return 3600.0 * hours + 60.0 * minutes + rest


class Sweep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """`[tool.perftrack.sweeps.NAME]`: what `perftrack sweep NAME` measures of which commits."""

    suites: tuple[str, ...] = ()
    """Names; empty: all."""
    expression: str = ""
    """As for `-k`."""
    axes: dict[str, tuple[bool | int | float | str, ...]] = {}
    """Axis → the values to measure; benchmarks without that axis are measured anyway."""
    devices: tuple[str, ...] = ("",)
    """Device classes (globs) or `cpu`; each commit has a run on each."""
    head: str = "HEAD"
    """The branch or commit whose first-parent history is swept."""
    since: str = "last-sweep"
    """`last-sweep`, or the revision after which the range begins."""
    steps: int | None = None
    """So many commits at most; None: every one."""
    fill_gaps: bool = False
    budget: str = ""
    """How long it may take, e.g. `3h`; empty: as long as it takes."""
    rounds: int | None = None
    quick: bool = False

    def __post_init__(self) -> None:
        if self.budget:
            seconds(self.budget)
        if self.steps is not None and self.steps < 1:
            raise ValueError(f"`steps` is {self.steps}; it must be at least 1")
        if not self.devices:
            raise ValueError("`devices` is empty; leave it out for every GPU there is, else the CPU")
        if empty := [axis for axis, values in self.axes.items() if not values]:
            raise ValueError(f"`axes` has no values for {empty[0]!r}; leave the axis out for all of them")


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """`[tool.perftrack]` of the tracked repository's pyproject.toml."""

    suites: tuple[str, ...] = ("suites",)
    """Folders or files with suites, relative to the repository's root."""
    db: str | None = None
    """Database URL; `PERFTRACK_DB` and `--db` go before it."""
    main_branch: str | None = None
    """Where `--base auto` looks for the merge-base; found by itself when absent."""
    rounds: int = 3
    confirm_rounds: int = 5
    confirm_minutes: float = 30.0
    """Time of the second look: the most urgent suspects whose fresh rounds fit into it are measured again."""
    case_timeout: float = 120.0
    """Seconds one case may take in one round."""
    sweeps: dict[str, Sweep] = {}

    def __post_init__(self) -> None:
        for name, low in (("rounds", 1), ("confirm_rounds", 2), ("confirm_minutes", 0), ("case_timeout", 1)):
            value = getattr(self, name)
            if not low <= value < math.inf:  # TOML has nan and inf
                must = f"at least {low}" if value < low else "a number that is finite"
                raise ValueError(f"`{name.replace('_', '-')}` is {value}; it must be {must}")
        if not self.suites:
            raise ValueError("`suites` is empty; name at least one folder or file")


def resolve(root: Path) -> Settings:
    """Read the settings of the repository at `root`; UsageError naming file, key and value where one is wrong."""
    path = root / "pyproject.toml"
    table = table_of(path)
    if table is None:
        raise UsageError(
            f"{path} has no [tool.perftrack] section: `perftrack init` writes one, and a suite that runs at once"
        )
    try:
        return msgspec.convert(table, Settings)
    except msgspec.ValidationError as error:
        raise UsageError(f"{path}, [tool.perftrack]: {error}") from error


def table_of(path: Path) -> Mapping[str, Any] | None:
    """The `[tool.perftrack]` table of a pyproject.toml; None where there is none."""
    try:
        with path.open("rb") as file:
            document = tomllib.load(file)
    except FileNotFoundError:
        return None
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    tools = document.get("tool", {})
    return tools.get("perftrack") if isinstance(tools, dict) else None


def database_url(flag: str | None, settings: Settings | None = None) -> str | None:
    """The database to use: `--db`, else PERFTRACK_DB, else the file's `db`; None means the default place."""
    return flag or os.environ.get("PERFTRACK_DB") or (settings.db if settings else None)


def settings_near(start: Path) -> Settings | None:
    """The settings of the nearest folder at or above `start` that has any; None outside a tracked repository."""
    for folder in (start, *start.parents):
        if table_of(folder / "pyproject.toml") is not None:
            return resolve(folder)
    return None

"""The OpenMetrics 1.0 text format: families of gauges and one info, lines out. What the numbers mean is not known here.

Source: https://prometheus.io/docs/specs/om/open_metrics_spec/ (label values escape backslash, quote and line feed;
a family's lines stand together; `# EOF` ends the text).
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


@dataclass(frozen=True, slots=True)
class Sample:
    """One number with its labels; a `timestamp_s` (Unix) only where it is not now."""

    labels: Mapping[str, str]
    value: float
    timestamp_s: float | None = None


@dataclass(frozen=True, slots=True)
class Family:
    """Samples of one meaning. The `unit` is the last part of `name`, as the format wants it; empty: a bare number."""

    name: str
    help: str
    samples: tuple[Sample, ...]
    unit: str = ""
    kind: Literal["gauge", "info"] = "gauge"

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or (self.unit and not self.name.endswith(f"_{self.unit}")):
            raise ValueError(f"a metric cannot be called {self.name!r} with the unit {self.unit!r}")


def render(families: Iterable[Family]) -> str:
    """The exposition, with its last line `# EOF`; families without samples and numbers that are none are left out."""
    return "".join(f"{line}\n" for family in families for line in _lines(family)) + "# EOF\n"


def _lines(family: Family) -> Iterator[str]:
    samples = [one for one in family.samples if not math.isnan(one.value)]
    if not samples:
        return
    yield f"# TYPE {family.name} {family.kind}"
    if family.unit:
        yield f"# UNIT {family.name} {family.unit}"
    yield f"# HELP {family.name} {_escape(family.help)}"
    name = f"{family.name}_info" if family.kind == "info" else family.name
    for sample in samples:
        pairs = ",".join(f'{label}="{_escape(value)}"' for label, value in sample.labels.items())
        labels = f"{{{pairs}}}" if pairs else ""
        timestamp = "" if sample.timestamp_s is None else f" {sample.timestamp_s:.6f}"
        yield f"{name}{labels} {_number(sample.value)}{timestamp}"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(float(value))

"""Stored results in the formats of neighbours, as text. Only results that have a time can be told in them.

Numbers are scaled in decimal, so that what is read back is the same double.
"""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, Literal, get_args

import msgspec

from perftrack.errors import IncompleteError, UsageError
from perftrack.judge.value import Summary
from perftrack.model import Revision, Status
from perftrack.openmetrics import Family, Sample, render

ExportName = Literal["bencher", "github-action-benchmark", "openmetrics"]
EXPORTS: tuple[ExportName, ...] = get_args(ExportName)

_NANO = 9
_ENCODER = msgspec.json.Encoder(decimal_format="number")


def export(name: ExportName, repo: str, revision: Revision, summaries: Iterable[Summary]) -> str:
    """The text of the head's results that have a time; IncompleteError where there is none.

    Bencher and github-action-benchmark have no place for a device: UsageError where there are several classes.
    """
    timed = [one for one in summaries if one.side == "head" and one.status is Status.OK and one.time_s is not None]
    if not timed:
        raise IncompleteError("there is no result with a time to export")
    timed.sort(key=lambda one: (one.suite, one.case_key, one.variant, one.device_class))
    if name == "openmetrics":
        return _openmetrics(repo, revision, timed)
    classes = sorted({one.device_class for one in timed})
    if len(classes) > 1:
        raise UsageError(f"{name} has no place for devices, and there are {', '.join(classes)}: name one with -d")
    made = _bencher(timed) if name == "bencher" else _github_action(revision, timed)
    return msgspec.json.format(_ENCODER.encode(made), indent=2).decode() + "\n"


def label(one: Summary) -> str:
    """The name that an exported result has: suite, case and variant."""
    return f"{one.suite}: {one.case_key} {one.variant}"


def _nanoseconds(seconds: float) -> Decimal:
    return Decimal(repr(seconds)).scaleb(_NANO)


def _bencher(found: Sequence[Summary]) -> dict[str, Any]:
    return {
        label(one): {
            "latency": {
                "value": _nanoseconds(one.time_s or 0.0),
                **({"lower_value": _nanoseconds(one.q10_s)} if one.q10_s else {}),
                **({"upper_value": _nanoseconds(one.q90_s)} if one.q90_s else {}),
            }
        }
        for one in found
    }


def _github_action(revision: Revision, found: Sequence[Summary]) -> list[dict[str, Any]]:
    return [
        {
            "name": label(one),
            "unit": "ns",
            "value": _nanoseconds(one.time_s or 0.0),
            **({"range": f"{one.q10_s * 1e9:.6g} … {one.q90_s * 1e9:.6g}"} if one.q10_s and one.q90_s else {}),
            "extra": f"revision: {revision.label}\ndevice: {one.device_class}\nsamples: {one.samples}",
        }
        for one in found
    ]


def _openmetrics(repo: str, revision: Revision, found: Sequence[Summary]) -> str:
    """OpenMetrics 1.0 text: a gauge a result, identity in the labels."""
    times = tuple(Sample(_labels(repo, revision, one), one.time_s) for one in found if one.time_s is not None)
    speedups = tuple(
        Sample(_labels(repo, revision, one), one.speedup.point) for one in found if one.speedup is not None
    )
    return render(
        (
            Family("perftrack_time_seconds", "Median seconds a call.", times, "seconds"),
            Family("perftrack_speedup_ratio", "Time of the baseline ÷ the variant's own.", speedups, "ratio"),
        )
    )


def _labels(repo: str, revision: Revision, one: Summary) -> dict[str, str]:
    return {
        "repo": repo,
        "revision": revision.sha + ("+dirty" if revision.dirty else ""),
        "suite": one.suite,
        "case": one.case_key,
        "variant": one.variant,
        "device_class": one.device_class,
    }

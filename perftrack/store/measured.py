"""Measurements of many attempts as rows, made column by column: a third of the time of one row after the other.

The rows are those of `rows.measurement_row` and `rows.sample_row`.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from perftrack.model import JobResult, Measurement, Resources
from perftrack.store import pack, rows

Attempts = Sequence[tuple[int, JobResult]]
"""Each after the number of its row."""

_ELSEWHERE = frozenset({"samples_s", "blocks", "resources"})
_FIELDS = tuple(name for name in Measurement.__struct_fields__ if name not in _ELSEWHERE)

MEASUREMENT = ("job_attempt_id", "ordinal", "resources_id", *_FIELDS)
SAMPLE = ("job_attempt_id", "side", "variant", "encoding", "samples_s", "blocks")
"""Columns of the rows below, in their order."""


def measurement_rows(attempts: Attempts, resources: Mapping[Resources, int]) -> list[tuple[Any, ...]]:
    """Every measurement; `resources` has the row numbers of what they use."""
    measured = [one for _, attempt in attempts for one in attempt.measurements]
    if not measured:
        return []
    numbers = [number for number, attempt in attempts for _ in attempt.measurements]
    ordinals = itertools.chain.from_iterable(range(len(attempt.measurements)) for _, attempt in attempts)
    columns = rows.columns(measured, _ELSEWHERE)
    used = [resources[one.resources] for one in measured]
    return list(zip(numbers, ordinals, used, *(columns[name] for name in _FIELDS), strict=True))


def sample_rows(attempts: Attempts) -> list[tuple[Any, ...]]:
    """Of every measurement that has samples."""
    return [
        (
            number,
            one.side,
            one.variant,
            pack.FLOAT64_ZLIB,
            pack.pack_floats(one.samples_s),
            pack.pack_ints(one.blocks),
        )
        for number, attempt in attempts
        for one in attempt.measurements
        if one.samples_s or one.blocks
    ]

"""A candidate's vectorisation: the speedup of the `steps` that were measured beside it, so it is not stored twice."""

from typing import Any

import sqlalchemy as sa

from perftrack.declare import NEVER_GATED
from perftrack.store.schema import result, series

_STEPS = NEVER_GATED[0]
_their_series = series.alias("steps_series")
_their_result = result.alias("steps")

VECTORISATION = {
    "vectorisation": _their_result.c.speedup,
    "vectorisation_low": _their_result.c.speedup_low,
    "vectorisation_high": _their_result.c.speedup_high,
}


def beside(question: sa.Select[*tuple[Any, ...]]) -> sa.Select[*tuple[Any, ...]]:
    """A question to `result` and its `series`, joined with the steps of the same case, run and side.

    Nothing is joined to the baseline, to steps, and to what has no time.
    """
    same_case = (
        _their_series.c[name] == series.c[name] for name in ("case_id", "device_class_id", "baseline", "method_id")
    )
    same_side = _their_result.c.run_side_id == result.c.run_side_id
    candidate = series.c.variant.not_in([_STEPS, series.c.baseline]) & result.c.fault.is_(None)
    return question.join(
        _their_series, sa.and_(*same_case, _their_series.c.variant == _STEPS, candidate), isouter=True
    ).join(_their_result, sa.and_(_their_result.c.series_id == _their_series.c.id, same_side), isouter=True)

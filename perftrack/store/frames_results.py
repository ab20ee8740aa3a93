"""Rows of the frame `results` as the database joins and sorts them, to be read in parts: `frames_table` takes all."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Unpack

import msgspec
import sqlalchemy as sa

from perftrack.model import Method
from perftrack.store import aliases, frames_columns, frames_filters, read, steps, wide
from perftrack.store.frames_columns import UNPLACED
from perftrack.store.frames_filters import Filters
from perftrack.store.schema import (
    declaration,
    device,
    device_class,
    environment,
    finding,
    method,
    resources,
    result,
    revision,
    run,
    run_side,
    series,
    suite,
)
from perftrack.store.store import Store

_COLUMNS: Mapping[str, sa.ColumnElement[Any]] = {
    "repo": revision.c.repo,
    "commit": revision.c.sha,
    "commit_seq": sa.func.coalesce(revision.c.position, UNPLACED),
    "dirty": revision.c.dirty,
    "commit_time": revision.c.committed_us,
    "measured_at": run.c.started_us,
    "branch": frames_filters.BRANCH,
    "suite": suite.c.name,
    "case": aliases.KEY,
    "params": declaration.c.params,
    "device": device_class.c.name,
    "variant": series.c.variant,
    "baseline": series.c.baseline,
    "verdict": sa.func.coalesce(finding.c.verdict, ""),
    "cause": sa.func.coalesce(finding.c.cause, ""),
    "accuracy": sa.func.coalesce(finding.c.accuracy, ""),
    "run_id": run.c.uid,
    "device_uuid": device.c.uuid,
    "node": device.c.node,
    "env_key": environment.c.digest,
    "method_key": method.c.digest,
    **{name: wide.VALUES[of] for name, of in frames_columns.RENAMED.items()},
    **steps.VECTORISATION,
    "cold": method.c.document,
    **{name: resources.c[name] for name in ("registers", "local_bytes", "shared_bytes", "launches", "occupancy")},
    "code_digest": resources.c.code_digest,
}
"""Columns of `results` that have another name than in a `Summary`."""

_SELECT = (
    aliases.beside(read.SUMMARIES)
    .join(
        finding,
        sa.and_(
            finding.c.run_id == run_side.c.run_id,
            finding.c.case_id == series.c.case_id,
            finding.c.device_class_id == series.c.device_class_id,
            finding.c.variant == series.c.variant,
            run_side.c.side == "head",
        ),
        isouter=True,
    )
    .with_only_columns(
        *((_COLUMNS[name] if name in _COLUMNS else wide.VALUES[name]).label(name) for name in frames_columns.RESULTS)
    )
)

_ORDER = (
    revision.c.position.is_(None),
    revision.c.position,
    revision.c.committed_us,
    revision.c.id,
    run.c.started_us,
    run.c.id,
    result.c.series_id,
    run_side.c.side.desc(),
)
"""Topological; then oldest measurement first, head before base."""


def question(store: Store, **filters: Unpack[Filters]) -> sa.Select[*tuple[Any, ...]]:
    """The SELECT of the results asked for, in order. UsageError where a commit or a run is unknown."""
    return _SELECT.where(*frames_filters.where(store, filters)).order_by(*_ORDER)


def decoded(rows: Iterable[Sequence[Any]]) -> Iterator[Sequence[Any]]:
    """Rows whose method's document is replaced by what `cold` means."""
    at = list(frames_columns.RESULTS).index("cold")
    cold: dict[str, bool] = {}
    for row in rows:
        document = row[at]
        if document not in cold:
            cold[document] = msgspec.json.decode(document, type=Method).cache == "cold"
        yield (*row[:at], cold[document], *row[at + 1 :])

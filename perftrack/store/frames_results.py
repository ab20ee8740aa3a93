"""Rows of the frame `results`, and which of them are asked for."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypedDict, Unpack

import msgspec
import sqlalchemy as sa

from perftrack.model import Method
from perftrack.store import aliases, frames_columns, glob, read, steps
from perftrack.store.columns import is_one_of
from perftrack.store.frames_columns import UNPLACED
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
    series,
    suite,
)
from perftrack.store.store import Store


class Filters(TypedDict, total=False):
    """Which results; None, or left out, is all. The first five take patterns with * and ?."""

    case: str | None
    suite: str | None
    device: str | None
    """Device class."""
    variant: str | None
    branch: str | None
    since: str | None
    """First digits of a commit, which is included."""
    last: int | None
    """So many of the newest commits that have a result among the selected."""
    repo: str | None
    run: str | None
    """First digits of a run's id, or `latest`."""


_branch = sa.case((result.c.side == "head", run.c.head_branch), else_=run.c.base_branch)

_COLUMNS: Mapping[str, sa.ColumnElement[Any]] = {
    "repo": revision.c.repo,
    "commit": revision.c.sha,
    "commit_seq": sa.func.coalesce(revision.c.position, UNPLACED),
    "dirty": revision.c.dirty,
    "commit_time": revision.c.committed_us,
    "measured_at": run.c.started_us,
    "branch": _branch,
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
    "median_us": result.c.time_s,
    "p10_us": result.c.q10_s,
    "p90_us": result.c.q90_s,
    "baseline_us": result.c.baseline_s,
    "gbps": result.c.bandwidth_bytes_per_s,
    "tflops": result.c.flops_per_s,
    **steps.VECTORISATION,
    "host_us": result.c.host_s,
    "n_samples": result.c.samples,
    "cold": method.c.document,
    **{name: resources.c[name] for name in ("registers", "local_bytes", "shared_bytes", "launches", "occupancy")},
    "code_digest": resources.c.code_digest,
}
"""Columns of `results` that have another name than in the table `result`."""

_SELECT = (
    aliases.beside(read.SUMMARIES)
    .join(
        finding,
        sa.and_(
            finding.c.run_id == result.c.run_id,
            finding.c.case_id == series.c.case_id,
            finding.c.device_class_id == series.c.device_class_id,
            finding.c.variant == series.c.variant,
            result.c.side == "head",
        ),
        isouter=True,
    )
    .with_only_columns(
        *((_COLUMNS[name] if name in _COLUMNS else result.c[name]).label(name) for name in frames_columns.RESULTS)
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
    result.c.side.desc(),
)
"""Topological; then oldest measurement first, head before base."""


def question(store: Store, **filters: Unpack[Filters]) -> sa.Select[*tuple[Any, ...]]:
    """The SELECT of the results asked for, in order. UsageError where a commit or a run is unknown."""
    where = _where(store, filters)
    since, last, repo = filters.get("since"), filters.get("last"), filters.get("repo")
    if since is not None or last is not None or repo is not None:
        where.append(_among_revisions(store, where, since=since, last=last, repo=repo))
    return _SELECT.where(*where).order_by(*_ORDER)


def decoded(rows: Iterable[Sequence[Any]]) -> Iterator[Sequence[Any]]:
    """Rows whose method's document is replaced by what `cold` means."""
    at = list(frames_columns.RESULTS).index("cold")
    cold: dict[str, bool] = {}
    for row in rows:
        document = row[at]
        if document not in cold:
            cold[document] = msgspec.json.decode(document, type=Method).cache == "cold"
        yield (*row[:at], cold[document], *row[at + 1 :])


def _where(store: Store, filters: Filters) -> list[sa.ColumnElement[bool]]:
    where: list[sa.ColumnElement[bool]] = []
    if (case := filters.get("case")) is not None:
        where.append(is_one_of(series.c.case_id, store.read(lambda connection: aliases.numbers(connection, case))))
    if (device_name := filters.get("device")) is not None:
        known = store.read(read.device_class_names)
        fitting = glob.matching(device_name, known)
        where.append(is_one_of(series.c.device_class_id, [known[name] for name in fitting]))
    branches = sa.union(sa.select(run.c.head_branch), sa.select(run.c.base_branch))
    for name, column, there in (
        ("suite", suite.c.name, sa.select(suite.c.name)),
        ("variant", series.c.variant, sa.select(series.c.variant).distinct()),
        ("branch", _branch, branches),
    ):
        if (pattern := filters.get(name)) is not None:
            where.append(_matches(store, column, there, str(pattern)))
    if (text := filters.get("run")) is not None:
        uid = store.find_run(text)
        number = store.read(lambda connection: connection.execute(sa.select(run.c.id).where(run.c.uid == uid))).scalar()
        where += [result.c.run_id == number, read.of_run(number or 0)]
    return where


def _matches(store: Store, column: sa.ColumnElement[str], there: Any, pattern: str) -> sa.ColumnElement[bool]:
    if not {"*", "?"} & set(pattern):
        return column == pattern
    names = store.read(lambda connection: [name for name in connection.scalars(there) if name is not None])
    return column.in_(glob.matching(pattern, names))


def _among_revisions(
    store: Store, where: Sequence[sa.ColumnElement[bool]], *, since: str | None, last: int | None, repo: str | None
) -> sa.ColumnElement[bool]:
    question = read.SUMMARIES.where(*where).with_only_columns(result.c.revision_id).distinct()
    found = store.read(lambda connection: read.revisions_of(connection, question))
    if repo is not None:
        found = [one for one in found if one.repo == repo]
    if since is not None:
        first = store.find_revision(repo, since).order
        found = [one for one in found if one.order >= first]
    if last is not None:
        found = found[-last:] if last > 0 else []
    return is_one_of(result.c.revision_id, [one.id for one in found])

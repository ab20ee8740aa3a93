"""The report of a run, of a commit, and two revisions side by side."""

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from perftrack import chart
from perftrack.errors import UsageError
from perftrack.foreign import plain
from perftrack.pipeline.reports import comparison_of, report_of
from perftrack.report import as_html, tables, words
from perftrack.report.value import AccuracyRow, CompareRow, Comparison, Report, Row
from perftrack.store import Store
from perftrack.store.glob import matching
from perftrack.store.value import RunEntry
from perftrack.web.page import BadQuestionError, Page, Query
from perftrack.web.paging import part

_SHOWN = ("changed", "slower", "faster", "all")
_ROWS = 200
"""On one page; a published one has all of a report, and so many of a comparison's."""

_LEAST_SPAN = 0.02
_COMPARED = ("base", "head", "device", "case", "show")


def run(store: Store, query: Query) -> Page:
    """The report of one run."""
    uid = store.find_run(query.needed("id", "give the first digits of a run, as in run?id=7d7a3f2f, or latest"))
    return _reported(report_of(store, uid), (), query)


def commit(store: Store, query: Query) -> Page:
    """The report of the newest run of one commit, and its other runs."""
    asked = query.needed("sha", "give the first digits of a commit, as in commit?sha=3ccf18c")
    found = store.find_revision(query.text("repo") or None, asked)
    entries = store.runs_of(found)
    if not entries:
        raise UsageError(f"{asked} was only measured as the base of other commits: no run has it as its head")
    return _reported(report_of(store, entries[0].run.uid), entries, query)


def _reported(report: Report, entries: Sequence[RunEntry], query: Query) -> Page:
    span = _span([row.change.point for row in report.rows if row.change])
    return Page(
        template="run.html.j2",
        title=f"{report.verdict}: {words.against(report)}",
        data=report,
        header=(
            *("suite", "case", "device_class", "variant", "verdict", "cause", "red", "base_s", "head_s"),
            *("baseline_base_s", "baseline_head_s", "speedup_base", "speedup_head"),
            *("change", "change_low", "change_high", "detectable", "message"),
        ),
        rows=(_cells(row) for row in report.rows),
        extra={
            **as_html.content(report),
            "part": part(query, as_html.rest(report), _ROWS),
            "opened": "page" in query.values,
            "further": {name: value for name, value in query.values.items() if name in ("id", "sha", "repo")},
            "runs": entries,
            "interval": lambda row: _interval(row, span),
        },
    )


def _cells(row: Row) -> tuple[Any, ...]:
    bounds = (row.change.point, row.change.low, row.change.high) if row.change else (None, None, None)
    return (
        *(row.suite, row.case, row.device_class, row.variant, row.verdict.value, row.cause.value, row.red),
        *(row.base_s, row.head_s, row.baseline_base_s, row.baseline_head_s, row.speedup_base, row.speedup_head),
        *bounds,
        *(row.detectable, row.message),
    )


def _span(ratios: Sequence[float]) -> float:
    """How far from 1 the pictures of a page reach, all of them alike."""
    return 1.2 * max([_LEAST_SPAN, *(abs(ratio - 1) for ratio in ratios)])


def _interval(row: Row | AccuracyRow, span: float) -> Markup:
    """The change of one row with its bounds; nothing where there is none."""
    if isinstance(row, AccuracyRow) or row.change is None:
        return Markup()
    title = plain(f"{row.case} {row.variant}: {words.change(row.change, '99 %' if row.confirmed else '95 %')}")
    drawn = chart.interval(row.change.low, row.change.point, row.change.high, title=title, span=span)
    return Markup(drawn)  # noqa: S704 - numbers, and a title that is escaped there


def compare(store: Store, query: Query) -> Page:
    """Two stored revisions side by side; without them, the form that asks for them."""
    base, head = query.text("base"), query.text("head")
    show, device = query.choice("show", _SHOWN), query.text("device")
    made = None
    if base and head:
        made = comparison_of(store, base, head, device=device, start=None)
    elif base or head:
        raise BadQuestionError(f"{'head' if base else 'base'} is missing: give the first digits of both commits")
    rows = _chosen(made, show, query.text("case")) if made else []
    cut = part(query, rows, _ROWS)
    shown = cut.items
    span = _span([row.change for row in rows if row.change])
    data = made and Comparison(left=made.left, right=made.right, rows=tuple(rows), total=made.total, note=made.note)
    return Page(
        template="compare.html.j2",
        title=f"{made.left} against {made.right}" if made else "Compare",
        data=data,
        header=CompareRow.__struct_fields__,
        rows=(tuple(_value(getattr(row, name)) for name in CompareRow.__struct_fields__) for row in rows),
        extra={
            "cells": list(zip(shown, tables.compared(shown), [_bar(row, span) for row in shown], strict=True)),
            "columns": tables.COMPARED,
            "part": cut,
            "further": {name: value for name, value in query.values.items() if name in _COMPARED},
            "asked": {"base": base, "head": head, "device": device, "case": query.text("case"), "show": show},
            "shows": _SHOWN,
            "note": f"{made.note} {words.FOOTER}" if made else "",
        },
    )


def _value(value: Any) -> Any:
    return getattr(value, "value", value)


def _chosen(made: Comparison, show: str, pattern: str) -> list[CompareRow]:
    """Largest change first."""
    keys = set(matching(pattern, {row.case for row in made.rows})) if pattern else None
    kept = [row for row in made.rows if (keys is None or row.case in keys) and _is_shown(row, show)]
    return sorted(kept, key=lambda row: -(abs(row.change - 1) if row.change is not None else 0))


def _is_shown(row: CompareRow, show: str) -> bool:
    if show == "all":
        return True
    if show == "slower":
        return row.verdict in ("slower", "failed", "wrong") or (not row.verdict and (row.change or 1) > 1)
    if show == "faster":
        return row.verdict == "faster" or (not row.verdict and (row.change or 1) < 1)
    return row.verdict != "same" or bool(row.accuracy.value)


def _bar(row: CompareRow, span: float) -> Markup:
    if row.change is None:
        return Markup()
    title = plain(f"{row.case} {row.variant}: {words.effect(row.change)}")
    drawn = chart.interval(min(1.0, row.change), row.change, max(1.0, row.change), title=title, span=span, width=160)
    return Markup(drawn)  # noqa: S704 - numbers, and a title that is escaped there

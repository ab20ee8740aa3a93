"""Regressions, devices, and what there is to take away."""

from collections import Counter
from typing import Any

import msgspec

from perftrack.errors import UsageError
from perftrack.judge.life import State
from perftrack.model import Device, Environment
from perftrack.pipeline.life import rows as regression_rows
from perftrack.report.as_json import schema
from perftrack.store import Store
from perftrack.web.page import Page, Query

STATES = ("open", "all", *(state.value for state in State if state is not State.OPEN))


def regressions(store: Store, query: Query) -> Page:
    """Those in one state, the newest first, or one of them."""
    asked = query.choice("state", STATES)
    every = regression_rows(store, everything=True)
    known = every
    if number := query.text("id"):
        known = [row for row in every if str(row.id) == number]
        if not known:
            raise UsageError(f"there is no regression {number!r}; the list of all has those there are")
    elif asked != "all":
        known = [row for row in every if row.state.value == asked]
    known = known[::-1]
    return Page(
        template="regressions.html.j2",
        title=f"Regression {number}" if number else "Regressions",
        data=known,
        header=(
            *("id", "repo", "state", "kind", "device_class", "found_sha", "found_us", "base_sha"),
            *("suite", "case", "variant", "case_state", "level", "why", "reason", "author", "marked_us", "until_us"),
        ),
        rows=[
            (
                *(row.id, row.repo, row.state.value, row.kind.value, row.device_class),
                *(row.found_sha, row.found_us, row.base_sha),
                *(one.suite, one.case, one.variant, one.state.value, one.level, one.why),
                *(one.reason, one.author, one.marked_us, one.until_us),
            )
            for row in known
            for one in row.cases
        ],
        extra={
            "counts": Counter(row.state.value for row in every),
            "asked": "" if number else asked,
            "states": STATES,
            "number": number,
            "total": len(every),
        },
    )


class DeviceLine(msgspec.Struct, frozen=True, kw_only=True):
    """One card that ever did a job."""

    device: Device
    jobs: int
    last_us: int
    environment: Environment | None


def devices(store: Store, query: Query) -> Page:  # noqa: ARG001 - every page is asked alike
    """Every card with its facts, its newest environment, and how much it was used."""
    lines = [
        DeviceLine(device=use.device, jobs=use.jobs, last_us=use.last_us, environment=use.environment)
        for use in store.devices()
    ]
    names = Device.__struct_fields__
    return Page(
        template="devices.html.j2",
        title="Devices",
        data=lines,
        header=(*names, "jobs", "last_us", "environment"),
        rows=[
            (
                *(getattr(one.device, name) for name in names),
                one.jobs,
                one.last_us,
                msgspec.json.encode(one.environment.entries).decode() if one.environment else "",
            )
            for one in lines
        ],
        extra={"classes": Counter(one.device.device_class for one in lines)},
    )


class DataLine(msgspec.Struct, frozen=True, kw_only=True):
    """One page that can be taken away."""

    page: str
    what: str


_PAGES = (
    DataLine(page="status", what="the newest runs on every device class"),
    DataLine(page="runs", what="every run, a page at a time"),
    DataLine(page="cases", what="the newest value and step of every series"),
    DataLine(page="regressions", what="every open regression, case by case"),
    DataLine(page="roofline", what="every variant of the device class used last, against its copy ceiling"),
    DataLine(
        page="fusion", what="every candidate of the device class used last: what fusion brings, and what was expected"
    ),
    DataLine(page="devices", what="every card, its environment and its use"),
)


def data(store: Store, query: Query) -> Page:  # noqa: ARG001 - every page is asked alike
    """What can be taken away, in which form, and the schema of a report."""
    whole: dict[str, Any] = {"schema": store.current(), "pages": _PAGES, "report_schema": schema()}
    return Page(
        template="data.html.j2",
        title="Data",
        data=whole,
        header=("page", "what"),
        rows=[(one.page, one.what) for one in _PAGES],
    )

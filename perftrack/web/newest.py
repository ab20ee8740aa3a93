"""What roofline and fusion pages are drawn of: the newest value of every variant on one device class."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from perftrack.declare import NEVER_GATED
from perftrack.errors import UsageError
from perftrack.model import Status
from perftrack.store import Store
from perftrack.store.latest import RUNS, Latest, latest, newest_class
from perftrack.store.overview import SeriesName
from perftrack.web.page import Query

Role = Literal["baseline", "steps", "candidate"]
"""What a variant is compared as."""

LOOKED_THROUGH = RUNS


class Newest(msgspec.Struct, frozen=True, kw_only=True):
    """One device class, and what was measured on it last; only what has a time."""

    device_class: str
    suites: tuple[str, ...]
    """All that there are, whichever is chosen."""
    values: tuple[Latest, ...]


def newest(store: Store, query: Query) -> Newest:
    """Of the device class that is asked for, else of the one used last; of one suite, where one is asked for."""
    asked = query.text("device")
    device_class = asked or store.read(newest_class) or ""
    found = store.read(lambda connection: latest(connection, device_class))
    if asked and not found:
        known = ", ".join(classes(store.series_names())) or "nothing"
        raise UsageError(f"the newest {RUNS} runs have nothing measured on {asked!r}; the store has results on {known}")
    suite = query.text("suite")
    timed = [one for one in found if one.summary.status is Status.OK and one.summary.time_s]
    return Newest(
        device_class=device_class,
        suites=tuple(sorted({one.summary.suite for one in timed})),
        values=tuple(one for one in timed if suite in ("", one.summary.suite)),
    )


def classes(names: Sequence[SeriesName]) -> list[str]:
    """Device classes that have results."""
    return sorted({one.device_class for one in names})


def asked(found: Newest, query: Query) -> dict[str, str]:
    """The question of a further page of the same."""
    suite = query.text("suite")
    return {"device": found.device_class} | ({"suite": suite} if suite else {})


def role(one: Latest) -> Role:
    """Of its variant."""
    if one.summary.variant == one.baseline:
        return "baseline"
    return "steps" if one.summary.variant in NEVER_GATED else "candidate"


def variant_order(values: Sequence[Latest]) -> list[str]:
    """Names of variants: baselines, then steps, then the candidates, each in the order of their letters."""
    roles: dict[str, Role] = {}
    for one in values:
        roles.setdefault(one.summary.variant, role(one))
    rank = ("baseline", "steps", "candidate")
    return sorted(roles, key=lambda name: (rank.index(roles[name]), name))

"""All pages by name, and how one becomes HTML."""

import datetime as dt
from collections.abc import Callable, Mapping
from functools import cache
from importlib import resources
from typing import Any

import jinja2

from perftrack import __version__
from perftrack.judge.life import day
from perftrack.report import words
from perftrack.report.as_html import foreign
from perftrack.store import Store
from perftrack.web import cases, fusion, lists, progress, roofline, runs, status
from perftrack.web.links import Links
from perftrack.web.page import Page, Query

PAGES: Mapping[str, Callable[[Store, Query], Page]] = {
    "status": status.status,
    "runs": progress.runs,
    "cases": cases.cases,
    "regressions": lists.regressions,
    "compare": runs.compare,
    "roofline": roofline.roofline,
    "fusion": fusion.fusion,
    "devices": lists.devices,
    "data": lists.data,
    "run": runs.run,
    "progress": progress.progress,
    "commit": runs.commit,
    "case": cases.case,
}
"""By name, which is also its address."""

MENU = ("status", "runs", "cases", "regressions", "compare", "roofline", "fusion", "devices", "data")
"""Those that need no question."""

REGRESSION_STATES = lists.STATES


def html(page: Page, name: str, links: Links, *, csrf: str = "") -> str:
    """The page as HTML without scripts; with `csrf`, forms that change something are shown."""
    return (
        _environment()
        .get_template(page.template)
        .render(
            **page.extra,
            title=page.title,
            data=page.data,
            name=name,
            links=links,
            link=links.page,
            csrf=csrf,
        )
    )


def message(title: str, sentence: str, links: Links) -> str:
    """A page that only says something: an error, with what to do about it."""
    return (
        _environment()
        .get_template("message.html.j2")
        .render(title=title, sentence=sentence, name="", links=links, link=links.page, csrf="")
    )


def sign_in(sentence: str, links: Links, after: str) -> str:
    """The form that asks for the token."""
    return (
        _environment()
        .get_template("sign_in.html.j2")
        .render(
            title="Sign in",
            sentence=sentence,
            after=after,
            name="",
            links=links,
            link=links.page,
            csrf="",
        )
    )


@cache
def style() -> str:
    """The one style sheet: the report's, and what the site adds."""
    files = (("perftrack.report", "report.css"), ("perftrack.web", "site.css"))
    return "".join((resources.files(package) / "templates" / name).read_text("utf-8") for package, name in files)


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader("perftrack.web"), jinja2.PackageLoader("perftrack.report")]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=foreign,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    shared: dict[str, Any] = {
        "words": words,
        "day": day,
        "instant": _instant,
        "duration": _duration,
        "menu": MENU,
        "version": __version__,
    }
    environment.globals.update(shared)
    return environment


def _instant(instant_us: int | None) -> str:
    """UTC, to the minute."""
    try:
        return (
            words.NOT_KNOWN if instant_us is None else f"{dt.datetime.fromtimestamp(instant_us / 1e6, dt.UTC):%F %H:%M}"
        )
    except (ValueError, OverflowError, OSError):
        return words.NOT_KNOWN


def _duration(seconds: float | None) -> str:
    """`40 s`, `12 min`, `3.5 h`."""
    if seconds is None:
        return words.NOT_KNOWN
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"

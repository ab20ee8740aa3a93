"""The report as one HTML page that needs nothing else: no script, no request, light or dark as the reader has it."""

from collections.abc import Sequence
from functools import cache

import jinja2
from markupsafe import Markup

from perftrack.foreign import plain
from perftrack.report import words
from perftrack.report.value import AccuracyRow, Report, Row


def render(report: Report) -> str:
    """The page: the verdict, at most ten rows worst first, every other row folded in, devices, methods."""
    return _environment().get_template("report.html.j2").render(content(report))


def fragment(report: Report) -> str:
    """The same for a notebook: a frame with the page inside, so that neither style meets the other."""
    page = Markup.escape(render(report))
    return f'<iframe srcdoc="{page}" sandbox title="perftrack report" style="width:100%;height:36em;border:0"></iframe>'


def rest(report: Report) -> list[Row]:
    """The rows that are not told on top, by device class, suite, case and variant."""
    # by identity: two equal rows are two rows
    on_top = {id(row) for row in words.attention(report)[: words.ROWS]}
    return _in_order([row for row in report.rows if id(row) not in on_top])


def content(report: Report) -> dict[str, object]:
    """What the template is filled with."""
    shown = words.attention(report)[: words.ROWS]
    return {
        "report": report,
        "headline": words.headline(report),
        "against": words.against(report),
        "shown": [_told(row) for row in shown],
        "rest": rest(report),
        "rest_counts": words.counts(report, without=shown),
        "suites": [(device.device_class, one) for device in report.devices for one in device.suites if one.cases],
        "notes": _notes(report),
        "footer": words.FOOTER if report.base else words.FOOTER_WITHOUT_BASE,
        "words": words,
    }


def _told(row: Row | AccuracyRow) -> dict[str, object]:
    if isinstance(row, AccuracyRow):
        lines = [words.accuracy(row), words.baseline_errors(row), *(one.text for one in row.regressions)]
        return {"row": row, "word": "accuracy", "bad": False, "cause": "", "lines": [one for one in lines if one]}
    lines = [words.evidence(row), words.numbers(row), row.why, row.message if row.change else ""]
    said = [one for one in (*lines, *(known.text for known in row.regressions)) if one]
    return {"row": row, "word": row.verdict.value, "bad": row.red, "cause": row.cause.value, "lines": said}


def _in_order(rows: Sequence[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row.device_class, row.suite, row.case, row.variant))


def _notes(report: Report) -> list[tuple[str, str]]:
    kinds = (
        ("more accurate", words.more_accurate(report)),
        ("fixed", report.fixed),
        ("skipped", report.skipped),
        ("problem", report.problems),
        ("method", report.methods),
    )
    return [(name, sentence) for name, sentences in kinds for sentence in sentences]


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("perftrack.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=foreign,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def foreign(value: object) -> object:
    """Whatever stands in the page is one line of letters that can be seen; escaping comes after."""
    return plain(value) if isinstance(value, str) and not isinstance(value, Markup) else value

"""Reports, comparisons and histories as a notebook or rich shows them."""

from collections.abc import Sequence

from markupsafe import Markup
from rich.text import Text

from perftrack import chart
from perftrack.foreign import plain
from perftrack.report import as_html, tables, text
from perftrack.report.layout import Look
from perftrack.report.segments import borders, segments
from perftrack.report.value import Comparison, History, Report


def rich_text(value: object, width: int, *, unicode: bool) -> Text:
    """The text of the command line; rich drops the colours where there are none."""
    look = Look(width=width, color=True, unicode=unicode)
    if isinstance(value, Report):
        return Text.from_ansi(text.render(value, look))
    if isinstance(value, Comparison):
        return Text.from_ansi(tables.comparison(value, look))
    if isinstance(value, History):
        return Text.from_ansi(tables.history(value, look))
    raise TypeError(f"no text is known for {type(value).__name__}")


def html(value: object) -> str:
    """A piece of HTML for a cell's output; every name in it is escaped."""
    if isinstance(value, Report):
        return as_html.fragment(value)
    if isinstance(value, Comparison):
        return _comparison(value)
    if isinstance(value, History):
        return _history(value)
    raise TypeError(f"no HTML is known for {type(value).__name__}")


def _comparison(compared: Comparison) -> Markup:
    title = f"{compared.left} -> {compared.right}: {len(compared.rows)} of {compared.total} shown"
    rows = [
        (row.device_class, *cells) for row, cells in zip(compared.rows, tables.compared(compared.rows), strict=True)
    ]
    return _titled(title) + _table(("device", *tables.COMPARED), rows) + _paragraph(compared.note)


def _history(series: History) -> Markup:
    what, values = tables.drawn(series)
    title = f"{series.suite}: {series.case} {series.variant} on {series.device_class}"
    image = chart.svg(
        values,
        title=plain(f"{what} of {title}"),
        borders=borders(series.points),
        changes=[index for index, _ in series.changes],
    )
    parts = [tables.segment(one) for one in segments(series)]
    return (
        _titled(title)
        + Markup(image)  # noqa: S704 - numbers, and a title that is escaped there
        + _paragraph(f"{what}, oldest first")
        + _table(tables.SEGMENTS, parts)
        + _table(tables.POINTS, tables.points(series.points))
    )


def _titled(title: str) -> Markup:
    return Markup("<h4><bdi>{}</bdi></h4>").format(plain(title))


def _paragraph(said: str) -> Markup:
    return Markup("<p>{}</p>").format(plain(said)) if said else Markup()


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Markup:
    if not rows:
        return Markup()
    head = Markup("").join(Markup("<th>{}</th>").format(cell) for cell in header)
    body = Markup("").join(
        Markup("<tr>{}</tr>").format(Markup("").join(Markup("<td>{}</td>").format(plain(cell)) for cell in cells))
        for cells in rows
    )
    return Markup("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>").format(head, body)

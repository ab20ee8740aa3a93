"""How the values of a report show themselves: in a notebook as HTML, through rich as coloured text."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.text import Text


class Shown:
    """Mixed into what people look at; the drawing is loaded when somebody does."""

    __slots__ = ()

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> Iterator["Text"]:
        """As on the command line, as wide as the console."""
        from perftrack.report import notebook  # noqa: PLC0415 - rich takes a tenth of a second

        yield notebook.rich_text(self, options.max_width, unicode=not options.ascii_only)

    def _repr_html_(self) -> str:
        from perftrack.report import notebook  # noqa: PLC0415 - Jinja2 is needed by nobody else

        return notebook.html(self)

"""Reads a page as a browser would: its links, its text, and what must never be in it."""

from html.parser import HTMLParser

ALLOWED = frozenset(
    {"html", "head", "meta", "title", "link", "body", "header", "nav", "main", "footer", "section", "div", "figure"}
    | {"h1", "h2", "h3", "p", "a", "b", "strong", "small", "bdi", "span", "code", "pre", "figcaption", "ul", "ol", "li"}
    | {"dl", "dt", "dd", "table", "thead", "tbody", "tr", "th", "td", "details", "summary"}
    | {
        "form",
        "label",
        "input",
        "button",
        "select",
        "option",
        "svg",
        "path",
        "polyline",
        "circle",
        "g",
        "text",
        "progress",
    }
)
_VOID = {"meta", "link", "input"}


class Page(HTMLParser):
    """What is in a page. Raises nothing: tests ask."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.misplaced: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.misplaced.append(tag)

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    @property
    def links(self) -> list[str]:
        return [attrs[name] for _, attrs in self.tags for name in ("href", "action") if attrs.get(name)]

    def dangerous(self) -> list[str]:
        """Foreign elements, handlers, inline styles, and links that lead elsewhere."""
        found = [tag for tag, _ in self.tags if tag not in ALLOWED] + self.misplaced + self.open
        for _, attrs in self.tags:
            found += [name for name in attrs if name.startswith("on") or name == "style"]
        found += [url for url in self.links if ":" in url.partition("?")[0].partition("/")[0] and url != "data:,"]
        return found + [url for url in self.links if url.startswith("/")]

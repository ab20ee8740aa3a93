"""Where pages are: under one address that is asked, or in files beside each other."""

import hashlib
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote, urlencode

Keys = tuple[tuple[str, str], ...]
Target = tuple[str, Keys]
"""A page's name, and the values of its question, by name."""

KINDS = ("html", "json", "csv")


class Links(Protocol):
    """Addresses as they stand in one page; all of them are relative, so that a site may stand anywhere."""

    @property
    def served(self) -> bool:
        """Whether somebody answers questions: forms make sense."""
        ...

    def page(self, name: str, **values: str) -> str:
        """Of a page; empty where there is none."""
        ...

    def twin(self, kind: str) -> str:
        """Of this page as `json` or `csv`."""
        ...

    def style(self) -> str:
        """Of the style sheet."""
        ...


def target(name: str, values: Mapping[str, str]) -> Target:
    """The same page whatever the order of its values."""
    return name, tuple(sorted(values.items()))


@dataclass(frozen=True, slots=True)
class ServedLinks:
    """Readable addresses: the page's name and its question. Every page is beside every other."""

    name: str
    values: Mapping[str, str]
    served: bool = True

    def page(self, name: str, **values: str) -> str:
        """`case?suite=softmax&case=…`; the status page is the folder itself."""
        return ("./" if name == "status" else name) + _question(values)

    def twin(self, kind: str) -> str:
        """`cases.json?suite=…`."""
        return f"{self.name}.{kind}{_question(self.values)}"

    def style(self) -> str:
        """The one style sheet."""
        return "site.css"


def _question(values: Mapping[str, str]) -> str:
    return f"?{urlencode(values)}" if values else ""


@dataclass(frozen=True, slots=True)
class FileLinks:
    """Files of a published site, as far as they are `known`."""

    here: Target
    known: frozenset[Target]
    served: bool = False

    def page(self, name: str, **values: str) -> str:
        """A relative path; empty where that page was not published."""
        wanted = target(name, values)
        return self._relative(file_of(wanted, "html")) if wanted in self.known else ""

    def twin(self, kind: str) -> str:
        """The file beside this one."""
        return self._relative(file_of(self.here, kind))

    def style(self) -> str:
        """The one style sheet."""
        return self._relative("site.css")

    def _relative(self, path: str) -> str:
        return quote(posixpath.relpath(path, posixpath.dirname(file_of(self.here, "html")) or "."))


def file_of(wanted: Target, kind: str) -> str:
    """`index.html`, `cases.csv`, `case/softmax-cols-4096-3f1c….html`: readable letters, and a digest."""
    name, keys = wanted
    if not keys:
        return f"{'index' if name == 'status' else name}.{kind}"
    said = re.sub(r"[^A-Za-z0-9]+", "-", "-".join(value for _, value in keys)).strip("-")[:60]
    digest = hashlib.sha256(repr(keys).encode()).hexdigest()[:12]
    return f"{name}/{said}-{digest}.{kind}" if said else f"{name}/{digest}.{kind}"

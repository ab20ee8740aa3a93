"""`-k`: which cases an expression means, in pytest's own words."""

import re
from collections.abc import Callable, Mapping, Sequence

from perftrack.errors import UsageError
from perftrack.model import Case, Scalar

Predicate = Callable[[str], bool]

_TOKEN = re.compile(r"\s*(\(|\)|[^\s()]+)")


def select(cases: Sequence[Case], expression: str) -> list[Case]:
    """The cases whose `suite::key` the expression matches; all of them for an empty expression.

    Words match as parts of the name, whatever the letter case, and are joined by `and`, `or`, `not` and
    parentheses: `softmax and not float16`. A whole case key is a word too.
    """
    if not expression.strip():
        return list(cases)
    matches = _Parser(expression).parse()
    return [case for case in cases if matches(f"{case.suite}::{case.key}".lower())]


def of_axes(axes: Mapping[str, Sequence[Scalar]], expression: str = "") -> str:
    """The expression that keeps, of benchmarks with these axes, the cases with these values; and then `expression`.

    A key is `name[axis=value,…]`, so that `[n=1]` and `,n=1,` say exactly what `n=1` would say of `n=10` too.
    """
    parts = [f"({expression})"] if expression.strip() else []
    for axis, values in axes.items():
        spelled = [str(value).lower() if isinstance(value, bool) else str(value) for value in values]
        exact = [f"{left}{axis}={value}{right}" for value in spelled for left in "[," for right in ",]"]
        parts.append(f"(not ([{axis}= or ,{axis}=) or {' or '.join(exact)})")
    return " and ".join(parts)


class _Parser:
    """Recursive descent: or < and < not < word."""

    def __init__(self, expression: str) -> None:
        self.expression = expression
        self.tokens: list[str] = _TOKEN.findall(expression)
        self.at = 0

    def parse(self) -> Predicate:
        result = self._or()
        if self._next() is not None:
            raise self._wrong(f"{self._next()!r} is not expected there")
        return result

    def _next(self) -> str | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def _take(self, word: str) -> bool:
        if self._next() == word:
            self.at += 1
            return True
        return False

    def _or(self) -> Predicate:
        parts = [self._and()]
        while self._take("or"):
            parts.append(self._and())
        return lambda name: any(part(name) for part in parts)

    def _and(self) -> Predicate:
        parts = [self._not()]
        while self._take("and"):
            parts.append(self._not())
        return lambda name: all(part(name) for part in parts)

    def _not(self) -> Predicate:
        if self._take("not"):
            inner = self._not()
            return lambda name: not inner(name)
        if self._take("("):
            inner = self._or()
            if not self._take(")"):
                raise self._wrong("a closing parenthesis is missing")
            return inner
        word = self._next()
        if word is None or word in ("and", "or", ")"):
            raise self._wrong("a name is missing" if word is None else f"a name is missing before {word!r}")
        self.at += 1
        return lambda name: word.lower() in name

    def _wrong(self, what: str) -> UsageError:
        return UsageError(f"-k {self.expression!r}: {what}; write for example `softmax and not float16`")

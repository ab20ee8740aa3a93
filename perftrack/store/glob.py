"""Patterns with * and ?. Square brackets mean themselves: case keys are full of them."""

import re
from collections.abc import Iterable


def matching(pattern: str, names: Iterable[str]) -> list[str]:
    """Those of `names` that are `pattern`, or match it."""
    wild = "".join({"*": ".*", "?": "."}.get(letter, re.escape(letter)) for letter in pattern)
    return [name for name in names if name == pattern or re.fullmatch(wild, name, re.DOTALL)]

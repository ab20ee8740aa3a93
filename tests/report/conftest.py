"""Golden transcripts: what a person sees, kept whole."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture
def golden() -> Callable[[str, str], None]:
    """Compare a text with `golden/NAME`; with PERFTRACK_WRITE_GOLDEN set, write it instead, to be looked at in git."""

    def compare(name: str, shown: str) -> None:
        path = GOLDEN / name
        if os.environ.get("PERFTRACK_WRITE_GOLDEN"):
            path.write_text(shown, encoding="utf-8")
        assert shown == path.read_text(encoding="utf-8")

    return compare

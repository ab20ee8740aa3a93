"""A writer that is killed loses nothing that was acknowledged; `make bench-kill` does it two hundred times."""

import os
import sys
from pathlib import Path

import pytest
from store_kills import kills

pytestmark = pytest.mark.fault


@pytest.fixture(autouse=True)
def _children_find_us(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = str(Path(__file__).parent)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([folder, *filter(None, [os.environ.get("PYTHONPATH")])]))
    monkeypatch.syspath_prepend(folder)
    assert folder in sys.path


def test_every_acknowledged_job_is_there_once_after_five_kills(own_url: str) -> None:
    found = list(kills(own_url, 5, seed=3))
    assert sum(one.acknowledged for one in found) > 0

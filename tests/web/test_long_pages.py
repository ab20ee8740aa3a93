"""Long lists are pages: none is cut, and a history reads only what it shows."""

import csv
import io
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlencode

import pytest
from looking import Page
from starlette.testclient import TestClient
from web_builders import Names, fill, run_uid

from perftrack.pipeline.reports import histories_of
from perftrack.web import cases, runs
from perftrack.web.publish import publish
from perftrack.web.server import application

CLASSES = ("a", "b", "c")
CASES = tuple(f"add[n={number}]" for number in range(4))


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    from perftrack.store import Store

    with Store.open(str(tmp_path_factory.mktemp("many") / "perf.db")) as store:
        fill(store, Names(cases=CASES, suites=("s",), classes=CLASSES), commits=3)
        yield store


@pytest.fixture
def asked(many):
    with TestClient(application(many), base_url="http://localhost") as opened:
        yield opened


def test_device_classes_of_a_case(asked, many, tmp_path, monkeypatch):
    monkeypatch.setattr(cases, "CLASSES_ON_A_PAGE", 2)
    path = f"case?{urlencode({'suite': 's', 'case': CASES[0]})}"
    first = Page(asked.get(f"/{path}").text)
    assert "page 1 of 2, 3 device classes" in first.text
    (following,) = {url for url in first.links if "page=2" in url}
    second = Page(asked.get(f"/{following}").text)
    assert "fused on c " in second.text
    assert "fused on a " in first.text
    assert "fused on a " not in second.text
    shown = [
        one["device_class"]
        for number in (1, 2)
        for one in asked.get(f"/{path.replace('case?', 'case.json?')}&page={number}").json()
    ]
    assert shown == list(CLASSES)
    publish(many, tmp_path / "site", runs=1, say=print)
    published = [text.read_text("utf-8") for text in (tmp_path / "site" / "case").glob("*.html")]
    assert sum("page 2 of 2, 3 device classes" in text for text in published) == len(CASES)


def test_rows_of_a_run_and_of_a_comparison(asked, monkeypatch):
    monkeypatch.setattr(runs, "_ROWS", 5)
    for path, what in (
        (f"/run?id={run_uid(3)}", "rows of the rest"),
        ("/compare?base=00000a2&head=00000a3&show=all", "variants"),
    ):
        found = []
        for number in (1, 2, 3):
            page = Page(asked.get(f"{path}&page={number}").text)
            assert f"page {number} of 3, 12 {what}" in page.text
            assert page.dangerous() == []
            found += [url for url in page.links if url.startswith("case?")]
        assert len(found) == len(set(found)) == 12
        name, _, question = path.partition("?")
        table = asked.get(f"{name}.csv?{question}").text
        assert len(list(csv.reader(io.StringIO(table)))) == 1 + 12


def test_the_newest_points_are_those_of_the_whole_history(filled):
    (case, _), device = Names().cases, Names().classes[0]
    for last in (1, 5, 9, 29, 30, 1000):
        (whole,) = histories_of(filled, case, device=device, variant="", last=10_000)
        (part,) = histories_of(filled, case, device=device, variant="", last=last)
        assert part.points == whole.points[-last:]
        cut = max(0, len(whole.points) - last)
        assert part.changes == tuple((at - cut, way) for at, way in whole.changes if at > cut)


def test_many_readers_at_once_wait_for_their_turn(asked):
    with ThreadPoolExecutor(24) as readers:
        codes = set(readers.map(lambda number: asked.get(f"/cases?page={number % 3 + 1}").status_code, range(96)))
    assert codes == {200}

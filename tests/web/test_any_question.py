"""Whatever is asked: an answer, and a fault of the question is never one of the server."""

import csv
import io
import json
import shutil
from urllib.parse import quote_from_bytes, urlencode

import pytest
from hostile import NAMES
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient
from web_builders import Names, run_uid

from perftrack.store import Store
from perftrack.web import site
from perftrack.web.server import application

TOKEN = "correct-horse-battery-staple"  # noqa: S105 - opens nothing
KNOWN = {
    "suite": ["elementwise", "elem*"],
    "case": [*Names().cases, "*", "softmax"],
    "device": [*Names().classes, "NVIDIA*"],
    "variant": ["fused", "unfused"],
    "benchmark": ["b"],
    "repo": ["kernels"],
    "id": [run_uid(2), run_uid(2)[:6], "latest", "1"],
    "sha": ["00000a1", "00000a2", "0"],
    "base": ["00000a1", "00000a2+dirty"],
    "head": ["00000a2", "00000a3"],
    "state": [*site.REGRESSION_STATES],
    "show": ["changed", "slower", "faster", "all"],
    "last": ["1", "2", "200", "5000", "-1", "1e9", "٣"],
    "page": ["1", "2", "99999", "0"],
    "follow": ["yes", "no"],
}
odd = st.one_of(
    st.text(max_size=40),
    st.sampled_from([name[:3000] for name in NAMES.values()]),
    st.sampled_from(["", "*", "%", "_", "\\", "'"]),
)
values = st.fixed_dictionaries({}, optional={name: st.sampled_from(known) | odd for name, known in KNOWN.items()})
questions = values.map(lambda asked: urlencode(asked, errors="replace")) | st.binary(max_size=40).map(quote_from_bytes)
some = settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])


@pytest.fixture(scope="module")
def asked(with_red):
    with (
        Store.open(str(with_red)) as store,
        # what the application does not catch would be raised here
        TestClient(application(store), base_url="http://localhost", follow_redirects=False) as opened,
    ):
        yield opened


@pytest.fixture(scope="module")
def guarded(with_red, tmp_path_factory):
    path = tmp_path_factory.mktemp("forms") / "perf.db"
    shutil.copy(with_red, path)
    with (
        Store.open(str(path)) as store,
        TestClient(application(store, token=TOKEN), base_url="http://localhost", follow_redirects=False) as opened,
    ):
        yield opened


@given(page=st.sampled_from(sorted(site.PAGES)), kind=st.sampled_from(["", ".json", ".csv"]), question=questions)
@some
def test_every_question_has_an_answer(asked, page, kind, question):
    answer = asked.get(f"/{page}{kind}?{question}")
    assert answer.status_code in (200, 400, 404)
    if kind == ".json":
        document = json.loads(answer.text)
        assert answer.status_code == 200 or set(document) == {"error"}
    elif kind == ".csv" and answer.status_code == 200:
        header, *rows = csv.reader(io.StringIO(answer.text))
        assert all(len(row) == len(header) for row in rows)
    elif not kind:
        assert answer.text.startswith("<!DOCTYPE html>")


@given(path=st.text(max_size=30) | st.sampled_from(["../x", "%2e%2e/x", "run.json.csv", ".json", "site.css/x", "//"]))
@settings(some, max_examples=60)
def test_every_path_has_an_answer(asked, path):
    assert asked.get(f"/{quote_from_bytes(path.encode(errors='replace'))}").status_code in (200, 307, 400, 404, 405)


forms = st.dictionaries(
    st.sampled_from(["id", "reason", "author", "state", "until", "csrf", "token", "after"]),
    odd | st.sampled_from(["1", "acknowledged", "2030-12-31", TOKEN]),
    max_size=6,
)


@given(where=st.sampled_from(["ack", "sign-in", "sign-out"]), form=forms)
@settings(some, max_examples=60)
def test_every_form_has_an_answer(guarded, where, form):
    body = urlencode(form, errors="replace")
    kind = {"content-type": "application/x-www-form-urlencoded", "authorization": f"Bearer {TOKEN}"}
    assert guarded.post(f"/{where}", content=body, headers=kind).status_code in (303, 400, 403, 404, 413)

"""What the server lets whom do: headers, the token, and acknowledging from a form of its own only."""

import logging

import pytest
from looking import Page
from starlette.testclient import TestClient

from perftrack.errors import UsageError
from perftrack.judge.life import State
from perftrack.pipeline.life import rows
from perftrack.web import access
from perftrack.web.server import application

TOKEN = "correct-horse-battery-staple"  # noqa: S105 - opens nothing
BEARER = {"authorization": f"Bearer {TOKEN}"}
SAID = {"id": "1", "reason": "exact sums", "author": "Ada", "state": "acknowledged", "until": ""}


@pytest.fixture
def guarded(red_store):
    # a browser's cookies of a session are not sent before they are set
    with TestClient(
        application(red_store, token=TOKEN), base_url="http://perf.example:8787", follow_redirects=False
    ) as client:
        yield client


def state(store):
    return rows(store, everything=True)[0].state


def signed_in(client):
    answer = client.post("/sign-in", data={"token": TOKEN, "after": "regressions?state=all"})
    assert (answer.status_code, answer.headers["location"]) == (303, "./regressions?state=all")
    return answer


def form_of(client):
    """The hidden values of the form that accepts the open regression."""
    page = Page(client.get("/regressions").text)
    return {attrs["name"]: attrs["value"] for tag, attrs in page.tags if attrs.get("type") == "hidden"}


@pytest.mark.parametrize("path", ["/", "/cases.json", "/cases.csv", "/nothing", "/site.css", "/run?id=x", "/ack"])
def test_every_answer_has_the_headers(filled, path):
    with TestClient(application(filled), base_url="http://localhost") as client:
        headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'self'; img-src data:;")
    assert "unsafe" not in policy
    assert "script-src" not in policy
    for name, value in (
        ("x-content-type-options", "nosniff"), ("x-frame-options", "DENY"), ("referrer-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"), ("cache-control", "private, no-cache"),
    ):  # fmt: skip
        assert headers[name] == value
    assert "server" not in headers


def test_without_a_token_nothing_is_written(red_store):
    with TestClient(application(red_store), base_url="http://localhost", follow_redirects=False) as client:
        assert "perftrack ack 1 --reason TEXT" in Page(client.get("/regressions").text).text
        assert [tag for tag, attrs in Page(client.get("/regressions").text).tags if attrs.get("method") == "post"] == []
        assert client.post("/ack", data=SAID).status_code == 403
        assert client.post("/ack", data=SAID, headers=BEARER).status_code == 403
        assert client.get("/sign-in").status_code == 404
        assert client.get("/ack").status_code == 404
        for path in ("/", "/cases", "/run"):
            assert client.post(path).status_code == 405
    assert state(red_store) is State.OPEN


def test_with_a_token_nothing_is_shown_without_it(guarded):
    for path in ("/", "/cases", "/run?id=latest", "/data"):
        answer = guarded.get(path)
        assert answer.status_code == 401
        assert "AdamW" not in answer.text
        assert "Token" in Page(answer.text).text
    answer = guarded.get("/status.json")
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert guarded.get("/site.css").status_code == 200
    for wrong in ("Bearer", "Bearer ", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", "Bearer \xe9", f"Bearer {TOKEN}x"):
        assert guarded.get("/cases.json", headers={"authorization": wrong.encode("latin-1")}).status_code == 401
    assert guarded.get("/cases.json", headers=BEARER).status_code == 200
    assert guarded.get("/", headers={"cookie": "perftrack_session="}).status_code == 401
    assert guarded.get(f"/?token={TOKEN}").status_code == 401


def test_a_session_looks_and_accepts(guarded, red_store):
    assert guarded.post("/sign-in", data={"token": "wrong"}).status_code == 403
    cookie = signed_in(guarded).headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert TOKEN not in cookie
    assert guarded.get("/").status_code == 200
    answer = guarded.post("/ack", data={**SAID, **form_of(guarded)})
    assert (answer.status_code, answer.headers["location"]) == (303, "regressions?id=1")
    (row,) = rows(red_store, everything=True)
    assert (row.state, row.cases[0].reason, row.cases[0].author) == (State.ACKNOWLEDGED, "exact sums", "Ada")
    assert "acknowledged" in Page(guarded.get("/regressions?id=1").text).text
    assert "accepted" in Page(guarded.get("/").text).text


@pytest.mark.parametrize(
    ("changes", "headers", "code"),
    [
        ({"csrf": ""}, {}, 403),
        ({"csrf": "guessed"}, {}, 403),
        ({"csrf": "é"}, {}, 403),
        ({}, {"origin": "http://evil.example"}, 403),
        ({}, {"origin": "null"}, 403),
        ({}, {"sec-fetch-site": "cross-site"}, 403),
        ({}, {"sec-fetch-site": "same-site"}, 403),
        ({"id": "9"}, {}, 404),
        ({"id": "*"}, {}, 400),
        ({"reason": " "}, {}, 400),
        ({"author": ""}, {}, 400),
        ({"state": "fixed"}, {}, 400),
        ({"until": "tomorrow"}, {}, 404),
        ({"reason": "x" * 70_000}, {}, 413),
    ],
)
def test_what_is_not_accepted(guarded, red_store, changes, headers, code):
    signed_in(guarded)
    answer = guarded.post("/ack", data={**SAID, **form_of(guarded), **changes}, headers=headers)
    assert answer.status_code == code
    assert Page(answer.text).dangerous() == []
    assert state(red_store) is State.OPEN


def test_a_form_of_one_session_is_none_of_another(guarded, red_store):
    signed_in(guarded)
    form = form_of(guarded)
    guarded.cookies.clear()
    assert guarded.post("/ack", data={**SAID, **form}).status_code == 403
    signed_in(guarded)
    assert guarded.post("/ack", data={**SAID, **form}).status_code == 403
    assert guarded.post("/sign-out", data=form).status_code == 403
    assert guarded.post("/sign-out", data=form_of(guarded)).status_code == 303
    assert guarded.get("/").status_code == 401
    assert state(red_store) is State.OPEN


def test_a_program_accepts_with_the_token_itself(guarded, red_store):
    assert guarded.post("/ack", json=SAID, headers=BEARER).status_code == 400
    assert guarded.post("/ack", data=SAID, headers=BEARER).status_code == 303
    assert state(red_store) is State.ACKNOWLEDGED


@pytest.mark.parametrize("after", ["//evil.example", "http://evil.example", "run\r\nx: y", "../x", "é", ""])
def test_signing_in_leads_nowhere_else(guarded, after):
    answer = guarded.post("/sign-in", data={"token": TOKEN, "after": after})
    assert answer.headers["location"] == "./"


def test_the_token_is_never_logged(guarded, caplog, capfd):
    with caplog.at_level(logging.DEBUG):
        guarded.get("/cases.json", headers=BEARER)
        guarded.post("/sign-in", data={"token": TOKEN, "after": "no"})
        guarded.post("/ack", data={"id": "x"}, headers=BEARER)
    assert TOKEN not in caplog.text + "".join(capfd.readouterr())


def test_another_host_needs_a_token_that_cannot_be_guessed():
    access.check("127.0.0.1", None)
    access.check("192.0.2.1", TOKEN)
    for host, token, says in (
        ("192.0.2.1", None, "PERFTRACK_TOKEN"), ("perf.example", None, "lets others in"), ("::", None, "token"),
        ("localhost", "short", "16 or more"), ("localhost", "", "has 0 letters"),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=says):
            access.check(host, token)

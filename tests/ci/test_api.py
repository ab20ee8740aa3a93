"""Asking a code host: paging, retries, rate limits, and a token that never shows."""

import logging
import time
import traceback

import pytest
from ci_builders import ADA, TOKEN
from code_host import Fault, code_host

from perftrack.ci.api import Api, HostError
from perftrack.ci.host import host_of
from perftrack.errors import UsageError


@pytest.fixture
def api(host):
    return Api(f"{host.root}/gh", TOKEN, pause_s=0.01, patience_s=2.0)


def test_a_list_is_read_to_its_end(api, host):
    for number in range(5):
        host.add(str(number), ADA)
    assert [one["body"] for one in api.pages("x/comments?per_page=100")] == list("01234")
    assert len(host.asked) == 3


@pytest.mark.parametrize("status", [500, 502, 503, 504, 0])
def test_what_fails_in_passing_is_asked_again(api, host, status):
    host.add("a", ADA)
    host.faults.append(Fault("GET", "comments", status, times=3))
    assert [one["body"] for one in api.pages("x/comments")] == ["a"]
    assert len(host.asked) == 4


def test_what_goes_on_failing_is_said(api, host):
    host.faults.append(Fault("GET", "comments", 503, times=99))
    with pytest.raises(HostError, match=r"^GET /gh/x/comments at 127\.0\.0\.1:\d+: 503 something is wrong$"):
        list(api.pages("x/comments"))
    assert len(host.asked) == 4


def test_a_post_is_never_repeated_blindly(api, host):
    host.faults.append(Fault("POST", "comments", 500))
    with pytest.raises(HostError) as lost:
        api.post("x/comments", {"body": "a"})
    assert lost.value.uncertain
    assert len(host.asked) == 1


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (429, {"retry-after": "1"}),
        (403, {"retry-after": "1"}),
        (403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(time.time()))}),
        (429, {"ratelimit-remaining": "0"}),
        (429, {}),
    ],
)
def test_a_rate_limit_is_waited_for(api, host, status, headers):
    host.faults.append(Fault("POST", "comments", status, headers=headers))
    assert api.post("x/comments", {"body": "a"})["body"] == "a"


def test_a_long_rate_limit_is_not(api, host):
    reset = str(int(time.time()) + 3600)
    headers = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": reset}
    host.faults.append(Fault("GET", "comments", 403, headers=headers))
    with pytest.raises(HostError, match=r"the rate limit is used up until \d\d:\d\d UTC"):
        list(api.pages("x/comments"))
    assert len(host.asked) == 1


def test_a_refusal_is_not_asked_again(api, host):
    host.faults.append(Fault("GET", "comments", 404, times=9))
    with pytest.raises(HostError, match="404"):
        list(api.pages("x/comments"))
    assert len(host.asked) == 1


def test_an_answer_that_is_no_json(api, host):
    host.faults.append(Fault("GET", "user", 200, body="<html>a proxy's page</html>"))
    with pytest.raises(HostError, match="the answer is not JSON"):
        api.get("user")


def test_a_list_that_is_none_is_not_taken_for_an_empty_one(api, host):
    host.faults.append(Fault("GET", "comments", 200, body='{"message": "come back later"}'))
    with pytest.raises(HostError, match="the answer is no list"):
        list(api.pages("x/comments"))


@pytest.mark.parametrize("status", [301, 302, 307])
def test_no_redirect_takes_the_token_elsewhere(api, host, status):
    with code_host() as other:
        host.faults.append(Fault("GET", "user", status, headers={"location": f"{other.root}/user"}))
        with pytest.raises(HostError, match=str(status)):
            api.get("user")
        assert other.asked == []


def test_no_next_page_takes_the_token_elsewhere(api, host):
    for number in range(3):
        host.add(str(number), ADA)
    with code_host() as other:
        host.next_link = f"{other.root}/gh/x/comments?page=2"
        with pytest.raises(HostError, match="another host; that is not followed"):
            list(api.pages("x/comments"))
        assert other.asked == []


def test_nobody_answers():
    with code_host() as gone:
        root = gone.root
    with pytest.raises(HostError, match="no connection"):
        Api(root, TOKEN, pause_s=0.01).get("user")


def test_a_netrc_does_not_replace_the_token(host, tmp_path, monkeypatch):
    path = tmp_path / "netrc"
    path.write_text("machine 127.0.0.1 login eve password other\n")
    monkeypatch.setenv("NETRC", str(path))
    host.users[TOKEN] = ADA
    assert Api(f"{host.root}/gh", TOKEN).get("user")["login"] == "ada"
    assert Api(f"{host.root}/gl", TOKEN, header="PRIVATE-TOKEN", scheme="").get("user")["login"] == "ada"
    assert not any("other" in str(headers) or "Basic" in str(headers) for _, _, headers in host.asked)


@pytest.mark.parametrize("root", ["http://api.example", "ftp://api.example", "http://127.0.0.1.api.example"])
def test_a_token_is_not_sent_in_the_clear(root):
    with pytest.raises(UsageError, match="is not https"):
        Api(root, TOKEN)


@pytest.mark.parametrize("token", ["", "a b", f"{TOKEN}\nX-Evil: 1", "é", f"{TOKEN}\x00"])
def test_a_token_that_is_none_is_not_repeated(token):
    with pytest.raises(UsageError, match="the token is empty or has letters") as refused:
        Api("https://api.example", token)
    assert TOKEN not in str(refused.value)


@pytest.mark.parametrize(
    "fault",
    [
        Fault("GET", "user", 400, body=f'{{"message": "bad token {TOKEN}"}}'),
        Fault("GET", "user", 500, times=9, body=f'{{"error": "{TOKEN}"}}'),
        Fault("GET", "user", 400, body=TOKEN),
        Fault("GET", "user", 0, times=9),
        Fault("GET", "user", 302, headers={"location": f"http://127.0.0.1/{TOKEN}"}),
    ],
    ids=["echoed", "echoed by 5xx", "no json", "cut", "redirect"],
)
def test_a_token_is_in_no_message_no_log_and_no_repr(api, host, fault, caplog, github, gitlab):
    caplog.set_level(logging.DEBUG)
    host.faults.append(fault)
    with pytest.raises(HostError) as failed:
        api.get("user")
    shown = traceback.TracebackException.from_exception(failed.value, capture_locals=True)
    ours = [frame for frame in shown.stack if "perftrack/ci" in frame.filename]
    assert ours
    texts = [str(failed.value), repr(failed.value), repr(api), "".join(traceback.format_exception(failed.value))]
    texts += [repr(host_of(github())), repr(host_of(gitlab())), repr(host_of(github()).thread()), caplog.text]
    texts += [str(frame.locals) for frame in ours]
    assert not [text for text in texts if TOKEN in text]
    assert TOKEN not in str([path for _, path, _ in host.asked])

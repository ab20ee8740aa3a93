"""The dashboard's address: what Ray gets of it, and what is said."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from perftrack.errors import PoolError, UsageError
from perftrack.pool.jobs import Jobs, without_credentials

pytestmark = pytest.mark.fault


@pytest.fixture
def behind_a_door():
    """Port of a dashboard behind a proxy that asks for a name and a password; it takes no job."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self):
            allowed = self.headers["Authorization"] == "Basic YWRhOndvcmQ="
            body = json.dumps({"version": "4", "ray_version": "2", "ray_commit": "0", "session_name": "s"}).encode()
            self.send_response(200 if allowed else 401)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self):
            self.send_error(500, f"not at http://{'ada:word'}@here")

        do_PUT = do_POST  # noqa: N815 - as the server's class wants it

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def test_a_password_in_the_address_opens_the_door_and_is_not_said(behind_a_door, tmp_path):
    jobs = Jobs(f"http://ada:word@127.0.0.1:{behind_a_door}")
    assert jobs.address == f"http://127.0.0.1:{behind_a_door}"
    with pytest.raises(PoolError, match=f"the head at {jobs.address} does not take the job") as refused:
        jobs.submit(tmp_path, "true", "name")
    assert "word" not in str(refused.value)


def test_a_password_is_not_said_where_nobody_answers():
    with pytest.raises(PoolError, match=r"no head answers at http://127\.0\.0\.1:1: ") as refused:
        Jobs("http://ada:w@word@127.0.0.1:1")
    assert "ada" not in str(refused.value)
    assert "word" not in str(refused.value)


def test_a_password_that_is_no_part_of_an_address_is_refused_unsaid():
    with pytest.raises(UsageError, match=r"in the address of http://127\.0\.0\.1:1 must have") as refused:
        Jobs("http://ada:w/rd@127.0.0.1:1")
    assert "ada" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://ada:w@rd@head:8265/ray", "https://head:8265/ray"),
        ("https://head:8265", "https://head:8265"),
        ("ada:word@head:6379", "head:6379"),
        ("cannot reach 'https://ada:word@head', try again", "cannot reach 'https://head', try again"),
        ("mail to ada@example.org", "mail to ada@example.org"),
    ],
)
def test_only_credentials_are_left_out(text, shown):
    assert without_credentials(text) == shown

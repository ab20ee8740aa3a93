"""A code host's API over real HTTP on the loopback: as much of GitHub's and GitLab's as a comment needs.

It pages (two a page), knows what each token may do, limits rates, and fails as it is told to.
"""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

PAGE = 2


@dataclass
class Fault:
    """What happens to the next requests that match, in place of the answer or after the work was done."""

    method: str
    path: str
    status: int
    times: int = 1
    headers: dict = field(default_factory=dict)
    body: str = '{"message": "something is wrong"}'
    after: bool = False
    """The work is done, only its answer is lost."""


@dataclass
class State:
    """What the host knows."""

    root: str = ""
    comments: list = field(default_factory=list)
    pulls: list = field(default_factory=list)
    faults: list = field(default_factory=list)
    asked: list = field(default_factory=list)
    """(method, path with query, headers) of every request."""
    writers: dict = field(default_factory=dict)
    """Token → author."""
    readers: dict = field(default_factory=dict)
    users: dict = field(default_factory=dict)
    """Token → author, for tokens that belong to an account."""
    next_link: str = ""
    """In place of the real link to the next page."""

    def add(self, body, author):
        self.comments.append({"id": len(self.comments) + 1, "body": body, "user": author, "author": author})
        return self.comments[-1]

    def said(self):
        return [one["body"] for one in self.comments]

    def writes(self):
        return [(method, path) for method, path, _ in self.asked if method != "GET"]


class Handler(BaseHTTPRequestHandler):
    """One request."""

    state: State
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        """Tests ask `state.asked`."""

    def do_GET(self):
        self._answer("GET")

    def do_POST(self):
        self._answer("POST")

    def do_PATCH(self):
        self._answer("PATCH")

    def do_PUT(self):
        self._answer("PUT")

    def _answer(self, method):
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or "{}")
        self.state.asked.append((method, self.path, dict(self.headers)))
        path = unquote(urlsplit(self.path).path)
        for fault in self.state.faults:
            if fault.method == method and re.search(fault.path, path) and fault.times > 0:
                fault.times -= 1
                if fault.after:
                    self._work(method, path, body)
                if fault.status == 0:  # the connection breaks
                    self.close_connection = True
                    return
                self._send(fault.status, fault.body, fault.headers)
                return
        status, answer, headers = self._work(method, path, body)
        self._send(status, json.dumps(answer), headers)

    def _work(self, method, path, body):
        token = self.headers.get("private-token") or (self.headers.get("authorization") or "").removeprefix("Bearer ")
        state = self.state
        if token not in {**state.writers, **state.readers}:
            return 401, {"message": "Bad credentials"}, {}
        if path.endswith("/user") and token in state.users:
            return 200, state.users[token], {}
        if path.endswith("/user"):
            return 403, {"message": "Resource not accessible by integration"}, {}
        if method == "GET":
            query = parse_qs(urlsplit(self.path).query)
            pulls = [one for one in state.pulls if [one["label"]] == query.get("head")]
            return self._page(pulls if path.endswith("/pulls") else state.comments)
        if token not in state.writers:
            return 403, {"message": "Resource not accessible by integration"}, {}
        return self._write(method, path, body, state.writers[token])

    def _write(self, method, path, body, author):
        state = self.state
        if len(body["body"]) > (1_000_000 if "/gl/" in self.path else 65_536):
            return 422, {"message": "Body is too long"}, {}
        if method == "POST":
            return 201, state.add(body["body"], author), {}
        found = next(one for one in state.comments if str(one["id"]) == path.rpartition("/")[2])
        found["body"] = body["body"]
        return 200, found, {}

    def _page(self, items):
        query = parse_qs(urlsplit(self.path).query)
        number = int(query.get("page", ["1"])[0])
        headers = {"x-ratelimit-remaining": "4999"}
        if number * PAGE < len(items):
            base = self.path.partition("&page=")[0]
            after = self.state.next_link or f"{self.state.root}{base}&page={number + 1}"
            headers["link"] = f'<{self.state.root}{base}&page=1>; rel="first", <{after}>; rel="next"'
        return 200, items[(number - 1) * PAGE : number * PAGE], headers

    def _send(self, status, text, headers):
        data = text.encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def code_host() -> Iterator[State]:
    """A host that runs while inside; `state.root` is its address."""
    state = State()
    handler = type("Bound", (Handler,), {"state": state})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        state.root = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield state
        finally:
            server.shutdown()
            thread.join()

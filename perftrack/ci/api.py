"""A code host's HTTP API: one request at a time, with retries, and a token that never shows.

The token is in a header and nowhere else: not in a URL, a message, a log or the text of an exception. Redirects are not
followed, and pages are read from the API's own origin only, so that no other server ever gets it.
"""

import datetime as dt
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.auth import AuthBase

from perftrack import __version__
from perftrack.errors import InfrastructureError, UsageError
from perftrack.foreign import plain, shortened

_ATTEMPTS = 4
_PAGES = 100
_TIMEOUT_S = (10.0, 30.0)
"""To connect, and between two bytes."""

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class HostError(InfrastructureError):
    """The code host cannot be reached or says no. `status` is HTTP's, None where there was no answer."""

    def __init__(self, said: str, status: int | None = None, *, uncertain: bool = False) -> None:
        super().__init__(said)
        self.status = status
        self.uncertain = uncertain
        """What was asked for may have been done all the same."""


class _TokenHeader(AuthBase):
    """Sets the one header; as an `auth`, so that no .netrc is read in its place."""

    def __init__(self, header: str, value: str) -> None:
        self._header, self._value = header, value

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers[self._header] = self._value
        return request


@dataclass(frozen=True, slots=True)
class Api:
    """One API. `header` is the name of the token's header, `scheme` what stands before it there."""

    root: str
    token: str = field(repr=False)
    header: str = "Authorization"
    scheme: str = "Bearer "
    pause_s: float = 1.0
    """Before the first retry; doubled before each other one."""
    patience_s: float = 90.0
    """The longest wait for a rate limit."""

    def __post_init__(self) -> None:
        """UsageError where the token would be sent in the clear, or is none."""
        parts = urlsplit(self.root)
        if parts.scheme != "https" and parts.hostname not in _LOOPBACK:
            raise UsageError(f"the API at {self.root} is not https: a token is not sent there")
        if not self.token or not (self.token.isascii() and self.token.isprintable()) or " " in self.token:
            raise UsageError("the token is empty or has letters that no token has; set the secret again, on one line")

    def get(self, path: str) -> Any:
        """The JSON at `path`."""
        return self._ask("GET", self._url(path))[0]

    def pages(self, path: str) -> Iterator[Any]:
        """The items of a list, page by page, as the `Link` header says."""
        url: str | None = self._url(path)
        for _ in range(_PAGES):
            items, url = self._ask("GET", url)
            if not isinstance(items, list):
                raise HostError(f"GET {path.partition('?')[0]} at {self.root}: the answer is no list")
            yield from items
            if url is None:
                return
            if urlsplit(url)[:2] != urlsplit(self.root)[:2]:
                raise HostError(f"{self.root} continues its list on another host; that is not followed")
        raise HostError(f"GET {path.partition('?')[0]} at {self.root}: more than {_PAGES} pages")

    def post(self, path: str, body: Mapping[str, str]) -> Any:
        """Make something. A failure after which it may be there is `uncertain`: look before asking again."""
        return self._ask("POST", self._url(path), body)[0]

    def change(self, method: str, path: str, body: Mapping[str, str]) -> Any:
        """Change something, by PATCH or PUT; repeated without harm."""
        return self._ask(method, self._url(path), body)[0]

    def _url(self, path: str) -> str:
        return f"{self.root.rstrip('/')}/{path}"

    def _ask(self, method: str, url: str, body: Mapping[str, str] | None = None) -> tuple[Any, str | None]:
        """The answer's JSON, and the URL of the next page."""
        what = f"{method} {urlsplit(url).path} at {urlsplit(url).netloc.rpartition('@')[2]}"
        for attempt in range(_ATTEMPTS):
            last = attempt == _ATTEMPTS - 1
            wait_s = self.pause_s * 2**attempt
            try:
                answer = self._send(method, url, body)
            except requests.RequestException as error:
                if last or method == "POST":
                    # the exception holds the request with its headers
                    raise HostError(f"{what}: {_kind(error)}", uncertain=True) from None
                time.sleep(wait_s)
                continue
            if answer.status_code < 300:
                return _json(answer, what), answer.links.get("next", {}).get("url")
            limited_s = _rate_limit_s(answer)
            if limited_s is not None:
                if last or limited_s > self.patience_s:
                    raise HostError(f"{what}: the rate limit is used up{_until(limited_s)}", answer.status_code)
                time.sleep(max(limited_s, self.pause_s if limited_s else wait_s))
                continue
            if answer.status_code < 500 or last or method == "POST":
                uncertain = answer.status_code >= 500
                raise HostError(f"{what}: {self._said(answer)}", answer.status_code, uncertain=uncertain)
            time.sleep(wait_s)
        raise AssertionError("the last attempt returns or raises")

    def _send(self, method: str, url: str, body: Mapping[str, str] | None) -> requests.Response:
        with requests.Session() as session:
            session.auth = _TokenHeader(self.header, f"{self.scheme}{self.token}")
            return session.request(
                method,
                url,
                json=body,
                headers={"Accept": "application/json", "User-Agent": f"perftrack/{__version__}"},
                timeout=_TIMEOUT_S,
                allow_redirects=False,
            )

    def _said(self, answer: requests.Response) -> str:
        """The host's own words, without the token should it repeat that."""
        try:
            document = answer.json()
        except requests.JSONDecodeError:
            document = None
        message = document.get("message") or document.get("error") if isinstance(document, dict) else None
        said = shortened(plain(str(message or answer.reason or "no reason given")), 200).replace(self.token, "…")
        return f"{answer.status_code} {said}"


def _json(answer: requests.Response, what: str) -> Any:
    try:
        return answer.json()
    except requests.JSONDecodeError:
        raise HostError(f"{what}: the answer is not JSON", answer.status_code, uncertain=True) from None


def _rate_limit_s(answer: requests.Response) -> float | None:
    """Seconds to wait; None where it is no rate limit. A 403 is one only with its headers."""
    if answer.status_code not in (403, 429):
        return None
    after = answer.headers.get("retry-after", "")
    if after.isdecimal():
        return float(after)
    if answer.headers.get("x-ratelimit-remaining", answer.headers.get("ratelimit-remaining")) == "0":
        reset = answer.headers.get("x-ratelimit-reset", answer.headers.get("ratelimit-reset", ""))
        return max(0.0, float(reset) - time.time()) if reset.isdecimal() else 0.0
    return 0.0 if answer.status_code == 429 else None


def _until(wait_s: float) -> str:
    if not wait_s:
        return ""
    end = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=wait_s)
    return f" until {end:%H:%M} UTC"


def _kind(error: requests.RequestException) -> str:
    if isinstance(error, requests.Timeout):
        return "no answer in time"
    if isinstance(error, requests.exceptions.SSLError):
        return "its certificate is not trusted here"
    if isinstance(error, requests.exceptions.ProxyError):
        return "the proxy does not answer"
    return "no connection"

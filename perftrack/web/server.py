"""The site as an application that answers requests (Starlette)."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from perftrack.errors import IncompleteError, InfrastructureError, PerftrackError, UsageError
from perftrack.foreign import plain
from perftrack.judge.life import State
from perftrack.pipeline.life import ack
from perftrack.store import Store
from perftrack.web import site
from perftrack.web.access import COOKIE, LOOPBACK, Access
from perftrack.web.links import ServedLinks
from perftrack.web.page import BadQuestionError, Query, as_csv, as_json

HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "private, no-cache",
}
"""Of every answer."""

_AT_ONCE = 4
"""Pages that are made at a time: more would only share the processor, and hold as many rows in memory."""

_MOST_FORM_BYTES = 2**16
_TITLES = {400: "That cannot be asked", 403: "Not allowed", 404: "Not here", 405: "Not allowed", 413: "Too large"}
_MARKS = (State.ACKNOWLEDGED, State.INVALID, State.INFRA)

_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]
_App = Callable[[_Message, _Receive, _Send], Awaitable[None]]


def application(store: Store, *, token: str | None = None, start: Path | None = None) -> _App:
    """The site over `store`. Without a `token` it only reads, and answers only to names of this machine.

    `start` is where regressions are acknowledged from, as on the command line.
    """
    web = _Web(store, Access(token), start or Path.cwd())
    routes = [
        Route("/", web.answer),
        Route("/site.css", _style),
        Route("/sign-in", web.sign_in, methods=["GET", "POST"]),
        Route("/sign-out", web.sign_out, methods=["POST"]),
        Route("/ack", web.acknowledge, methods=["POST"]),
        Route("/{page}", web.answer),
    ]
    errors = {HTTPException: _http_error, PerftrackError: web.our_error}
    return _Guarded(Starlette(routes=routes, exception_handlers=errors), web.access)  # pyright: ignore[reportArgumentType]


@dataclass(frozen=True)
class _Guarded:
    """Around the application: the headers, and which hosts are answered."""

    app: _App
    access: Access

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        async def send_with_headers(message: _Message) -> None:
            if message["type"] == "http.response.start":
                given = {name for name, _ in message.get("headers", ())}
                more = [
                    (name.encode(), value.encode()) for name, value in HEADERS.items() if name.encode() not in given
                ]
                message["headers"] = [*message.get("headers", ()), *more]
            await send(message)

        if scope["type"] == "http" and not self.access.guarded and not _is_loopback(Request(scope)):
            # a page of another name that points here must not read what only this machine may
            sentence = "without a token only names of this machine are answered, such as localhost"
            await _said(Request(scope), 400, sentence)(scope, receive, send_with_headers)
            return
        await self.app(scope, receive, send_with_headers)


def _is_loopback(request: Request) -> bool:
    try:
        return urlsplit(f"//{request.headers.get('host', '')}").hostname in LOOPBACK
    except ValueError:
        return False


@dataclass(frozen=True)
class _Web:
    store: Store
    access: Access
    start: Path
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    async def answer(self, request: Request) -> Response:
        """A page, or its JSON or CSV."""
        name, _, kind = request.path_params.get("page", "status").partition(".")
        if name not in site.PAGES or kind not in ("", "json", "csv"):
            raise HTTPException(404)
        if not self._may_look(request):
            return self._asked_to_sign_in(request, kind)
        # readers wait for their turn here, where no time limit of the database's connections turns them away
        async with self.turns:
            return await run_in_threadpool(self._made, request, name, kind)

    def _made(self, request: Request, name: str, kind: str) -> Response:
        values = dict(request.query_params)
        page = site.PAGES[name](self.store, Query(values))
        if kind == "json":
            return Response(as_json(page), media_type="application/json")
        if kind == "csv":
            return Response(as_csv(page), media_type="text/csv; charset=utf-8")
        session = request.cookies.get(COOKIE, "")
        shown = site.html(page, name, ServedLinks(name, values), csrf=self.access.csrf(session))
        return Response(shown, media_type="text/html")

    def _may_look(self, request: Request) -> bool:
        return not self.access.guarded or self._has_token(request) or bool(self._csrf(request))

    def _has_token(self, request: Request) -> bool:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and self.access.knows(token.strip())

    def _csrf(self, request: Request) -> str:
        return self.access.csrf(request.cookies.get(COOKIE, ""))

    def _asked_to_sign_in(self, request: Request, kind: str) -> Response:
        if kind:
            answer = _said(request, 401, "send the token as `Authorization: Bearer TOKEN`")
            answer.headers["www-authenticate"] = "Bearer"
            return answer
        after = request.url.path.lstrip("/") + (f"?{request.url.query}" if request.url.query else "")
        return _sign_in_form("This store is shown to those who have its token.", after, 401)

    async def sign_in(self, request: Request) -> Response:
        """Open a session for whoever has the token."""
        if not self.access.guarded:
            raise HTTPException(404, "there is nothing to sign in to: this server was started without a token")
        if request.method in ("GET", "HEAD"):
            return _sign_in_form("With the token you may look, and accept regressions.", "", 200)
        form = await _form(request)
        if not self.access.knows(form.get("token", "")):
            return _sign_in_form("That is not the token.", form.get("after", ""), 403)
        answer = RedirectResponse(_inside(form.get("after", "")), status_code=303)
        secure = request.url.scheme == "https"
        session = self.access.open_session()
        answer.set_cookie(COOKIE, session, httponly=True, samesite="lax", secure=secure)
        return answer

    async def sign_out(self, request: Request) -> Response:
        """Close the session."""
        session = request.cookies.get(COOKIE, "")
        if not self.access.comes_from_here(session, (await _form(request)).get("csrf", "")):
            raise HTTPException(403, "this form was not made for this session; go back and load its page again")
        self.access.close_session(session)
        answer = RedirectResponse("sign-in", status_code=303)
        answer.delete_cookie(COOKIE)
        return answer

    async def our_error(self, request: Request, error: Exception) -> Response:
        """What cannot be asked is 400, what is not stored 404, a database that does not answer 503."""
        # where the database lies is nobody's business but its owner's
        sentence = str(error).replace(self.store.label, "the store")
        if isinstance(error, BadQuestionError):
            return _said(request, 400, sentence)
        if isinstance(error, UsageError | IncompleteError):
            return _said(request, 404, sentence)
        return _said(request, 503 if isinstance(error, InfrastructureError) else 500, sentence)

    async def acknowledge(self, request: Request) -> Response:
        """Mark a regression; only with the token, and only from a form of this session or with the token itself."""
        form = await _form(request)
        session = request.cookies.get(COOKIE, "")
        if not self.access.guarded:
            raise HTTPException(403, "this server only reads: start it with a token to accept regressions")
        if not self._has_token(request) and not self.access.comes_from_here(session, form.get("csrf", "")):
            raise HTTPException(403, "sign in, and accept the regression from its page")
        number = form.get("id", "")
        await run_in_threadpool(self._mark, number, form)
        return RedirectResponse(f"regressions?id={number}", status_code=303)

    def _mark(self, number: str, form: dict[str, str]) -> None:
        said = Query(form)
        if not (number.isascii() and number.isdecimal() and len(number) < 10):
            raise BadQuestionError("id is no number of a regression")
        if not said.text("reason").strip() or not said.text("author").strip():
            raise BadQuestionError("reason or author is empty: say why, and who you are, for those who read it later")
        state = State(said.choice("state", [one.value for one in _MARKS]))
        ack(
            self.store,
            number,
            reason=said.text("reason"),
            state=state,
            until=said.text("until"),
            start=self.start,
            author=said.text("author").strip(),
        )


async def _form(request: Request) -> dict[str, str]:
    """The values of an urlencoded form. 403 for one that another site sent, as far as the browser says so."""
    site_of = request.headers.get("sec-fetch-site", "same-origin")
    origin = request.headers.get("origin")
    if site_of not in ("same-origin", "none") or (origin and urlsplit(origin).netloc != request.headers.get("host")):
        raise HTTPException(403, "this form came from another site")
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
        raise HTTPException(400, "send an urlencoded form")
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > _MOST_FORM_BYTES:
            raise HTTPException(413, f"a form has at most {_MOST_FORM_BYTES >> 10} KiB")
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, errors="strict"))
    except ValueError:
        raise HTTPException(400, "the form is not UTF-8") from None


def _inside(after: str) -> str:
    """Where to go after signing in: a page of this site, whatever the form said."""
    name = after.partition("?")[0]
    return f"./{after}" if name in site.PAGES and after.isascii() and after.isprintable() else "./"


def _sign_in_form(sentence: str, after: str, code: int) -> Response:
    return Response(site.sign_in(sentence, ServedLinks("", {}), after), code, media_type="text/html")


def _said(request: Request, code: int, sentence: str) -> Response:
    """One sentence, in the form that was asked for."""
    if request.url.path.endswith(".json"):
        return JSONResponse({"error": plain(sentence)}, code)
    if request.url.path.endswith(".csv"):
        return Response(plain(sentence) + "\n", code, media_type="text/plain")
    title = _TITLES.get(code, "It did not work")
    return Response(site.message(title, sentence, ServedLinks("", {})), code, media_type="text/html")


async def _style(request: Request) -> Response:  # noqa: ARG001 - it is one sheet whoever asks
    return Response(site.style(), media_type="text/css")


async def _http_error(request: Request, error: Exception) -> Response:
    known = error if isinstance(error, HTTPException) else HTTPException(500)
    sentence = known.detail
    if sentence == HTTPStatus(known.status_code).phrase:
        # Starlette's own, or no words were given
        sentence = f"there is no page {request.url.path!r}" if known.status_code == 404 else f"{sentence}."
    answer = _said(request, known.status_code, sentence)
    for name, value in (known.headers or {}).items():
        answer.headers[name] = value
    return answer

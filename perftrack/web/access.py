"""Who may look and who may write: a token, the sessions that it opened, and from which pages a change may come."""

import hmac
import secrets
from collections import OrderedDict

from perftrack.errors import UsageError

SHORTEST_TOKEN = 16
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
COOKIE = "perftrack_session"

_MOST_SESSIONS = 1000


class Access:
    """Without a token everybody who reaches the server may look, and nobody may write.

    With one, whoever has it may do both. Sessions live in memory and end with the server; the oldest gives way.
    """

    def __init__(self, token: str | None) -> None:
        self._token = None if token is None else token.encode()
        self._sessions: OrderedDict[str, str] = OrderedDict()

    @property
    def guarded(self) -> bool:
        """Whether there is a token."""
        return self._token is not None

    def knows(self, token: str) -> bool:
        """Whether it is the token, in a time that does not tell how much of it is right."""
        return self._token is not None and hmac.compare_digest(self._token, token.encode(errors="replace"))

    def open_session(self) -> str:
        """A new session, for a cookie."""
        session = secrets.token_urlsafe(32)
        self._sessions[session] = secrets.token_urlsafe(32)
        while len(self._sessions) > _MOST_SESSIONS:
            self._sessions.popitem(last=False)
        return session

    def close_session(self, session: str) -> None:
        """Forget it."""
        self._sessions.pop(session, None)

    def csrf(self, session: str) -> str:
        """What a form of this session must bring along; empty where there is no such session."""
        return self._sessions.get(session, "")

    def comes_from_here(self, session: str, csrf: str) -> bool:
        """Whether a form was made for this session."""
        expected = self.csrf(session)
        return bool(expected) and hmac.compare_digest(expected.encode(), csrf.encode(errors="replace"))


def check(host: str, token: str | None) -> None:
    """UsageError where the server would be open to others without a token, or its token can be guessed."""
    if token is None and host not in LOOPBACK:
        raise UsageError(
            f"--host {host} lets others in: give a token of {SHORTEST_TOKEN} letters or more in PERFTRACK_TOKEN, "
            "or leave --host out"
        )
    if token is not None and len(token) < SHORTEST_TOKEN:
        raise UsageError(
            f"the token has {len(token)} letters: give {SHORTEST_TOKEN} or more, such as of `openssl rand -hex 16`"
        )

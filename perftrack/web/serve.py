"""`perftrack serve`: the site on a port of this machine."""

import gc
import importlib.util
import logging
import socket
from collections.abc import Callable
from contextlib import suppress

from perftrack.errors import UsageError
from perftrack.store import Store
from perftrack.web import access

NEEDED = ("starlette", "uvicorn")
"""Packages of the extra `web`."""


def check_installed() -> None:
    """UsageError with the command to type where the extra is missing."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(
            f"serve needs {' and '.join(missing)}: pip install 'perftrack[web]'; `perftrack publish` does not"
        )


def serve(store: Store, *, host: str, port: int, token: str | None, say: Callable[[str], None]) -> None:
    """Answer until interrupted. UsageError where the host or the port cannot be had, or a token is missing."""
    import uvicorn  # noqa: PLC0415 - an extra

    from perftrack.web.server import application  # noqa: PLC0415 - an extra

    access.check(host, token)
    with listening(host, port) as listener:
        shown = f"[{host}]" if ":" in host else host
        how = "asks for the token" if token else "only reads"
        say(f"http://{shown}:{listener.getsockname()[1]}/ {how}, Ctrl-C ends it")
        config = uvicorn.Config(
            application(store, token=token),
            log_level=logging.WARNING,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            lifespan="off",
        )
        collect_seldom()
        # to be interrupted is how it ends
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listener])


def collect_seldom() -> None:
    """Look for cycles after fifty thousand new objects: a page makes as many, hardly any in cycles.

    By default Python looks a hundred times as often, which took a third of the time of a page of 4,000 rows.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def listening(host: str, port: int) -> socket.socket:
    """A socket that waits there; UsageError where it cannot."""
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise UsageError(f"--host {host}: {error.strerror or error}") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(where)
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise UsageError(
            f"--host {host} --port {port}: {error.strerror or error}; give another, 0 takes any"
        ) from error
    return listener

"""Ports for servers that tests start."""

import secrets
import socket
from contextlib import suppress


def free_port() -> int:
    """A port that is free, and not one of those that the system gives to whoever connects somewhere."""
    while True:
        port = secrets.choice(range(20_000, 32_000))
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port

"""A connection that can be cut: a TCP proxy on loopback."""

import contextlib
import socket
import threading


class Proxy:
    """Passes on what comes to its `port` while it is open; a context manager."""

    def __init__(self, target_port):
        self._target = target_port
        self._pairs = []
        self._server = None
        self.port = 0
        self.open()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.cut()

    def open(self):
        """Take connections, on the same port as before."""
        self._server = socket.create_server(("127.0.0.1", self.port))
        self.port = self._server.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._server,), daemon=True).start()

    def cut(self):
        """End all connections and take none."""
        for each in (self._server, *self._pairs):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        self._pairs.clear()

    def _accept(self, server):
        with contextlib.suppress(OSError):
            while True:
                near, _ = server.accept()
                far = socket.create_connection(("127.0.0.1", self._target))
                self._pairs += [near, far]
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=_copy, args=(one, other), daemon=True).start()


def _copy(source, sink):
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)

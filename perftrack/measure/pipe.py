"""The private pipe of a child process: messages that nothing the tracked code prints can get between."""

import os
import sys
from typing import Any

import msgspec

_encoder = msgspec.json.Encoder()


class PrivatePipe:
    """JSON lines to the parent; made once, before any tracked code is imported."""

    def __init__(self) -> None:
        sys.stdout.flush()
        self._fd = os.dup(1)  # not inheritable, so grandchildren cannot hold it open
        os.dup2(2, 1)

    def send(self, message: Any) -> None:
        """Write one message as one line, whole."""
        left = memoryview(_encoder.encode(message) + b"\n")
        while left:
            left = left[os.write(self._fd, left) :]

"""The connection of one process to the gputune that started it: lines of JSON in both directions."""

import json
import os
import socket
from typing import Any


class Lost(ConnectionError):
    """gputune has gone away."""


class Channel:
    """A connection for this process alone: a fork that inherits it neither sends nor receives."""

    def __init__(self, path: str) -> None:
        """Raises OSError where nobody listens."""
        self._pid = os.getpid()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.connect(path)
        self._lines = self._socket.makefile("rb")

    @property
    def ours(self) -> bool:
        return os.getpid() == self._pid

    def send(self, **message: Any) -> None:
        """Raises Lost."""
        try:
            self._socket.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            raise Lost(str(error)) from None

    def receive(self) -> dict[str, Any]:
        """Wait for the next order. Raises Lost."""
        try:
            line = self._lines.readline()
        except OSError as error:
            raise Lost(str(error)) from None
        if not line.endswith(b"\n"):
            raise Lost("gputune ended")
        order: dict[str, Any] = json.loads(line)
        return order

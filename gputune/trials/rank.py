"""The connection to one rank of the user's program."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from gputune.host.child import JsonLines

HELLO_SECONDS = 10.0
"""How long a process that has connected may take to say who it is."""


class Rank(JsonLines[dict[str, Any]]):
    def __init__(self, connection: socket.socket) -> None:
        super().__init__(connection.fileno(), connection.fileno())
        self.connection = connection
        self.pid = self.number = 0
        self.answers: list[dict[str, Any]] = []
        """Messages of this rank that nobody has taken yet."""

    def hello(self) -> dict[str, Any]:
        """Wait for the rank's first message, which tells its number and process. Raises OSError where none comes."""
        said: dict[str, Any] = self.receive(HELLO_SECONDS)["hello"]
        self.number, self.pid = said["rank"], said["pid"]
        return said

    def hear(self) -> Iterator[dict[str, Any]]:
        """Wait for something from the rank, and yield its messages. Raises OSError where its process has ended."""
        self.take()
        yield from self.arrived()

    def wait_for_its_end(self, seconds: float) -> None:
        """Wait until the rank's process has ended and so closed the connection, or was silent for so many seconds."""
        with suppress(OSError):
            while True:
                self.receive(seconds)

    @property
    def has_ended(self) -> bool:  # type: ignore[override]
        """Whether the rank's process has ended, and all that it said has been heard."""
        try:
            return not self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True

    @property
    def is_stopped(self) -> bool:
        import psutil

        with suppress(psutil.Error):
            return bool(psutil.Process(self.pid).status() == psutil.STATUS_STOPPED)
        return False

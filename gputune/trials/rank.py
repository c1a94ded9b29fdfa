"""The connection to one rank of the user's program: lines of JSON in both directions."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

HELLO_SECONDS = 10.0
"""How long a process that has connected may take to say who it is."""


@dataclass(eq=False, slots=True)
class Rank:
    connection: socket.socket
    pid: int = 0
    number: int = 0
    answers: list[dict[str, Any]] = field(default_factory=list)
    """Messages of this rank that nobody has taken yet."""
    _waiting: bytes = b""

    def hello(self) -> dict[str, Any]:
        """Wait for the rank's first message, which tells its number and process. Raises OSError where none comes."""
        self.connection.settimeout(HELLO_SECONDS)
        while b"\n" not in self._waiting:
            self._receive(1 << 16)
        self.connection.settimeout(None)
        line, _, self._waiting = self._waiting.partition(b"\n")
        said: dict[str, Any] = json.loads(line)["hello"]
        self.number, self.pid = said["rank"], said["pid"]
        return said

    def tell(self, order: Mapping[str, Any]) -> None:
        """Send the rank an order. Raises OSError where its process has ended."""
        self.connection.sendall(json.dumps(order).encode() + b"\n")

    def hear(self) -> Iterator[dict[str, Any]]:
        """Wait for something from the rank, and yield its messages. Raises OSError where its process has ended."""
        self._receive(1 << 20)
        yield from self.messages()

    def messages(self) -> Iterator[dict[str, Any]]:
        """Yield the messages of the rank that have arrived already."""
        while b"\n" in self._waiting:
            line, _, self._waiting = self._waiting.partition(b"\n")
            yield json.loads(line)

    def _receive(self, most: int) -> None:
        chunk = self.connection.recv(most)
        if not chunk:
            raise ConnectionResetError("it has closed the connection")
        self._waiting += chunk

    def wait_for_its_end(self, seconds: float) -> None:
        """Wait until the rank's process has ended and so closed the connection, or was silent for so many seconds."""
        self.connection.settimeout(seconds)
        with suppress(OSError):
            while self.connection.recv(4096):
                pass

    @property
    def has_ended(self) -> bool:
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

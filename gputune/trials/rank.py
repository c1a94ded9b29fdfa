"""The connection to one rank of a program that is being tuned."""

import socket
from collections.abc import Iterator
from contextlib import suppress

from gputune.host.child import JsonLines
from gputune.live.orders import Hello, Message
from gputune.resources.messages import decode
from gputune.strict_types import convert


class Rank(JsonLines[Message]):
    longest_line = 1 << 30  # the losses of a million steps are 20 MiB

    def __init__(self, connection: socket.socket) -> None:
        super().__init__(connection.fileno(), connection.fileno())
        self.connection = connection
        self.hello: Hello
        self.answers: list[Message] = []
        """Messages of this rank that nobody has taken yet."""
        self.steps = 0
        """How many steps it made in all, once it has said that it ends."""

    def decode(self, line: bytes) -> Message:
        message: Message = decode(line, Message, convert)
        return message

    def hear(self) -> Iterator[Message]:
        """Wait for messages of the rank. Raises OSError if its process has ended; ValueError or OverflowError."""
        self.take()
        yield from self.arrived()

    def wait_for_its_end(self, seconds: float) -> None:
        """Wait until the rank's process has ended and so closed the connection, or was silent for so many seconds."""
        with suppress(OSError, ValueError, OverflowError):
            while True:
                self.receive(seconds)

    @property
    def has_ended(self) -> bool:
        try:
            return not self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True

"""Stdout and stderr, so that what is printed arrives whole and readable, whatever was inherited."""

import io
import os
import sys
from collections.abc import Sequence
from typing import Any

from gputune.host.stderr import no_sizes

_HAND_ON = ("apply", "tune")
"""The verbs whose command gets the environment as it is."""


def prepare(words: Sequence[str]) -> None:
    """Make both streams wait for a slow reader, and write `?` for what their encoding lacks. Where `words`, gputune's
    arguments, run no command, remove the variables with which typer cannot print its help.
    """
    sys.stdout, sys.stderr = _patient(sys.stdout), _patient(sys.stderr)
    if not _runs_a_command(words):
        for name in no_sizes(os.environ):
            del os.environ[name]


def _runs_a_command(words: Sequence[str]) -> bool:
    ours = words[: words.index("--")] if "--" in words else words
    verb = next((word for word in words if not word.startswith("-")), "")
    return verb in _HAND_ON and not {"--help", "-h"}.intersection(ours)


class _Patient(io.FileIO):
    """Waits where another process has made the pipe or terminal non-blocking, as Node.js and ssh do: Python's own
    stream raises there, and loses what it held.
    """

    def write(self, data: Any) -> int:
        while (count := super().write(data)) is None:
            import select

            poll = select.poll()
            poll.register(self, select.POLLOUT)
            poll.poll()
        return count


def _patient(stream: Any) -> Any:
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    file = getattr(stream.buffer, "raw", stream.buffer)  # under PYTHONUNBUFFERED there is no buffer
    if type(file) is not io.FileIO:
        stream.reconfigure(errors="replace")
        return stream
    stream.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(_Patient(file.fileno(), "wb", closefd=False)),
        encoding=stream.encoding,
        errors="replace",
        line_buffering=stream.line_buffering or stream.write_through,
    )

"""Keeps what the program's code says out of its output, when it runs once more than the program has it run."""

import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any

from . import observer
from .patches import replaced


@contextmanager
def unheard() -> Iterator[None]:
    """Drop what this thread prints and logs meanwhile, and what threads of torch's do that run its backward pass. Nor
    do followers hear of this thread. The program's other threads go on as before.
    """
    running = (one for one in threading.enumerate() if type(one).__name__ != "_DummyThread")
    others = {one.ident for one in running} - {threading.get_ident()}

    def is_heard() -> bool:
        return threading.get_ident() in others

    original = logging.Logger.handle

    def handle(self: Any, record: Any) -> None:
        if is_heard():
            original(self, record)

    with (
        observer.silence(),
        redirect_stdout(_Stream(sys.stdout, is_heard)),
        redirect_stderr(_Stream(sys.stderr, is_heard)),
    ):
        undo = replaced(logging.Logger, "handle", handle)
        try:
            yield
        finally:
            undo()


class _Stream:
    """A stream without what is not to be heard."""

    def __init__(self, stream: Any, is_heard: Callable[[], bool]) -> None:
        self._stream, self._is_heard = stream, is_heard

    def write(self, text: str) -> int:
        return int(self._stream.write(text)) if self._is_heard() else len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

"""Keeps what the program's code says out of its output, when it runs once more than the program has it run."""

import io
import logging
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from . import observer
from .patches import Undo, replaced, together

_lock = threading.Lock()
_silent: list[None] = []
"""One for each thread that is not to be heard."""
_undo: list[Undo] = []


@contextmanager
def unheard() -> Iterator[None]:
    """Drop all that this thread prints and logs meanwhile, and all that torch's own threads do: a backward pass on a
    GPU runs in one. No follower is told of this thread's calls and steps. Other threads of the program are heard
    as before.
    """
    with observer.silence():
        with _lock:
            _silent.append(None)
            if len(_silent) == 1:
                _undo.append(_replaced())
        try:
            yield
        finally:
            with _lock:
                _silent.pop()
                if not _silent:
                    _undo.pop()()


def _is_heard() -> bool:
    import torch

    is_torchs = (
        isinstance(threading.current_thread(), threading._DummyThread) and torch._C._current_graph_task_id() != -1
    )
    return not (is_torchs or observer.is_silent())


def _replaced() -> Undo:
    original = logging.Logger.callHandlers

    def call_handlers(self: Any, record: Any) -> None:
        if _is_heard():
            original(self, record)

    names = [name for name in ("stdout", "stderr") if getattr(sys, name) is not None]
    streams = [replaced(sys, name, _Stream(getattr(sys, name))) for name in names]
    return together([*streams, replaced(logging.Logger, "callHandlers", call_handlers)])


class _Stream:
    """A stream without what is not to be heard."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> Any:
        return self._stream.write(text) if not _silent or _is_heard() else len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    @property
    def buffer(self) -> Any:
        buffer = self._stream.buffer
        return buffer if not _silent or _is_heard() else io.BytesIO()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

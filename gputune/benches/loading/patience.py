"""A limit on how long code that is not gputune's may take in this process."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class OutOfPatience(BaseException):
    """It took too long. No Exception, so that no handler of the code that is waited for takes it for one of its own."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise OutOfPatience in the block when it takes longer: whatever gives the interpreter a chance, as sleeping and reading do.

    Only a main thread is interrupted; elsewhere nothing limits it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(number: int, frame: object) -> None:
        raise OutOfPatience

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)  # and again: a bare except may have caught the first
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

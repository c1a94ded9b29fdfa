"""A limit on how long the user's code may take in this process."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class OutOfPatience(BaseException):
    """The limit was exceeded. Not an Exception, so that the user's own handlers do not catch it."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise OutOfPatience in the block when it takes longer, as soon as it returns to the interpreter or sleeps.

    Only a main thread can be interrupted; elsewhere there is no limit.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(number: int, frame: object) -> None:
        raise OutOfPatience

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)  # repeated, since a bare except may have caught the first
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

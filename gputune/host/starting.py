"""Starting a process and hearing from it, whatever descriptors and signals this one has."""

import fcntl
import math
import os
import select
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals with which a user, a scheduler or a terminal ends a program."""


def isolated_python() -> list[str]:
    """The words that start this Python without a user's modules and site hooks."""
    # -I would hide PYTHONHOME, without which a Python that was moved finds no standard library.
    return [sys.executable, *(["-P", "-s"] if os.environ.get("PYTHONHOME") else ["-I"]), "-S"]


def pipe() -> tuple[int, int]:
    """A pipe whose ends are none of a child's standard streams, also where this process was started without these.

    Raises OSError where no more files can be opened.
    """
    reader, writer = os.pipe()
    try:
        reader = lifted(reader)
    except OSError:
        os.close(writer)
        raise
    try:
        return reader, lifted(writer)
    except OSError:
        os.close(reader)
        raise


def lifted(descriptor: int) -> int:
    """The descriptor, or another one of 3 or above in its place. Raises OSError, and closes it then."""
    if descriptor > 2:
        return descriptor
    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    finally:
        os.close(descriptor)


def fill_standard_streams() -> None:
    """Open /dev/null in the place of each standard stream that this process was started without, so that no file or
    pipe of its own takes the place and is written to, or is lost to a child. A program that is executed here does not
    inherit that: it finds the stream closed, as it would have.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            with suppress(OSError):  # it takes the lowest number that is free, which is this one
                os.open(os.devnull, os.O_RDWR)


def is_readable(descriptor: int, seconds: float) -> bool:
    """Whether there is something to read, or the end, within so long. Unlike select(2) it takes any descriptor."""
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    return bool(waiting.poll(max(0, math.ceil(seconds * 1000))))


@contextmanager
def signals_held() -> Iterator[None]:
    """Let Python's handlers of the signals that end a program wait until the end: one that raises in the middle of
    Popen would leave a child that nobody knows of.
    """
    if threading.current_thread() is not threading.main_thread():  # only that one runs handlers
        yield
        return
    came: list[int] = []
    handlers = {number: signal.getsignal(number) for number in ENDING}
    held = {number: handler for number, handler in handlers.items() if callable(handler)}
    try:
        for number in held:
            signal.signal(number, lambda number, frame: came.append(number))
        yield
    finally:
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, held)  # one that came now could end this half way
        try:
            for number, handler in held.items():
                signal.signal(number, handler)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for one in came:
            signal.raise_signal(one)

"""A lock that at most one process of this node holds, and that its holder's death sets free."""

from __future__ import annotations

import fcntl
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

POLL_SECONDS = 0.1

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""One for each start of a kernel, and the same in all its containers, whose host names differ."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What came of waiting for a lock."""

    held: bool
    """It could be had before the deadline."""
    after_another: bool
    """Meanwhile another holder came to its end by itself, and was not killed."""


@contextmanager
def node_lock(
    folder: Path, name: str, deadline_seconds: float, waiting: Callable[[], None] = lambda: None
) -> Iterator[Turn]:
    """Hold `name`'s lock; `waiting` is called once where it is not free at once.

    The file's name carries the node's: a home folder may be shared by many nodes. A holder that comes to its end removes the file,
    whose time tells those who wait for it that it did; they must not do again what it did, since a newcomer has another file.
    Raises OSError where the folder cannot be written or bears no locks.
    """
    path = folder / f"{name}-{_node()}.lock"
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    try:
        before = os.fstat(descriptor).st_mtime_ns
        held = _taken(descriptor, time.monotonic() + deadline_seconds, waiting)
        try:
            yield Turn(held, os.fstat(descriptor).st_mtime_ns != before)
        finally:
            if held:
                os.utime(descriptor)
                _remove(path, descriptor)
    finally:
        os.close(descriptor)  # which sets it free


def _remove(path: Path, descriptor: int) -> None:
    """Unless it is a newcomer's by now."""
    with suppress(OSError):
        if path.stat().st_ino == os.fstat(descriptor).st_ino:
            path.unlink()


def _node() -> str:
    """What tells this node from others and is the same in all its containers; where that cannot be read, the host's name."""
    try:
        told = BOOT_ID.read_text().strip()
    except OSError:
        told = socket.gethostname()
    return "".join(char if char.isalnum() or char in "-." else "_" for char in told)


def _taken(descriptor: int, deadline: float, waiting: Callable[[], None]) -> bool:
    said = False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            if not said:
                waiting()
            said = True
            time.sleep(POLL_SECONDS)
        else:
            return True

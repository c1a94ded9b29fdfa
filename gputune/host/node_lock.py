"""A lock that at most one process of a node holds, and that the kernel releases when its holder dies."""

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
"""A kernel has a new one at each boot, and shows the same one in all its containers, whose host names differ."""


@dataclass(frozen=True, slots=True)
class Turn:
    """The outcome of waiting for a lock."""

    held: bool
    """The lock was acquired before the deadline."""
    after_another: bool
    """Another holder finished its work during the wait, rather than being killed."""


@contextmanager
def node_lock(
    folder: Path, name: str, deadline_seconds: float, waiting: Callable[[], None] = lambda: None
) -> Iterator[Turn]:
    """Hold `name`'s lock in the block. `waiting` is called once, if the lock is not free immediately.

    The file's name includes the node's, since a home folder may be shared by many nodes. A holder that finishes touches
    the file, by which those who wait learn that the work is done, and removes it, so that a later process starts a new
    file. Raises OSError if the folder cannot be written to or does not support locks.
    """
    path = folder / f"{name}-{_node()}.lock"
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    try:
        before = os.fstat(descriptor)
        held = _acquire(descriptor, time.monotonic() + deadline_seconds, waiting)
        try:
            yield Turn(held, os.fstat(descriptor).st_mtime_ns != before.st_mtime_ns)
        finally:
            if held:
                os.utime(descriptor)
                with suppress(OSError):
                    if path.stat().st_ino == before.st_ino:  # and not a new one of another process's
                        path.unlink()
    finally:
        os.close(descriptor)  # which releases the lock


def _node() -> str:
    """A name for this node that its containers share: the kernel's boot id, or the host's name if it is unreadable."""
    try:
        name = BOOT_ID.read_text().strip()
    except OSError:
        name = socket.gethostname()
    return "".join(char if char.isalnum() or char in "-." else "_" for char in name)


def _acquire(descriptor: int, deadline: float, waiting: Callable[[], None]) -> bool:
    announced = False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            if not announced:
                waiting()
            announced = True
            time.sleep(POLL_SECONDS)
        else:
            return True

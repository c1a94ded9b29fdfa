"""A lock that at most one process of a node holds, and that the kernel releases when its holder dies."""

import errno
import fcntl
import os
import socket
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

POLL_SECONDS = 0.1

STRANGERS_SECONDS = 5.0
"""The longest wait for a lock whose file is neither this user's nor root's: a stranger might never release it."""

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""A kernel has a new one at each boot, and shows the same one in all its containers, whose host names differ."""


class Undone(Exception):
    """Raised in the block: the work is not done, and the next process that waits is to do it."""


@dataclass(frozen=True, slots=True)
class Turn:
    held: bool
    """The lock was acquired before the deadline."""
    after_another: bool
    """Another holder finished its work during the wait, rather than being killed or interrupted."""
    stranger: int | None
    """The user whose the lock's file is, where that is neither this one nor root."""


@contextmanager
def node_lock(
    folder: Path,
    name: str,
    deadline_seconds: float,
    waiting: Callable[[float], None] = lambda seconds: None,
    *,
    node: str | None = None,
) -> Iterator[Turn]:
    """Hold `name`'s lock in the block. `waiting` gets the longest wait in seconds, if the lock is not free immediately.

    The file's name includes the node's, since a home folder may be shared by many nodes. A holder that finishes, with
    an ordinary exception too, touches the file, by which those who wait learn that the work is done, and removes it, so
    that a later process starts a new file. After `Undone`, an interrupt or an exit the next one has its turn, as after
    a kill. Raises OSError if the folder cannot be written to or does not support locks, or the file is not a regular
    one.
    """
    path = folder / f"{name}-{node or this_node()}.lock"
    descriptor, turn = _wait(path, deadline_seconds, waiting)
    try:
        yield turn
    except Exception as error:
        if not isinstance(error, Undone):
            _finish(path, descriptor, turn)
        raise
    else:
        _finish(path, descriptor, turn)
    finally:
        os.close(descriptor)  # which releases the lock


def this_node(boot_id: Path = BOOT_ID) -> str:
    """A name for this node that its containers share: the kernel's boot id, or the host's name if it is unreadable."""
    try:
        name = boot_id.read_text(encoding="utf-8").strip()
    except OSError:
        name = socket.gethostname()
    return "".join(char if char.isalnum() or char in "-." else "_" for char in name)


def _wait(path: Path, seconds: float, waiting: Callable[[float], None]) -> tuple[int, Turn]:
    deadline = time.monotonic() + seconds
    while True:
        descriptor = _open(path)
        try:
            before = os.fstat(descriptor)
            stranger = before.st_uid if before.st_uid not in (0, os.geteuid()) else None
            most = min(STRANGERS_SECONDS, seconds) if stranger is not None else seconds
            held = _acquire(descriptor, min(deadline, time.monotonic() + most), partial(waiting, most))
            turn = Turn(held, os.fstat(descriptor).st_mtime_ns != before.st_mtime_ns, stranger)
            # A file that the one before removed after it was opened here locks nobody out: a later one makes a new one.
            if not held or turn.after_another or _is_at(path, before) or time.monotonic() >= deadline:
                return descriptor, turn
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _open(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "is not a regular file", str(path))
    return descriptor


def _is_at(path: Path, file: os.stat_result) -> bool:
    try:
        return os.path.samestat(path.lstat(), file)
    except OSError:
        return False


def _finish(path: Path, descriptor: int, turn: Turn) -> None:
    if turn.held:
        os.utime(descriptor)
        with suppress(OSError):
            if _is_at(path, os.fstat(descriptor)):  # and not a new one of another process's
                path.unlink()


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

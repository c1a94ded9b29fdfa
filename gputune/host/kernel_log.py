"""The kernel's log, /dev/kmsg."""

from __future__ import annotations

import os
from pathlib import Path

from gputune.resources.unreadable import Unreadable

_MOST_RECORDS = 50_000  # more than the kernel's buffer holds, of a kernel that logs faster than they are read


def read(path: Path) -> str:
    """What it still holds, without waiting for more. Raises `Unreadable`."""
    try:
        # Without O_NONBLOCK the end of the log is a wait for its next line.
        log = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        raise Unreadable(f"/dev/kmsg: {error.strerror}") from None
    try:
        return _records(log)
    finally:
        os.close(log)


def _records(log: int) -> str:
    """Every record that is there now: each read gives one, or EPIPE where the oldest was overwritten meanwhile."""
    records = []
    for _ in range(_MOST_RECORDS):
        try:
            record = os.read(log, 8192)
        except BlockingIOError:
            break
        except BrokenPipeError:
            continue
        except OSError as error:
            raise Unreadable(f"/dev/kmsg: {error.strerror}") from None
        if not record:
            break
        records.append(record)
    if not records:  # a kernel has always something to tell; what is masked has nothing
        raise Unreadable("/dev/kmsg: is empty here")
    return b"".join(records).decode(errors="replace")

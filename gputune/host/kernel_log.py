"""The kernel's log, /dev/kmsg."""

import os
from pathlib import Path

from gputune.resources.unreadable import Cause, Unreadable

_MOST_RECORDS = 50_000  # more than the buffer holds: an end even if the kernel logs faster than this reads


def read(path: Path) -> str:
    """The records that the log holds now, without waiting for more. Raises `Unreadable`."""
    try:
        # Without O_NONBLOCK the end of the log is a wait for its next line.
        log = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        cause: Cause | None = "no_such_file" if isinstance(error, FileNotFoundError) else None
        raise Unreadable(f"/dev/kmsg: {error.strerror}", cause) from None
    try:
        return _records(log)
    finally:
        os.close(log)


def _records(log: int) -> str:
    """All records of the log. Each read returns one, or EPIPE if the kernel has overwritten it meanwhile."""
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
    if not records:  # a kernel always logs something at boot: an empty log is one that a container masks
        raise Unreadable("/dev/kmsg: is empty here")
    return b"".join(records).decode(errors="replace")

"""Writing a file whole or not at all."""

import errno
import os
import re
import stat
import time
from contextlib import suppress
from pathlib import Path

ABANDONED_SECONDS = 60.0
"""The age at which a temporary file counts as left behind by a process that was killed: writing takes a moment."""


def write(target: Path, text: str, *, replace: bool = True) -> None:
    """Write `text` to a temporary file beside `target`, flush it to the disk, and rename it to `target`.
    An existing file keeps its mode and, where permitted, its owner; a new one is writable by its owner only. A symbolic
    link is replaced itself.
    Raises OSError, and FileExistsError if `target` exists and is not to be replaced; it is then unchanged.
    """
    _remove_abandoned(target)
    # Random: containers that share a folder may share process ids and host names too.
    temporary = target.with_name(f".{target.name[:80]}.{os.urandom(8).hex()}.tmp")
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(temporary, flags, 0o644), "w", encoding="utf-8") as file:
            if (status := _status(target)) is not None:
                with suppress(PermissionError):
                    os.fchown(file.fileno(), status.st_uid, status.st_gid)
                os.fchmod(file.fileno(), stat.S_IMODE(status.st_mode))
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        _put(temporary, target, replace)
    except BaseException:  # Ctrl-C must not leave the temporary file behind either
        with suppress(OSError):
            temporary.unlink()
        raise
    _flush(target.parent)


def _remove_abandoned(target: Path) -> None:
    """Remove the temporary files of earlier writes of `target` that were cut short."""
    ours = re.compile(rf"\.{re.escape(target.name[:80])}\.[0-9a-f]{{16}}\.tmp")
    latest = time.time() - ABANDONED_SECONDS
    with suppress(OSError):
        for file in [file for file in target.parent.iterdir() if ours.fullmatch(file.name)]:
            if file.lstat().st_mtime < latest:
                file.unlink()


def _status(target: Path) -> os.stat_result | None:
    """The status of a regular file; None where there is none. A link's own target may be a stranger's choice."""
    try:
        status = target.lstat()
    except FileNotFoundError:
        return None
    return status if stat.S_ISREG(status.st_mode) else None


def _put(temporary: Path, target: Path, replace: bool) -> None:
    if not replace:
        try:
            target.hardlink_to(temporary)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links
            if target.exists():
                raise FileExistsError(errno.EEXIST, "exists already", str(target)) from None
        else:
            temporary.unlink()
            return
    temporary.replace(target)


def _flush(folder: Path) -> None:
    """Flush the folder to the disk, so that the new name survives a crash too, on file systems that support it."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

"""Writing a file whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path


def write(target: Path, text: str, *, replace: bool = True) -> None:
    """Put `text` in the place of a regular file, or of nothing: a temporary file beside it, flushed to the disk, then renamed over it.

    A file that is there keeps its mode, and a new one only its owner may write. Raises OSError when it cannot be written; what stood
    there before still does. Without `replace` a file that is there stays: FileExistsError.
    """
    # At random: two containers that share a folder may write as the same process of the same host.
    temporary = target.with_name(f".{target.name[:80]}.{os.urandom(8).hex()}.tmp")
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(temporary, flags, 0o644), "w", encoding="utf-8") as file:
            if target.exists():
                os.fchmod(file.fileno(), stat.S_IMODE(target.stat().st_mode))
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        _put(temporary, target, replace)
    except BaseException:  # Ctrl-C, too, leaves nothing behind
        with suppress(OSError):
            temporary.unlink()
        raise
    _flush(target.parent)


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
    """So that the name survives a crash too, where the file system can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

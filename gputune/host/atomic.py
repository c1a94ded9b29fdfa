"""Writing a file whole or not at all."""

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path


def write(target: Path, text: str, *, replace: bool = True) -> None:
    """Write `text` to a temporary file beside `target`, flush it to the disk, and rename it to `target`.

    An existing file keeps its mode; a new one is writable by its owner only. Raises OSError if it cannot be written,
    and FileExistsError if `target` exists and is not to be replaced; an existing file is then unchanged.
    """
    # Random: containers that share a folder may share process ids and host names too.
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
    except BaseException:  # Ctrl-C must not leave the temporary file behind either
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
    """Flush the folder to the disk, so that the new name survives a crash too, on file systems that support it."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

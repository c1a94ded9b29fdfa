"""What is done to files by the system's own functions, whatever has become of those of `os`."""

import errno
import os
import posix
import stat
from collections.abc import Iterator
from typing import Any


def fault(number: int, path: Any) -> OSError:
    return OSError(number, os.strerror(number), path)


def replace_across(old: Any, new: Any, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None) -> None:
    """Rename, also to another file system: what is one disk to the program may be two here."""
    try:
        posix.replace(old, new, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
    except OSError as error:
        if error.errno != errno.EXDEV or src_dir_fd is not None or dst_dir_fd is not None:
            raise
        source, target = os.fsdecode(old), os.fsdecode(new)
        if stat.S_ISDIR(mode_of(source)) and mode_of(target):
            posix.rmdir(target)  # raises where it is no empty folder
        own = f"{target}.{os.getpid()}"
        _copy_all(source, own)
        posix.replace(own, target)
        _remove_all(source)


def _copy_all(source: str, place: str) -> None:
    if not stat.S_ISDIR(mode_of(source)):
        copy(source, place)
        return
    posix.mkdir(place)
    for name in names_in(source):
        _copy_all(f"{source}/{name}", f"{place}/{name}")


def _remove_all(path: str) -> None:
    if not stat.S_ISDIR(mode_of(path)):
        posix.unlink(path)
        return
    for name in names_in(path):
        _remove_all(f"{path}/{name}")
    posix.rmdir(path)


def mode_of(path: Any, *, follow: bool = False) -> int:
    """The type and mode of what is there; 0 if nothing is."""
    try:
        return posix.stat(path, follow_symlinks=follow).st_mode
    except (OSError, ValueError):
        return 0


def names_in(folder: str) -> list[str]:
    try:
        return posix.listdir(folder)
    except OSError:
        return []


def path_of(descriptor: int) -> str:
    return posix.readlink(f"/proc/self/fd/{descriptor}")


def make_folder(folder: str) -> None:
    """Make a folder and those above it."""
    parts = folder.split("/")
    for number in range(2, len(parts) + 1):
        try:
            posix.mkdir("/".join(parts[:number]))
        except FileExistsError:
            continue
        except OSError:  # as for one above that cannot be written to and is there
            if not mode_of("/".join(parts[:number])):
                raise


def copy(source: str, place: str) -> None:
    """Copy a file, or a link, with its mode and times. Others see the whole copy or none."""
    found = posix.stat(source, follow_symlinks=False)
    own = f"{place}.{os.getpid()}"
    if stat.S_ISLNK(found.st_mode):
        posix.symlink(posix.readlink(source), own)
        return posix.replace(own, place)
    reader = posix.open(source, os.O_RDONLY | os.O_CLOEXEC)
    writer = posix.open(own, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        for _ in _sent(reader, writer):
            pass
        posix.chmod(own, stat.S_IMODE(found.st_mode))
        posix.utime(own, ns=(found.st_atime_ns, found.st_mtime_ns))
    finally:
        posix.close(reader)
        posix.close(writer)
    return posix.replace(own, place)


def _sent(reader: int, writer: int) -> Iterator[int]:
    while count := posix.sendfile(writer, reader, None, 1 << 30):
        yield count

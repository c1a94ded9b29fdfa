"""What is done to files by the system's own functions, whatever has become of those of `os`."""

import errno
import os
import posix
import re
import stat
from collections.abc import Iterator
from typing import Any


class OfOpener(str):
    """A path below a folder that an audit event does not tell."""

    __slots__ = ()


BEING_MADE = ".copy by gputune"
"""The end of the name of what is not whole yet."""


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
        own = _unused(target)
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


def path_in_uri(text: str) -> tuple[str, str]:
    """The path that SQLite takes from a name, and what follows it."""
    if not text.startswith("file:"):
        return text, ""
    from urllib.parse import unquote

    path = re.split(r"[?#]", text, maxsplit=1)[0]
    rest = text[len(path) :]
    return unquote(re.sub(r"^file:(//[^/]*)?", "", path)), rest


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
    """Copy a file with its mode and times, or a link, or make such a pipe as there is. Others see the whole copy or
    none; where another process has made one meanwhile, that stays.
    """
    found = posix.stat(source, follow_symlinks=False)
    try:
        if stat.S_ISLNK(found.st_mode):
            posix.symlink(posix.readlink(source), place)
        elif stat.S_ISREG(found.st_mode):
            _copy_file(source, place, found)
        else:
            posix.mknod(place, found.st_mode, found.st_rdev)
    except FileExistsError:
        pass


def _copy_file(source: str, place: str, found: os.stat_result) -> None:
    own = _unused(place)
    reader = posix.open(source, os.O_RDONLY | os.O_CLOEXEC)
    try:
        writer = posix.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError:
        posix.close(reader)
        raise
    try:
        for _ in _sent(reader, writer):
            pass
        posix.chmod(own, stat.S_IMODE(found.st_mode))
        posix.utime(own, ns=(found.st_atime_ns, found.st_mtime_ns))
        _give_name(own, place)
    finally:
        posix.close(reader)
        posix.close(writer)
        if mode_of(own):
            posix.unlink(own)


def _give_name(own: str, place: str) -> None:
    try:
        posix.link(own, place)
    except FileExistsError:
        raise
    except OSError:  # a disk that knows no second names
        posix.replace(own, place)


def _unused(place: str) -> str:
    """A name beside another that no process or thread has."""
    folder, slash, _ = place.rstrip("/").rpartition("/")
    return f"{folder}{slash}{os.urandom(8).hex()}{BEING_MADE}"


def _sent(reader: int, writer: int) -> Iterator[int]:
    while count := posix.sendfile(writer, reader, None, 1 << 30):
        yield count

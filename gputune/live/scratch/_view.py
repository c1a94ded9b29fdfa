"""The user's files as a program sees them that must not change them: what it writes lies in a folder.

A copy of /home/u/a.pt lies at FOLDER/copies/home/u/a.pt, and FOLDER/gone holds the names of what was removed. Both are
read from the disk each time, so that all processes of a program see the same.
"""

import errno
import os
import posix
import re
import stat
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ._disk import BEING_MADE, copy, fault, make_folder, mode_of, names_in, path_of, replace_across

DEVICES = ("/dev", "/proc", "/sys")
MEMORY = "/dev/shm"
"""Holds files as any folder does."""
_MOST_LINKS = 40
"""As many as the kernel follows."""
_GONE = ".gone by gputune"
"""The end of the names in the folder of what was removed."""


class View:
    """All paths that are returned can be given to the operating system. It is asked through `posix` alone: the
    functions of `os` may be changed to ask this class. None that changes anything is called with the user's own path.
    """

    def __init__(self, folder: str, unchanged: Iterable[str] = ()) -> None:
        """What lies in a folder of `unchanged` is used as it is."""
        self._folder = os.path.realpath(folder)
        self._copies, self._gone = f"{self._folder}/copies", f"{self._folder}/gone"
        self.is_unchanged = lying_in(unchanged)
        """Whether a file of a name, or its folder, is used as it is."""
        self._is_used = False
        self._plain: set[str] = set()
        """Folders of the user's that are no links. Another process may have put one there since."""

    # What a function of the operating system is to be called with.

    def read(self, path: Any, *, dir_fd: int | None = None, follow: bool = True) -> Any:
        """The place to read from: the copy if there is one, else the user's own."""
        if not self._is_in_use():
            return path
        found = self._name(path, dir_fd, follow)
        if found is None:
            return path
        where = self._where(found.name)
        return path if where == found.name and not found.is_translated else where

    def written(self, path: Any, *, dir_fd: int | None = None, follow: bool = True, keeps: bool = False) -> Any:
        """The place to write a file; with `keeps` that of one to change, which holds what the user's does. The folder
        that it lies in is there. What is no file, as a pipe, is the user's own: others read what is written there.
        """
        return self._place(path, dir_fd, follow, keeps, is_opened=True)

    def changed(self, path: Any, *, dir_fd: int | None = None, follow: bool = True) -> Any:
        """The place of what is not opened, but gets another mode, time or name."""
        return self._place(path, dir_fd, follow, keeps=True, is_opened=False)

    def _place(self, path: Any, dir_fd: int | None, follow: bool, keeps: bool, *, is_opened: bool) -> Any:
        found = self._name(path, dir_fd, follow)
        if found is None:
            return path
        where = self._where(found.name)
        mode = mode_of(where)
        is_file = stat.S_ISREG(mode) or (keeps and (stat.S_ISDIR(mode) or not is_opened))
        if mode and (where != found.name or not is_file):
            return where
        place = self._room(found.name)
        if mode and keeps:
            make_folder(place) if stat.S_ISDIR(mode) else copy(where, place)
        return place

    def created(self, path: Any, *, dir_fd: int | None = None) -> Any:
        """The place of what must not be there yet: what is there is returned, for the error."""
        found = self._name(path, dir_fd, False)
        if found is None:
            return path
        where = self._where(found.name)
        return where if mode_of(where) else self._room(found.name)

    # What is more than one call.

    def remove(self, path: Any, *, dir_fd: int | None = None) -> None:
        found = self._name(path, dir_fd, False)
        if found is None:
            return posix.unlink(path, dir_fd=dir_fd)
        where = self._where(found.name)
        if not (mode := mode_of(where)) or stat.S_ISDIR(mode):
            raise fault(errno.EISDIR if mode else errno.ENOENT, path)
        if where != found.name:
            posix.unlink(where)
        return self._leave(found.name)

    def remove_folder(self, path: Any, *, dir_fd: int | None = None) -> None:
        found = self._name(path, dir_fd, False)
        if found is None:
            return posix.rmdir(path, dir_fd=dir_fd)
        where = self._where(found.name)
        if not (mode := mode_of(where)) or not stat.S_ISDIR(mode):
            raise fault(errno.ENOTDIR if mode else errno.ENOENT, path)
        if self._places(found.name):
            raise fault(errno.ENOTEMPTY, path)
        if where != found.name:
            posix.rmdir(where)
        return self._leave(found.name)

    def move(self, old: Any, new: Any, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None) -> None:
        source, target = self._name(old, src_dir_fd, False), self._name(new, dst_dir_fd, False)
        if source is None and target is None:
            return posix.replace(old, new, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        # What has no name keeps its descriptor, which does not count where a path is absolute.
        kind = mode_of(self._where(source.name) if source else old)
        if not kind:
            raise fault(errno.ENOENT, old)
        if source == target:
            return None
        place = new
        if target:
            try:
                self._make_way(target.name, is_folder=stat.S_ISDIR(kind))
            except OSError as error:
                raise OSError(error.errno, error.strerror, old, None, new) from None
            place = self._room(target.name)
        moved = self._copied(source.name) if source else old
        replace_across(moved, place, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        if source:
            self._leave(source.name)
        if target and stat.S_ISDIR(kind):
            self._leave(target.name)  # what the user has in a folder of this name is not in this one
        return None

    def places(self, path: Any) -> dict[str, str] | None:
        """The places of what is in a folder, by name; None if all of it is where the system finds it."""
        if not self._is_in_use():
            return None
        found = self._name(path_of(path) if isinstance(path, int) else path, None, True)
        if found is None or not stat.S_ISDIR(mode_of(self._where(found.name))):
            return None
        has_own = any(mode_of(f"{root}{found.name}") for root in (self._copies, self._gone))
        return self._places(found.name) if has_own or self._is_gone(found.name) else None

    def users(self, path: str) -> str:
        """The user's name for a place."""
        return path[len(self._copies) :] or "/" if f"{path}/".startswith(f"{self._copies}/") else path

    # Names: absolute, without links, as the user has them.

    def _name(self, path: Any, dir_fd: int | None, follow: bool) -> "_Name | None":
        """None for what is not a path of a file, or lies where nothing is changed."""
        if not isinstance(path, str | bytes | os.PathLike):
            return None
        text = os.fsdecode(path)
        if not text or "\0" in text or re.match(r"[\w+.-]+://", text):
            return None
        if not text.startswith("/"):
            text = f"{posix.getcwd() if dir_fd is None else path_of(dir_fd)}/{text}"
        users = self.users(text)
        name, through_copies = self._resolved(users, follow)
        return None if self.is_unchanged(name) else _Name(name, through_copies or users != text)

    def _resolved(self, text: str, follow: bool) -> tuple[str, bool]:
        """The name, and whether a link of the program's led there."""
        left, name, links, through_copies = text.split("/")[::-1], "", 0, False
        has_copies = True  # below a folder without a copy there are none
        while left:
            part = left.pop()
            if part == "..":
                name, has_copies = name.rpartition("/")[0], True
            elif part not in {"", "."}:
                inner = f"{name}/{part}"
                mode = mode_of(f"{self._copies}{inner}") if has_copies else 0
                target = self._link(inner, mode) if left or follow else None
                if target is None:
                    name, has_copies = inner, bool(mode)
                    continue
                links += 1
                if links > _MOST_LINKS:
                    raise fault(errno.ELOOP, text)
                through_copies, has_copies = through_copies or bool(mode), True
                if target.startswith("/"):
                    name, target = "", self.users(target)
                left += target.split("/")[::-1]
        return name or "/", through_copies

    def _link(self, name: str, mode: int) -> str | None:
        """Where a link leads; `mode` is that of the copy."""
        if (mode and not stat.S_ISLNK(mode)) or (not mode and (name in self._plain or self._is_gone(name))):
            return None
        try:
            target = posix.readlink(f"{self._copies}{name}" if mode else name)
            return target if not name.startswith("/proc/") or _are_same(name, target) else None
        except OSError as error:
            if error.errno == errno.EINVAL and stat.S_ISDIR(mode_of(name)):
                self._plain.add(name)
            return None

    def _where(self, name: str) -> str:
        copy = f"{self._copies}{name}"
        return copy if self._is_in_use() and (mode_of(copy) or self._is_gone(name)) else name

    def _is_in_use(self) -> bool:
        self._is_used = self._is_used or bool(mode_of(self._folder))
        return self._is_used

    # What is written below the folder.

    def _room(self, name: str) -> str:
        """The place of a copy, whose folder is there if the user's is, or another of the program's."""
        folder = name.rpartition("/")[0]
        if not mode_of(f"{self._copies}{folder}") and stat.S_ISDIR(mode_of(self._where(folder or "/"))):
            make_folder(f"{self._copies}{folder}")
        return f"{self._copies}{name}"

    def _copied(self, name: str) -> str:
        """The place of a copy, with all that is in it."""
        where, place = self._where(name), self._room(name)
        if stat.S_ISDIR(mode_of(where)):
            inner = self._places(name)
            make_folder(place)
            for one in inner:
                self._copied(f"{name}/{one}")
        elif where != place:
            copy(where, place)
        return place

    def _make_way(self, name: str, *, is_folder: bool) -> None:
        """Let something be renamed to what is there. Raises OSError where it cannot be."""
        there = mode_of(self._where(name))
        if there and stat.S_ISDIR(there) != is_folder:
            raise fault(errno.ENOTDIR if is_folder else errno.EISDIR, name)
        if there and is_folder:
            self.remove_folder(name)

    def _leave(self, name: str) -> None:
        """Have the program find nothing of the user's there."""
        self._plain.clear()
        if mode_of(name):
            make_folder(f"{self._gone}{name.rpartition('/')[0]}")
            posix.close(posix.open(f"{self._gone}{name}{_GONE}", os.O_WRONLY | os.O_CREAT, 0o600))

    def _is_gone(self, name: str) -> bool:
        if not mode_of(self._gone):
            return False
        parts = name.split("/")
        return any(mode_of(f"{self._gone}{'/'.join(parts[:n])}{_GONE}") for n in range(2, len(parts) + 1))

    def _places(self, name: str) -> dict[str, str]:
        copies = f"{self._copies}{name}"
        left = {one.removesuffix(_GONE) for one in names_in(f"{self._gone}{name}") if one.endswith(_GONE)}
        users = [] if self._is_gone(name) else [one for one in names_in(name) if one not in left]
        inner = name.rstrip("/")
        own = [one for one in names_in(copies) if not one.endswith(BEING_MADE)]
        return {one: f"{inner}/{one}" for one in users} | {one: f"{copies}/{one}" for one in own}


def lying_in(folders: Iterable[str]) -> Callable[[str], bool]:
    """Whether a name is one of the folders, or of what lies in one; devices and the like are too."""
    named = tuple({f"{one}/" for path in folders for one in (path, os.path.realpath(path))})
    devices = tuple(f"{path}/" for path in DEVICES)

    def is_in(name: str) -> bool:
        path = f"{name}/"
        return path.startswith(named) or (path.startswith(devices) and not path.startswith(f"{MEMORY}/"))

    return is_in


def _are_same(link: str, target: str) -> bool:
    """Whether a link of the system's, as to an open file, says where that is: what was removed is nowhere."""
    if not target.startswith("/"):
        return True
    try:
        one, other = posix.stat(link), posix.stat(target)
    except OSError:
        return False
    return (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)


class _Name(NamedTuple):
    name: str
    is_translated: bool
    """Whether the system does not find the user's own by the path that was given."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Name) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

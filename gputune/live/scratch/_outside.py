"""The names of what a program writes to the user's folders, for the end of a tune."""

import os
import posix
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ._disk import OfOpener, mode_of, names_in, path_in_uri, path_of

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
EVENTS: dict[str, tuple[tuple[int, int | None], ...]] = {
    "open": ((0, None),), "os.truncate": ((0, None),), "os.remove": ((0, 1),), "os.rmdir": ((0, 1),),
    "os.rename": ((0, 2), (1, 3)), "os.link": ((1, 3),), "os.symlink": ((1, 2),),
}  # fmt: skip
"""The arguments of an audit event that are paths of what is written or removed, each with that of its folder."""
MOST = 1000
"""The most names of a process: a program that writes a file a step would fill the list."""


class Outside:
    def __init__(self, file: str, is_unnamed: Callable[[str], bool]) -> None:
        """Names go to `file`, a line each, but for those of which `is_unnamed` is true."""
        self._file, self._is_unnamed = file, is_unnamed
        self._known: set[str] = set()

    def follow(self) -> None:
        sys.addaudithook(self._hear)

    def read(self, path: Any) -> Any:
        return path

    def written(self, path: Any, *, keeps: bool = False) -> Any:
        """Names a path that is about to be written to in C, of which Python hears nothing."""
        self._note(_name(path))
        return path

    def _hear(self, event: str, inputs: tuple[Any, ...]) -> None:
        if event in EVENTS:
            flags = inputs[2] if event == "open" else os.O_WRONLY
            if isinstance(flags, int) and flags & WRITING:
                names = [_name(inputs[at], -1 if of is None else inputs[of]) for at, of in EVENTS[event]]
                if not _fails(event, names[0], flags):
                    for name in names:
                        self._note(name)
        elif event == "sqlite3.connect" and isinstance(inputs[0], str | bytes | os.PathLike):
            path, rest = path_in_uri(os.fsdecode(inputs[0]))
            if path not in {"", ":memory:"} and "mode=memory" not in rest:
                self._note(_name(path))

    def _note(self, name: str) -> None:
        if not name or name in self._known or len(self._known) >= MOST:
            return
        if self._is_unnamed(name) or "/__pycache__/" in name:
            return
        self._known.add(name)  # before it is written, which is an event too
        with suppress(OSError):  # the program's call goes on, whatever has become of the file
            file = posix.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            posix.write(file, os.fsencode(name.replace("\n", " ") + "\n"))
            posix.close(file)


def _name(path: Any, folder: int = -1) -> str:
    """The absolute name of a path, which is relative to an open folder or else to the working one; empty for none."""
    if not isinstance(path, str | bytes | os.PathLike) or isinstance(path, OfOpener):
        return ""
    try:
        base = posix.getcwd() if folder < 0 else path_of(folder)
        return os.path.normpath(os.path.join(base, os.fsdecode(path)))  # noqa: PTH118
    except OSError:
        return ""


def _fails(event: str, name: str, flags: int) -> bool:
    """Whether the call that an event announces will change nothing. (Of a folder only temporary files are opened.)"""
    is_opened, is_exclusive = event in {"open", "os.truncate"}, bool(flags & os.O_EXCL)
    mode = mode_of(name, follow=is_opened and not is_exclusive)
    if mode and is_opened and not is_exclusive:
        return stat.S_ISDIR(mode) or not posix.access(name, os.W_OK)
    if event == "os.rmdir" and (not stat.S_ISDIR(mode) or names_in(name)):
        return True
    makes = bool(flags & os.O_CREAT) if is_opened else event in {"os.link", "os.symlink"}
    return bool(mode) == makes or not posix.access(name.rpartition("/")[0] or "/", os.W_OK)

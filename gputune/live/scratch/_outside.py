"""The names of what a program writes to the user's folders, for the end of a tune."""

import os
import posix
import stat
import sys
from collections.abc import Iterable
from typing import Any

from ._disk import OfOpener, path_in_uri, path_of
from ._view import lying_in

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
EVENTS: dict[str, tuple[tuple[int, int | None], ...]] = {
    "os.remove": ((0, 1),), "os.rmdir": ((0, 1),), "os.rename": ((0, 2), (1, 3)), "os.truncate": ((0, None),),
    "os.link": ((1, 3),), "os.symlink": ((1, 2),),
}  # fmt: skip
"""The arguments of an audit event that are paths of what is written or removed, each with that of its folder."""
MOST = 1000
"""The most names of a process: a program that writes a file a step would fill the list."""


class Outside:
    def __init__(self, file: str, unnamed: Iterable[str]) -> None:
        """Names go to `file`, a line each. What lies in a folder of `unnamed` has none."""
        self.unnamed = tuple(unnamed)
        self._file = file
        self._is_unnamed = lying_in(self.unnamed)
        self._known: set[str] = set()

    def follow(self) -> None:
        sys.addaudithook(self._hear)

    def read(self, path: Any) -> Any:
        return path

    def written(self, path: Any, *, keeps: bool = False) -> Any:
        """Names a path that is about to be written to in C, of which Python hears nothing."""
        self._note(path)
        return path

    def _hear(self, event: str, inputs: tuple[Any, ...]) -> None:
        if event == "open":
            if isinstance(inputs[2], int) and inputs[2] & WRITING and not _fails(inputs[0], inputs[2]):
                self._note(inputs[0])
        elif event in EVENTS:
            for place, folder in EVENTS[event]:
                self._note(inputs[place], -1 if folder is None else inputs[folder])
        elif event == "sqlite3.connect" and isinstance(inputs[0], str | bytes | os.PathLike):
            path, rest = path_in_uri(os.fsdecode(inputs[0]))
            if path not in {"", ":memory:"} and "mode=memory" not in rest:
                self._note(path)

    def _note(self, path: Any, folder: int = -1) -> None:
        is_path = isinstance(path, str | bytes | os.PathLike) and not isinstance(path, OfOpener)
        if not is_path or len(self._known) >= MOST:
            return
        try:
            base = posix.getcwd() if folder < 0 else path_of(folder)
            name = os.path.normpath(os.path.join(base, os.fsdecode(path)))  # noqa: PTH118
        except OSError:
            return
        if name in self._known or self._is_unnamed(name) or "/__pycache__/" in name:
            return
        self._known.add(name)  # before it is written, which is an event too
        file = posix.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        posix.write(file, os.fsencode(name.replace("\n", " ") + "\n"))
        posix.close(file)


def _fails(path: Any, flags: int) -> bool:
    """Whether nothing is opened for writing: a folder cannot be, except for the temporary files of an `opener`."""
    try:
        mode = posix.stat(path).st_mode
        return stat.S_ISDIR(mode) or bool(flags & os.O_EXCL)
    except (OSError, TypeError, ValueError):
        return False

"""Renaming, deleting and looking for saved files, as programs do in atomic saves, rotations and resumes.

Where a path has a copy in the scratch folder, these functions act on the copy. In a folder that checkpoints were saved
to in this run, nothing of the user's is deleted: a program that keeps its three latest would count the user's, too.
"""

import builtins
import io
import os
import shutil
from collections.abc import Callable
from types import ModuleType
from typing import Any

from ._rerouting import Paths, Places, wrapped

PATHS: Paths = {"os": []}
RENAMING = ("rename", "replace")


def redirect(module: ModuleType, places: Places) -> None:
    copies = _Copies(places, os.lstat)
    for functions, names, instead in (
        (module, ("stat", "lstat"), copies.look),
        (module, ("remove", "unlink", "rmdir"), copies.delete),
        (module, (*RENAMING, "link"), copies.move),
        (module, ("symlink",), copies.link),
        (shutil, ("rmtree",), copies.delete),
        (shutil, ("copyfile",), copies.move),
        (builtins, ("open",), copies.read),
        (io, ("open",), copies.read),
    ):
        for name in names:
            setattr(functions, name, wrapped(getattr(functions, name), instead))


class _Copies:
    """The functions of the operating system, for paths of which there is a copy."""

    def __init__(self, places: Places, lstat: Callable[[str], Any]) -> None:
        self._places, self._lstat = places, lstat

    def look(self, original: Any, path: Any = ".", *inputs: Any, **named: Any) -> Any:
        return original(self._copy(path, named) or path, *inputs, **named)

    def read(self, original: Any, file: Any, mode: str = "r", *inputs: Any, **named: Any) -> Any:
        copy = None if isinstance(mode, str) and set(mode) & set("wax+") else self._copy(file, {})
        return original(copy or file, mode, *inputs, **named)

    def delete(self, original: Any, path: Any, *inputs: Any, **named: Any) -> Any:
        if copy := self._copy(path, named):
            original(copy, *inputs, **named)
            return self._places.leave(path)
        if self._places.is_beside_saved(path) and self._is_there(os.fspath(path)):
            return self._places.leave(path)
        return original(path, *inputs, **named)

    def move(self, original: Any, src: Any, dst: Any, *inputs: Any, **named: Any) -> Any:
        if copy := self._copy(src, named):
            original(copy, self._places.written(dst), *inputs, **named)
            if original.__name__ in RENAMING:
                self._places.leave(src)
            return dst
        return original(src, dst, *inputs, **named)

    def link(self, original: Any, src: Any, dst: Any, *inputs: Any, **named: Any) -> Any:
        beside = os.path.join(os.path.dirname(os.fsdecode(dst)), os.fsdecode(src))  # noqa: PTH118, PTH120 - cheaper
        return original(src, self._places.written(dst) if self._copy(beside, named) else dst, *inputs, **named)

    def _copy(self, path: Any, named: Any) -> Any:
        """The copy of a path in the scratch folder; None where there is none."""
        if not self._places.saved or isinstance(path, int) or named.get("dir_fd") is not None:
            return None
        place, users = self._places.both(path)
        if place is users or place == path:
            return None
        # What is gone is not there either.
        return place if self._is_there(place) or self._places.is_gone(path) else None

    def _is_there(self, path: Any) -> bool:
        try:
            self._lstat(path)
        except (OSError, ValueError):
            return False
        return True

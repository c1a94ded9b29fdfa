"""The functions of Python that take a path, of which pathlib, shutil, glob, tempfile and most libraries are made.

They see the user's files, and what the program did to them. A function that was imported under another name, or is the
default of a parameter, is replaced there too. What is written in C alone, or by another program, is not seen.
"""

import builtins
import io
import os
import posix
import stat
import sys
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

from ._disk import OfOpener
from ._rerouting import Paths, replace, wrapped
from ._view import View

PATHS: Paths = {"os": []}
READING = ("stat", "access", "statvfs", "getxattr", "listxattr", "chdir")
LINKS = ("lstat", "readlink")
CHANGING = ("truncate", "chmod", "chown", "utime", "setxattr", "removexattr")
CREATING = ("mkdir", "mkfifo", "mknod")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_SUPPORTS = (os.supports_dir_fd, os.supports_effective_ids, os.supports_fd, os.supports_follow_symlinks)
"""By these shutil and glob know which arguments a function takes."""


def redirect(module: ModuleType, view: View) -> None:
    found = _Files(view)
    instead: dict[str, Callable[..., Any]] = {
        **dict.fromkeys(READING, _at(view.read)),
        **dict.fromkeys(LINKS, _at(lambda path, *, dir_fd, follow: view.read(path, dir_fd=dir_fd, follow=False))),
        **dict.fromkeys(CHANGING, _at(view.changed, found.opened)),
        **dict.fromkeys(CREATING, _at(lambda path, *, dir_fd, follow: view.created(path, dir_fd=dir_fd))),
        **dict.fromkeys(("remove", "unlink"), lambda _, path, **named: view.remove(path, **named)),
        **dict.fromkeys(("rename", "replace"), lambda _, src, dst, **named: view.move(src, dst, **named)),
        "rmdir": lambda _, path, **named: view.remove_folder(path, **named),
        **{name: getattr(found, name) for name in ("open", "link", "symlink", "listdir", "scandir")},
        "lchown": _at(lambda path, *, dir_fd, follow: view.changed(path, follow=False)),
        "fchmod": lambda _, fd, mode: os.chmod(fd, mode),  # noqa: PTH101
        "fchown": lambda _, fd, uid, gid: os.chown(fd, uid, gid),
        "getcwd": lambda original: view.users(original()),
        "getcwdb": lambda original: os.fsencode(view.users(os.fsdecode(original()))),
    }
    changed: dict[Any, Any] = {}
    for name, function in instead.items():
        original = getattr(module, name)
        changed[original] = made = wrapped(original, function)
        made.__module__ = module.__name__  # where pickle finds it
        for functions in _SUPPORTS:
            if original in functions:
                functions.add(made)
    changed[io.open] = wrapped(io.open, found.open_file)
    for original, made in changed.items():
        holder: ModuleType = builtins if original is io.open else module
        replace(holder, "open" if original is io.open else original.__name__, made)
    _redirect_imports(module, view)
    closer = getattr(sys.modules.get("tempfile"), "_TemporaryFileCloser", None)
    for one in vars(closer).values() if closer else ():
        if isinstance(one, FunctionType) and one.__defaults__:
            one.__defaults__ = tuple(changed.get(one, one) if callable(one) else one for one in one.__defaults__)


def _redirect_imports(module: ModuleType, view: View) -> None:
    """Have Python import what the program has written, and not keep compiled code of it beside the user's modules."""
    importing: Any = sys.modules["_frozen_importlib_external"]
    in_c = importing._io
    importing._os, importing._io = module, ModuleType("_io")
    vars(importing._io).update(
        vars(in_c),
        open_code=lambda path: in_c.open_code(view.read(path)),
        FileIO=lambda file, mode: in_c.FileIO(view.read(file), mode),
    )


def _at(place: Callable[..., Any], opened: Callable[[Any], Any] = lambda path: path) -> Callable[..., Any]:
    """A function called with another place than a path; `opened` is that of a descriptor."""

    def call(original: Any, path: Any = ".", *inputs: Any, dir_fd: Any = None, **named: Any) -> Any:
        path = opened(path)
        found = place(path, dir_fd=dir_fd, follow=named.get("follow_symlinks", True))
        if found is path:
            return original(path, *inputs, **named, **({} if dir_fd is None else {"dir_fd": dir_fd}))
        return _named(path, original, found, *inputs, **named)

    return call


def _named(path: Any, original: Any, *inputs: Any, **named: Any) -> Any:
    """Call a function; an error names the path that the program knows."""
    try:
        return original(*inputs, **named)
    except OSError as error:
        if error.filename is not None:
            error.filename = path
        raise


class _Files:
    def __init__(self, view: View) -> None:
        self._view = view

    def opened(self, path: Any) -> Any:
        """What to change instead of an open file of the user's: its path, of which there is a copy then."""
        if not isinstance(path, int):
            return path
        known = os.fsdecode(posix.readlink(f"/proc/self/fd/{path}"))
        return known if known.startswith("/") and self._view.users(known) == known else path

    def open_file(self, original: Any, file: Any, mode: Any = "r", *inputs: Any, **named: Any) -> Any:
        if named.get("opener") or len(inputs) > 5:
            path = file if isinstance(file, int) else os.fspath(file)
            return original(OfOpener(path) if isinstance(path, str) else path, mode, *inputs, **named)
        if isinstance(file, int) or not isinstance(mode, str):
            return original(file, mode, *inputs, **named)
        if "x" in mode:
            place = self._view.created(file)
        elif set(mode) & set("wa+"):
            place = self._view.written(file, keeps="w" not in mode)
        else:
            place = self._view.read(file)
        return _named(file, original, place, mode, *inputs, **named)

    def open(self, original: Any, path: Any, flags: int, mode: int = 0o777, *, dir_fd: Any = None) -> Any:
        if not flags & WRITING:
            place = self._view.read(path, dir_fd=dir_fd)
        elif flags & os.O_CREAT and flags & os.O_EXCL:
            place = self._view.created(path, dir_fd=dir_fd)
        else:
            is_new = flags & os.O_CREAT and flags & os.O_TRUNC
            place = self._view.written(path, dir_fd=dir_fd, keeps=not is_new)
        if place is path and dir_fd is not None and isinstance(path, str):
            place = OfOpener(path)
        return _named(path, original, place, flags, mode, dir_fd=dir_fd)

    def link(self, original: Any, src: Any, dst: Any, **named: Any) -> None:
        """A file of the user's gets no other name: its copy does."""
        follow = named.get("follow_symlinks", True)
        source = self._view.changed(src, dir_fd=named.get("src_dir_fd"), follow=follow)
        _named(src, original, source, self._view.created(dst, dir_fd=named.get("dst_dir_fd")))

    def symlink(self, original: Any, src: Any, dst: Any, *inputs: Any, dir_fd: Any = None, **named: Any) -> None:
        place = self._view.created(dst, dir_fd=dir_fd)
        _named(dst, original, src, place, *inputs, dir_fd=dir_fd if place is dst else None, **named)

    def listdir(self, original: Any, path: Any = ".") -> list[Any]:
        places = self._view.places(path)
        if places is None:
            return list(_named(path, original, self._view.read(path)))
        return [os.fsencode(name) for name in places] if isinstance(path, bytes) else list(places)

    def scandir(self, original: Any, path: Any = ".") -> Any:
        places = self._view.places(path)
        if places is None:
            return _named(path, original, self._view.read(path))
        return _Listing(self._view, path, places)


class _Listing:
    """What os.scandir returns."""

    def __init__(self, view: View, path: Any, places: dict[str, str]) -> None:
        self._left = iter([_Entry(view, path, name, place) for name, place in places.items()])

    def __iter__(self) -> Iterator["_Entry"]:
        return self

    def __next__(self) -> "_Entry":
        return next(self._left)

    def __enter__(self) -> "_Listing":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._left = iter(())


class _Entry:
    """An os.DirEntry, of which Python can make none."""

    def __init__(self, view: View, folder: Any, name: str, place: str) -> None:
        whole = name if isinstance(folder, int) else os.path.join(os.fsdecode(folder), name)  # noqa: PTH118
        is_bytes = isinstance(folder, bytes)
        self.name: Any = os.fsencode(name) if is_bytes else name
        self.path: Any = os.fsencode(whole) if is_bytes else whole
        self._view, self._place = view, place

    def __fspath__(self) -> Any:
        return self.path

    def __repr__(self) -> str:
        return f"<DirEntry {self.name!r}>"

    def inode(self) -> int:
        return self.stat(follow_symlinks=False).st_ino

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return stat.S_ISDIR(self._mode(follow_symlinks))

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return stat.S_ISREG(self._mode(follow_symlinks))

    def is_symlink(self) -> bool:
        return stat.S_ISLNK(self._mode(False))

    def is_junction(self) -> bool:
        return False

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        return os.stat(self._view.users(self._place), follow_symlinks=follow_symlinks)  # noqa: PTH116

    def _mode(self, follow: bool) -> int:
        try:
            return self.stat(follow_symlinks=follow).st_mode
        except OSError:
            return 0

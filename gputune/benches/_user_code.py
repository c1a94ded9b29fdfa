"""Finds, imports and calls a user's callable, named as `path.py:callable` or `package.module:callable`.

It is imported as a program of the user's would be, in a bench process only. Any exception becomes one line that says
where in the user's files it was raised.
"""

import importlib
import importlib.util
import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from gputune.errors import UsageError
from gputune.resources.unreadable import Cause

_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')


class UserCodeError(Exception):
    """The user's code failed; the text is one line with the place, and `cause` is for a Gap."""

    def __init__(self, reason: str, cause: Cause | None = None) -> None:
        super().__init__(reason)
        self.cause = cause


def check(spec: str, option: str) -> None:
    """Raise UsageError, which names `option`, for what cannot be a callable's name: before anything is measured."""
    path, colon, name = spec.rpartition(":")
    shape = "name it as path.py:callable or package.module:callable"
    if not colon or not path or not name.isidentifier():
        raise UsageError(f"{option} {spec[:200]}: names no callable", shape)
    if _is_file(path):
        if not Path(path).is_file():
            raise UsageError(f"{option} {spec[:200]}: there is no file {path[:200]}", "check the path")
    elif not all(part.isidentifier() for part in path.split(".")):
        raise UsageError(f"{option} {spec[:200]}: {path[:200]} is neither a .py file nor a module's name", shape)


def call(spec: str) -> Any:
    """The result of the callable that `spec` names, called without arguments. Raises UserCodeError."""
    path, _, name = spec.rpartition(":")
    module = _guarded(lambda: _module(path), f"importing {path}")
    target = getattr(module, name, None)
    if not callable(target):
        raise UserCodeError(f"{path} has no callable {name}")
    return _guarded(target, f"{name}()")


def words(error: BaseException) -> str:
    """An exception in one line, with the innermost place in the user's own files, also from a DataLoader's worker."""
    text = str(error)
    from_worker = "Original Traceback" in text
    frames = _FRAME.findall(text if from_worker else "".join(traceback.format_tb(error.__traceback__)))
    what = _after_frames(text) if from_worker else f"{type(error).__name__}: {text}"
    place = next((frame for frame in reversed(frames) if _is_users(frame[0])), None)
    line = " ".join(what.split()).removesuffix(":")[:300]
    return line + (f" ({Path(place[0]).name}:{place[1]}, in {place[2]})" if place else "")


def _after_frames(text: str) -> str:
    lines = text.splitlines()
    last = max((number for number, line in enumerate(lines) if _FRAME.search(line)), default=-1)
    return "\n".join(line for line in lines[last + 1 :] if not line.startswith("  "))


def _is_users(file: str) -> bool:
    others = (str(Path(__file__).parents[1]), str(Path(traceback.__file__).parent), "<")
    return "site-packages" not in file and not file.startswith(others)


def _guarded(run: Callable[[], Any], what: str) -> Any:
    try:
        return run()
    except SystemExit as error:
        raise UserCodeError(f"{what} called sys.exit({error.code!r})") from None
    except Exception as error:
        raise UserCodeError(f"{what} raised {words(error)}") from None


def _is_file(path: str) -> bool:
    return path.endswith(".py") or "/" in path


def _module(path: str) -> ModuleType:
    """Import a file or module. Its folder, or for a module's name the working folder, comes first on sys.path, as for
    a program that is started there; so spawned workers find it too.
    """
    file = Path(path).resolve()
    folder = str(file.parent if _is_file(path) else Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    sys.argv = [str(file) if _is_file(path) else path]
    if not _is_file(path):
        return importlib.import_module(path)
    imported = sys.modules.get(file.stem)
    if imported is not None and getattr(imported, "__file__", None) == str(file):
        return imported
    taken = imported is not None or file.stem in sys.stdlib_module_names or not file.stem.isidentifier()
    name = f"_gputune_user_{file.stem}" if taken else file.stem
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module

"""Where a path of the user's lies in the scratch folder, and functions of a library that are given that path."""

import functools
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path, PurePath
from types import ModuleType
from typing import Any, Literal

_LOCAL = "file://"


class Places:
    """Paths below `folder`: /home/u/run/a.pt lies at FOLDER/home/u/run/a.pt. Links in them are not followed.

    A path that is below the folder stays. What is no local path (a file object, s3://bucket) is returned as it is.
    """

    def __init__(self, folder: str) -> None:
        self._folder = _absolute(folder)
        # Lightning for one follows the links of the paths that it is given.
        self._names = (self._folder, os.path.realpath(self._folder))
        self.saved: set[str] = set()
        """The user's folders of what was written here instead."""
        self._gone: set[str] = set()

    def written(self, path: Any) -> Any:
        """The place to write to; the folder it lies in is there. Raises OSError where that cannot be made."""
        text = _local(path)
        if text is None:
            return path
        place = self._place(text)
        Path(place).parent.mkdir(parents=True, exist_ok=True)
        self.saved.add(str(PurePath(self._users(text)).parent))
        self._gone.discard(self._users(text))
        return _as(path, place)

    def leave(self, path: Any) -> None:
        """Have the program think that the user's own file is not there any more."""
        if text := _local(path):
            self._gone.add(self._users(text))

    def is_gone(self, path: Any) -> bool:
        text = _local(path) if self._gone else None
        return text is not None and self._users(text) in self._gone

    def is_beside_saved(self, path: Any) -> bool:
        """Whether something was written instead of a path in the same folder, or in one above."""
        text = _local(path) if self.saved else None
        return text is not None and not self.saved.isdisjoint(map(str, PurePath(text).parents))

    def folder(self, path: Any) -> Any:
        """As `written`; where the user has a folder of that name, there is one here too."""
        place, text = self.written(path), _local(path)
        if text is not None and Path(self._users(text)).is_dir():
            Path(self._place(text)).mkdir(exist_ok=True)
        return place

    def read(self, path: Any) -> Any:
        """The place to read from: the scratch folder's, if something was written there, else the user's own."""
        text = _local(path)
        if text is None:
            return path
        place, users = self._place(text), self._users(text)
        if _holds(place, users):
            return _as(path, place)
        return _as(path, users) if text != users and Path(users).exists() else path

    def both(self, path: Any) -> tuple[Any, Any]:
        """The place in the scratch folder, and the user's own."""
        text = _local(path)
        return (path, path) if text is None else (_as(path, self._place(text)), _as(path, self._users(text)))

    def _place(self, text: str) -> str:
        return text if self._name_in(text) else self._folder + text

    def _users(self, text: str) -> str:
        name = self._name_in(text)
        return text[len(name) :] or os.sep if name else text

    def _name_in(self, text: str) -> str | None:
        return next((name for name in self._names if f"{text}{os.sep}".startswith(f"{name}{os.sep}")), None)


def _holds(place: str, users: str) -> bool:
    """Whether to read here: a folder may have been made only for one deeper, and the user's have the files."""
    if not Path(place).is_dir():
        return Path(place).exists()
    return not Path(users).exists() or any(not one.is_dir() for one in os.scandir(place))


def _local(path: Any) -> str | None:
    """The absolute path; None for what is not a path of this machine."""
    if not isinstance(path, str | bytes | os.PathLike):
        return None
    text = os.fsdecode(path).removeprefix(_LOCAL)
    return None if not text or re.match(r"[\w+.:-]+://", text) else _absolute(text)


def _absolute(text: str) -> str:
    return os.path.abspath(text)  # noqa: PTH100 - Path.resolve would follow links


def _as(path: Any, place: str) -> Any:
    """The place in the type of the path that it is for."""
    if isinstance(path, bytes):
        return os.fsencode(place)
    if isinstance(path, PurePath):
        return type(path)(place)
    return _LOCAL + place if isinstance(path, str) and path.startswith(_LOCAL) else place


Place = Callable[[Any], Any]
Paths = Mapping[str, Iterable[tuple[str, str, Literal["written", "read", "folder"]]]]
"""By module: functions, as NAME or CLASS.METHOD, with the parameter that is a path and the method of Places for it."""


def reroute(holder: Any, path: str, parameter: str, place: Place) -> None:
    """Have the function at a dotted path, if any, get another path as this parameter. Raises LookupError without it."""
    *owners, name = path.split(".")
    for owner in owners:
        holder = getattr(holder, owner, None)
    original = vars(holder).get(name) if holder is not None else None
    if original is None:
        return
    if isinstance(original, classmethod | staticmethod):
        replace(holder, name, type(original)(_rerouted(original.__func__, parameter, place)))
    else:
        replace(holder, name, _rerouted(original, parameter, place))


def replace(holder: Any, name: str, new: Any) -> None:
    """Put something else in the place of a function, also where other modules have imported it."""
    original = vars(holder)[name]
    setattr(holder, name, new)
    if not isinstance(holder, ModuleType):
        return
    for module in [one for one in sys.modules.values() if isinstance(one, ModuleType)]:
        for known in [known for known, value in vars(module).items() if value is original]:
            setattr(module, known, new)


def wrap(holder: Any, name: str, instead: Callable[..., Any]) -> None:
    """Have `instead` called in the place of a function, with the function before its arguments."""
    replace(holder, name, wrapped(getattr(holder, name), instead))


def wrapped(original: Any, instead: Callable[..., Any]) -> Any:
    @functools.wraps(original)
    def call(*inputs: Any, **named: Any) -> Any:
        return instead(original, *inputs, **named)

    return call


def _rerouted(original: Any, parameter: str, place: Place) -> Any:
    number, default = _position(original, parameter)

    # A class has members of its own, which a function must not take over.
    @functools.wraps(original, updated=() if isinstance(original, type) else functools.WRAPPER_UPDATES)
    def rerouted(*inputs: Any, **named: Any) -> Any:
        if parameter in named:
            named = {**named, parameter: place(named[parameter])}
        elif len(inputs) > number:
            inputs = (*inputs[:number], place(inputs[number]), *inputs[number + 1 :])
        elif isinstance(default, str | os.PathLike):
            named = {**named, parameter: place(default)}
        return original(*inputs, **named)

    return rerouted


def _position(original: Any, parameter: str) -> tuple[int, Any]:
    """At which place a function takes a parameter, perhaps as one of any number, and what it is by default."""
    parameters = list(inspect.signature(original).parameters.values())
    for number, one in enumerate(parameters):
        if one.name == parameter or one.kind is one.VAR_POSITIONAL:
            return (sys.maxsize if one.kind is one.KEYWORD_ONLY else number), one.default
    raise LookupError(f"{original.__qualname__} has no parameter {parameter}")

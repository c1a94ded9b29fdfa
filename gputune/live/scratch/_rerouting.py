"""Functions of a library that are called with another path."""

import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any, Literal

Place = Callable[[Any], Any]
Paths = Mapping[str, Iterable[tuple[str, str, Literal["written", "changed", "read"]]]]
"""By module: functions, as NAME or CLASS.METHOD, with the parameter that is a path, and what they do with the file."""


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
    # `posix` keeps the functions of the system, which those of `os` are here.
    for module in [one for name, one in sys.modules.items() if isinstance(one, ModuleType) and name != "posix"]:
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

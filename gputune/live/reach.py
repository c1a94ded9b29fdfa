"""What a model's forward reaches, by its code: its own methods, global variables, and what functions close over."""

import dis
from collections.abc import Iterator
from functools import cache, lru_cache
from types import CodeType, FunctionType
from typing import Any

MOST = 500
"""The functions that are read."""


@cache
def methods(kind: Any) -> tuple[FunctionType, ...]:
    """The forward of a class, and the methods and properties of the class that it uses, unless they are torch's."""
    found, waiting, known = list[FunctionType](), ["forward"], set[str]()
    while waiting and len(known) < MOST:
        name = waiting.pop()
        function = None if name in known else _method(kind, name)
        known.add(name)
        if function is not None:
            found.append(function)
            waiting += names(function, "LOAD_ATTR", "LOAD_METHOD")
    return tuple(found)


def names(function: FunctionType, *operations: str) -> frozenset[str]:
    """The names that its code uses with these operations."""
    return _names(function.__code__, operations)


@lru_cache(4096)
def _names(code: CodeType, operations: tuple[str, ...]) -> frozenset[str]:
    return frozenset(one.argval for one in _instructions(code) if one.opname in operations)


def variables(model: Any) -> dict[tuple[str, str], Any]:
    """The values of the variables outside of a model that its forward uses, and the functions that it calls, by their
    module and name. Functions, classes and modules are none of these.
    """
    kinds: set[Any] = {type(one) for one in model.modules()}
    waiting = [function for kind in kinds for function in methods(kind)]
    known, found = set(map(id, waiting)), dict[tuple[str, str], Any]()
    while waiting and len(known) < MOST:
        function = waiting.pop()
        for name, value in _used(function):
            if isinstance(value, FunctionType) and not _is_torchs(value):
                if id(value) not in known:
                    known.add(id(value))
                    waiting.append(value)
            else:
                found[function.__module__, name] = value
    return found


def _used(function: FunctionType) -> Iterator[tuple[str, Any]]:
    space = function.__globals__
    yield from ((name, space[name]) for name in names(function, "LOAD_GLOBAL", "STORE_GLOBAL") if name in space)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # it is empty
            continue


def _method(kind: Any, name: str) -> FunctionType | None:
    holder = next((one for one in kind.__mro__ if name in vars(one)), None)
    found = vars(holder)[name] if holder is not None else None
    function = getattr(found, "fget", getattr(found, "__func__", found))
    return function if isinstance(function, FunctionType) and not _is_torchs(function) else None


def _is_torchs(function: FunctionType) -> bool:
    return (function.__module__ or "").partition(".")[0] == "torch"


def _instructions(code: CodeType) -> Iterator[dis.Instruction]:
    yield from dis.get_instructions(code)
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _instructions(one)

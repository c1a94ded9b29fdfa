"""Plain data held against the types of dataclasses, strictly: nothing is converted but a whole number to a float, no key may be
missing or unknown, and the first thing that is wrong is said with its place.

pydantic does this for the facts and gives the JSON Schema. Here it would cost a program that calls `gputune.apply` 60 of the 80 ms
that this may take, and it collects every fault before one can be said: half a gigabyte for a hostile file.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

Maker = Callable[[Any], Any]

_SCALARS = {bool: "true or false", int: "a whole number", float: "a number", str: "text", NoneType: "null"}


class Wrong(ValueError):
    """What is wrong, and the keys that lead there."""

    def __init__(self, what: str, place: tuple[str, ...] = ()) -> None:
        super().__init__(what)
        self.what = what
        self.place = place

    def __str__(self) -> str:
        return f"{'.'.join(self.place)}: {self.what}"

    def below(self, *keys: str) -> Wrong:
        return Wrong(self.what, (*keys, *self.place))


class _Unexpected(Wrong):
    """Another type of value than expected, which a union tells in one with its other branches."""

    def __init__(self, expected: str, given: Any) -> None:
        text = json.dumps(given, default=str)
        super().__init__(f"{expected} expected, {text if len(text) <= 60 else text[:57] + '...'} given")
        self.expected = expected


def made(kind: Any, data: Any) -> Any:
    """`data` as `kind`: a dataclass, Literal, union, tuple, dict or scalar type. Raises Wrong."""
    return _maker(kind)(data)


@cache
def _maker(kind: Any) -> Maker:
    origin, arguments = get_origin(kind), get_args(kind)
    if is_dataclass(kind):
        return _of_dataclass(kind)
    if origin is Literal:
        return _of_literal(arguments)
    if origin in (Union, UnionType):
        return _of_union(arguments)
    if origin is dict:
        return _of_dict(*arguments)
    if origin is tuple:
        return _of_any_length(arguments[0]) if arguments[-1] is Ellipsis else _of_length(arguments)
    return _of_scalars((kind,))


def _of_scalars(kinds: tuple[Any, ...]) -> Maker:
    expected = " or ".join(_SCALARS[kind] for kind in kinds)
    exact = frozenset(kinds)
    widened = float in exact and int not in exact

    def make(value: Any) -> Any:
        if type(value) in exact:
            return value
        if widened and type(value) is int:
            return float(value)
        raise _Unexpected(expected, value)

    return make


def _of_literal(words: tuple[Any, ...]) -> Maker:
    *others, last = [repr(word) for word in words]
    expected = f"{', '.join(others)} or {last}" if others else last

    def make(value: Any) -> Any:
        if type(value) is not str or value not in words:
            raise _Unexpected(expected, value)
        return value

    return make


def _of_union(kinds: tuple[Any, ...]) -> Maker:
    if all(kind in _SCALARS for kind in kinds):
        return _of_scalars(kinds)
    makers = [_maker(kind) for kind in kinds]

    def make(value: Any) -> Any:
        expected = []
        for branch in makers:
            try:
                return branch(value)
            except _Unexpected as wrong:
                expected.append(wrong.expected)
        raise _Unexpected(" or ".join(expected), value)

    return make


def _of_dict(key: Any, element: Any) -> Maker:
    make_key, make_element = _maker(key), _maker(element)

    def make(value: Any) -> Any:
        if type(value) is not dict:
            raise _Unexpected("a mapping", value)
        found = {}
        for name, one in value.items():
            try:
                found[make_key(name)] = make_element(one)
            except Wrong as wrong:
                raise wrong.below(name) from None
        return found

    return make


def _of_any_length(element: Any) -> Maker:
    make_element = _maker(element)

    def make(value: Any) -> Any:
        if type(value) is not list:
            raise _Unexpected("a list", value)
        found = []
        for number, one in enumerate(value):
            try:
                found.append(make_element(one))
            except Wrong as wrong:
                raise wrong.below(str(number)) from None
        return tuple(found)

    return make


def _of_length(elements: tuple[Any, ...]) -> Maker:
    [kind] = set(elements)
    make_all = _of_any_length(kind)

    def make(value: Any) -> Any:
        if type(value) is not list or len(value) != len(elements):
            raise _Unexpected(f"a list of {len(elements)}", value)
        return make_all(value)

    return make


def _of_dataclass(kind: Any) -> Maker:
    hints = get_type_hints(kind)
    makers = {one.name: _maker(hints[one.name]) for one in fields(kind)}
    needed = [one.name for one in fields(kind) if _is_needed(one)]

    def make(value: Any) -> Any:
        if type(value) is not dict:
            raise _Unexpected("a mapping", value)
        if missing := [name for name in needed if name not in value]:
            raise Wrong("this key is missing", (missing[0],))
        try:
            return kind(**{name: _field(makers, name, one) for name, one in value.items()})
        except Wrong:
            raise
        except ValueError as error:
            raise Wrong(str(error)) from None

    return make


def _field(makers: dict[str, Maker], name: str, value: Any) -> Any:
    if name not in makers:
        raise Wrong("there is no such key", (name,))
    try:
        return makers[name](value)
    except Wrong as wrong:
        raise wrong.below(name) from None


def _is_needed(one: Field[Any]) -> bool:
    return one.default is MISSING and one.default_factory is MISSING

"""Plain data held against the types of dataclasses, strictly, and the JSON Schema of those types.

Nothing is converted but a whole number to a float, no key may be missing or unknown, and the first fault is named with
the keys that lead to it. pydantic would take 60 of the 80 ms that `gputune.apply` may cost, and collects every fault
of a hostile file before the first can be named.
"""

from __future__ import annotations

import ast
import inspect
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from itertools import pairwise
from textwrap import dedent
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

Place = tuple[str, ...]
"""The keys that lead to a value."""
Schema = dict[str, Any]

_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "text", NoneType: "null"}
_JSON_NAMES = {bool: "boolean", int: "integer", float: "number", str: "string", NoneType: "null"}


class Mismatch(ValueError):
    """Data that does not fit its type: the fault, and the keys that lead there."""

    def __init__(self, fault: str, place: Place = ()) -> None:
        super().__init__(fault)
        self.fault = fault
        self.place = place

    def __str__(self) -> str:
        return f"{'.'.join(self.place)}: {self.fault}"

    def below(self, *keys: str) -> Mismatch:
        return Mismatch(self.fault, (*keys, *self.place))


class _WrongType(Mismatch):
    """Another type of value than expected, which a union reports together with its other branches."""

    def __init__(self, expected: str, given: Any) -> None:
        text = json.dumps(given, default=str)
        super().__init__(f"{expected} expected, {text if len(text) <= 60 else text[:57] + '...'} given")
        self.expected = expected


def convert(kind: Any, data: Any) -> Any:
    """`data` as `kind`: a dataclass, Literal, union, tuple, dict or scalar type. Raises Mismatch."""
    return _type(kind).convert(data)


def unknown(kind: Any, data: Any) -> Iterator[Place]:
    """The places of the keys in `data` that the dataclasses in `kind` do not have."""
    return _type(kind).unknown(data)


def schema(kind: Any) -> Schema:
    """The JSON Schema of a type. A dataclass within it is a definition of its own below `$defs`."""
    definitions: dict[str, Schema] = {}
    own = _type(kind)
    described = own.definition(definitions) if isinstance(own, _Dataclass) else own.schema(definitions)
    return {"$defs": definitions, **described} if definitions else described


def written(kind: Any) -> Schema:
    """The JSON Schema of what is written from a dataclass: every key is there, and a later version may add others."""
    described = schema(kind)
    for one in (described, *described.get("$defs", {}).values()):
        one |= {"required": list(one["properties"]), "additionalProperties": True}
    return described


@cache
def _type(kind: Any) -> _Type:
    """The one walk over a type, from which the reader and the schema both follow."""
    origin, arguments = get_origin(kind), get_args(kind)
    if is_dataclass(kind):
        return _Dataclass(kind)
    if origin is Literal:
        return _Literal(arguments)
    if origin in (Union, UnionType):
        return _Scalar(arguments) if all(one in _NAMES for one in arguments) else _Union(arguments)
    if origin is dict:
        return _Dict(*arguments)
    if origin is tuple:
        return _List(arguments[0], None if arguments[-1] is Ellipsis else len(arguments))
    return _Scalar((kind,))


class _Type(ABC):
    @abstractmethod
    def convert(self, value: Any) -> Any: ...

    @abstractmethod
    def schema(self, definitions: dict[str, Schema]) -> Schema: ...

    def unknown(self, value: Any) -> Iterator[Place]:
        return iter(())


class _Scalar(_Type):
    def __init__(self, kinds: tuple[Any, ...]) -> None:
        self.kinds = kinds
        self.exact = frozenset(kinds)
        self.widened = float in self.exact and int not in self.exact

    def convert(self, value: Any) -> Any:
        if type(value) in self.exact:
            return value
        if self.widened and type(value) is int:
            return float(value)
        raise _WrongType(" or ".join(_NAMES[kind] for kind in self.kinds), value)

    def schema(self, definitions: dict[str, Schema]) -> Schema:
        return _any_of([{"type": _JSON_NAMES[kind]} for kind in self.kinds])


class _Literal(_Type):
    def __init__(self, words: tuple[str, ...]) -> None:
        self.words = words

    def convert(self, value: Any) -> Any:
        if type(value) is not str or value not in self.words:
            *others, last = [repr(word) for word in self.words]
            raise _WrongType(f"{', '.join(others)} or {last}" if others else last, value)
        return value

    def schema(self, definitions: dict[str, Schema]) -> Schema:
        return {"enum": list(self.words), "type": "string"}


class _Union(_Type):
    def __init__(self, kinds: tuple[Any, ...]) -> None:
        self.branches = [_type(kind) for kind in kinds]

    def convert(self, value: Any) -> Any:
        expected = []
        for branch in self.branches:
            try:
                return branch.convert(value)
            except _WrongType as mismatch:
                expected.append(mismatch.expected)
        raise _WrongType(" or ".join(expected), value)

    def schema(self, definitions: dict[str, Schema]) -> Schema:
        return _any_of([branch.schema(definitions) for branch in self.branches])

    def unknown(self, value: Any) -> Iterator[Place]:
        for branch in self.branches:
            yield from branch.unknown(value)


class _Dict(_Type):
    def __init__(self, key: Any, element: Any) -> None:
        self.key, self.element = _type(key), _type(element)

    def convert(self, value: Any) -> Any:
        if type(value) is not dict:
            raise _WrongType("a mapping", value)
        converted = {}
        for name, element in value.items():
            try:
                converted[self.key.convert(name)] = self.element.convert(element)
            except Mismatch as mismatch:
                raise mismatch.below(name) from None
        return converted

    def schema(self, definitions: dict[str, Schema]) -> Schema:
        names = {"propertyNames": self.key.schema(definitions)} if isinstance(self.key, _Literal) else {}
        return {"type": "object", "additionalProperties": self.element.schema(definitions), **names}

    def unknown(self, value: Any) -> Iterator[Place]:
        for name, element in value.items() if type(value) is dict else ():
            yield from ((name, *place) for place in self.element.unknown(element))


class _List(_Type):
    def __init__(self, element: Any, length: int | None) -> None:
        self.element, self.length = _type(element), length

    def convert(self, value: Any) -> Any:
        if type(value) is not list or self.length not in (None, len(value)):
            raise _WrongType("a list" if self.length is None else f"a list of {self.length}", value)
        convert = self.element.convert
        converted: list[Any] = []
        try:
            for element in value:
                converted.append(convert(element))
        except Mismatch as mismatch:
            raise mismatch.below(str(len(converted))) from None
        return tuple(converted)

    def schema(self, definitions: dict[str, Schema]) -> Schema:
        element = self.element.schema(definitions)
        if self.length is None:
            return {"type": "array", "items": element}
        bounds = {"minItems": self.length, "maxItems": self.length}
        return {"type": "array", "prefixItems": [element] * self.length, **bounds}

    def unknown(self, value: Any) -> Iterator[Place]:
        for number, element in enumerate(value if type(value) is list else ()):
            yield from ((str(number), *place) for place in self.element.unknown(element))


class _Dataclass(_Type):
    def __init__(self, kind: Any) -> None:
        hints = get_type_hints(kind)
        self.kind = kind
        self.types = {one.name: _type(hints[one.name]) for one in fields(kind)}
        self.needed = [one.name for one in fields(kind) if one.default is MISSING and one.default_factory is MISSING]

    def convert(self, value: Any) -> Any:
        if type(value) is not dict:
            raise _WrongType("a mapping", value)
        if missing := next((name for name in self.needed if name not in value), None):
            raise Mismatch("this key is missing", (missing,))
        try:
            return self.kind(**{name: self._field(name, one) for name, one in value.items()})
        except Mismatch:
            raise
        except ValueError as error:
            raise Mismatch(str(error)) from None

    def _field(self, name: str, value: Any) -> Any:
        if name not in self.types:
            raise Mismatch("there is no such key", (name,))
        try:
            return self.types[name].convert(value)
        except Mismatch as mismatch:
            raise mismatch.below(name) from None

    def unknown(self, value: Any) -> Iterator[Place]:
        for name, one in value.items() if type(value) is dict else ():
            if name not in self.types:
                yield (name,)
            else:
                yield from ((name, *place) for place in self.types[name].unknown(one))

    def schema(self, definitions: dict[str, Schema]) -> Schema:
        name = self.kind.__name__
        if name not in definitions:
            definitions[name] = self.definition(definitions)
        return {"$ref": f"#/$defs/{name}"}

    def definition(self, definitions: dict[str, Schema]) -> Schema:
        docs = _field_docs(self.kind)
        generated = (self.kind.__doc__ or "").startswith(f"{self.kind.__name__}(")  # by the decorator
        return {
            "title": self.kind.__name__,
            **_description(None if generated else inspect.getdoc(self.kind)),
            "type": "object",
            "properties": {
                one.name: self._property(one, definitions) | _description(docs.get(one.name))
                for one in fields(self.kind)
            },
            "required": self.needed,
            "additionalProperties": False,
        }

    def _property(self, field: Field[Any], definitions: dict[str, Schema]) -> Schema:
        described = self.types[field.name].schema(definitions)
        title = {} if "$ref" in described else {"title": field.name.replace("_", " ").title()}
        value = list(field.default) if isinstance(field.default, tuple) else field.default
        return {**title, **described, **({} if value is MISSING else {"default": value})}


def _field_docs(kind: type) -> dict[str, str]:
    """The text below each field of a dataclass, by the field's name. Only the source has it."""
    docs: dict[str, str] = {}
    for one in reversed(kind.__mro__[:-1]):
        try:
            [made] = ast.parse(dedent(inspect.getsource(one))).body
        except OSError:  # there is no source
            continue
        for field, text in pairwise(getattr(made, "body", ())):
            match field, text:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(words))):
                    docs[name] = inspect.cleandoc(words)
    return docs


def _description(text: str | None) -> Schema:
    return {"description": text} if text else {}


def _any_of(schemas: list[Schema]) -> Schema:
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}

"""The parameters of a measured row as a dataclass, shared by the bench that writes it and the advice that reads it."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, Self, get_args, get_type_hints


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A kind of row; each field is a key of its `params`. A field that has its default is left out there."""

    @property
    def params(self) -> dict[str, Any]:
        values = {field.name: (getattr(self, field.name), field.default) for field in fields(self)}
        return {name: value for name, (value, default) in values.items() if value != default}

    @classmethod
    def of(cls, params: Mapping[str, object]) -> Self | None:
        """Read from the `params` of a row; None where a file's row lacks a key or holds another type there."""
        values: dict[str, Any] = {field.name: params.get(field.name, field.default) for field in fields(cls)}
        types = _types(cls)  # type: ignore[arg-type]  # a class is hashable
        return cls(**values) if all(_is_a(value, types[name]) for name, value in values.items()) else None


def _is_a(value: object, kind: Any) -> bool:
    """As `isinstance`, except that True and False are no numbers."""
    return isinstance(value, kind) and (type(value) is not bool or bool in (kind, *get_args(kind)))


_types = cache(get_type_hints)

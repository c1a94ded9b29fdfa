"""The parameters of a measured row as a dataclass, which the bench that writes the row shares with the advice that
reads it.
"""

from dataclasses import dataclass, fields
from typing import Any, Self, get_type_hints

from . import Measurement


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A kind of row; each field is a key of its `params`. A field that has its default is left out there."""

    @property
    def params(self) -> dict[str, Any]:
        values = {field.name: (getattr(self, field.name), field.default) for field in fields(self)}
        return {name: value for name, (value, default) in values.items() if value != default}

    @classmethod
    def of(cls, row: Measurement) -> Self | None:
        """Read from a row; None where a file's row lacks a key or holds another type there."""
        values = {field.name: row.params.get(field.name, field.default) for field in fields(cls)}
        types = get_type_hints(cls)
        return cls(**values) if all(isinstance(value, types[name]) for name, value in values.items()) else None

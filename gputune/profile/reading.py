"""Reading a profile strictly: whatever is wrong is one line with the file, the key and the remedy."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

from pydantic import TypeAdapter, ValidationError

from gputune import settings
from gputune.errors import ProfileError
from gputune.profile import strict_yaml
from gputune.profile.document import SCHEMA, Profile

MOST_BYTES = 256 * 1024

_CORRECT = "correct it, or write a new one with: gputune probe -o profile.yaml"
_NAME = "name an existing profile, or write one with: gputune probe -o profile.yaml"


class Fault(Exception):
    """What is wrong with a text, and the remedy; `load` adds the file's name."""

    def __init__(self, message: str, remedy: str = _CORRECT) -> None:
        super().__init__(message)
        self.remedy = remedy


def load(path: str | Path) -> Profile:
    """Read a profile. Raises ProfileError."""
    try:
        return parse(_bytes(Path(path)))
    except Fault as fault:
        raise ProfileError(f"{path}: {_shown(str(fault))}", fault.remedy) from None


def _shown(text: str) -> str:
    """A message that quotes a file, short, on one line and without what would steer a terminal."""
    text = "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
    return text if len(text) <= 400 else f"{text[:400]}..."


def parse(text: bytes) -> Profile:
    """A profile from the bytes of its file. Raises Fault."""
    data = _mapping(text)
    _check_schema(data)
    _check_values(data)
    try:
        return TypeAdapter(Profile).validate_json(json.dumps(data, allow_nan=False))
    except ValidationError as error:
        raise Fault(first_error(error, data)) from None
    except ValueError as error:
        raise Fault(str(error)) from None


def first_error(error: ValidationError, data: Any, place: tuple[str, ...] = ()) -> str:
    """One line for the first thing wrong in `data`, which stands at `place` in the file.

    A union reports an error for each of its branches, with the branch in the path: the path is cut where it leaves the
    data, and the branches' expectations are joined.
    """
    errors = error.errors(include_url=False)
    first = errors[0]
    path = _path(first["loc"], data, first["type"] == "missing")
    name = ".".join([*place, *(str(part) for part in path)])
    if first["type"] == "value_error":
        return f"{name}: {first['ctx']['error']}"
    if first["type"] == "missing":
        return f"{name}: this key is missing"
    if first["type"] == "unexpected_keyword_argument":
        return f"{name}: there is no such key"
    same = (one for one in errors if _path(one["loc"], data, one["type"] == "missing") == path)
    expected = " or ".join(dict.fromkeys(_expectation(one) for one in same))
    given = json.dumps(first["input"], default=str)
    return f"{name}: {expected} expected, {given if len(given) <= 60 else given[:57] + '...'} given"


def _bytes(path: Path) -> bytes:
    """The content of a regular file of bearable size. O_NONBLOCK: a named pipe must not wait for its writer."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb", closefd=True) as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise Fault("is not a regular file", _NAME)
            text = file.read(MOST_BYTES + 1)
    except IsADirectoryError:
        raise Fault("is a directory", _NAME) from None
    except (OSError, ValueError) as error:
        raise Fault(f"cannot be read: {getattr(error, 'strerror', None) or error}", _NAME) from None
    if len(text) > MOST_BYTES:
        raise Fault(f"is larger than {MOST_BYTES // 1024} KiB, which no profile is")
    return text


def _mapping(text: bytes) -> dict[str, Any]:
    try:
        data = strict_yaml.parse(text.decode())
    except UnicodeDecodeError as error:
        raise Fault(f"is not UTF-8 text (byte {error.start})") from None
    except strict_yaml.YamlError as error:
        raise Fault(str(error)) from None
    if data is None:
        raise Fault("is empty")
    if not isinstance(data, dict):
        raise Fault("is not a profile: a mapping with the key 'schema' is expected")
    return data


def _check_schema(data: Mapping[str, Any]) -> None:
    number = data.get("schema")
    if type(number) is not int:  # not isinstance: True is an int, and 1.0 equals 1
        given = f"{json.dumps(number, default=str)} given" if "schema" in data else "the key is missing"
        raise Fault(f"schema: the number {SCHEMA} expected, {given}")
    if number > SCHEMA:
        raise Fault(f"schema {number} was made by a newer gputune; this one reads {SCHEMA}", "upgrade gputune")
    if number < SCHEMA:
        raise Fault(f"schema: the number {SCHEMA} expected, {number} given")


def _check_values(data: Mapping[str, Any]) -> None:
    """Hold every setting's value against its own type. Shapes other than a setting's are left to the document's types."""
    for place, name, choice in _choices(data):
        if name not in settings.names():
            raise Fault(
                f"{'.'.join(place)}: there is no such setting", "remove it; 'gputune explain' lists the settings"
            )
        if isinstance(choice, dict) and "value" in choice:
            _check_value((*place, "value"), settings.load(name), choice["value"])


def _choices(data: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str, Any]]:
    for name, choice in _items(data.get("settings")):
        yield ("settings", name), name, choice
    for family, choices in _items(data.get("families")):
        for name, choice in _items(choices):
            yield ("families", family, name), name, choice


def _items(value: Any) -> list[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, dict) else []


def _check_value(place: tuple[str, ...], setting: Any, value: Any) -> None:
    allowed = TypeAdapter(setting.VALUE)
    try:
        allowed.validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        fault = first_error(error, value, place)
        # pydantic does not list null among an optional value's branches.
        raise Fault(
            fault.replace(" expected", " or null expected") if type(None) in get_args(setting.VALUE) else fault
        ) from None
    low, high = getattr(setting, "LIMITS", (None, None))
    for number in value.values() if isinstance(value, dict) else [value]:
        if low is not None and number is not None and not low <= number <= high:
            raise Fault(f"{'.'.join(place)}: a number from {low} to {high} expected, {number} given")


def _path(loc: tuple[int | str, ...], data: Any, missing: bool) -> tuple[int | str, ...]:
    """The part of an error's path that leads through the data, with the key at its end that is `missing`."""
    path: list[int | str] = []
    for part in loc:
        if isinstance(data, dict):
            if part not in data:
                return (*path, part) if missing else tuple(path)
            path.append(part)
            data = data[part]
        elif isinstance(data, list) and isinstance(part, int) and part < len(data):
            path.append(part)
            data = data[part]
        else:
            break
    return tuple(path)


_KINDS = {
    "bool": "true or false", "int": "a whole number", "float": "a number", "string": "text", "none_required": "null",
    "dict": "a mapping", "tuple": "a list", "dataclass": "a mapping", "finite_number": "a finite number",
}  # fmt: skip


def _expectation(error: Any) -> str:
    """What one branch wanted, in words, from pydantic's type of error."""
    kind = error["type"]
    if kind == "literal_error":
        return str(error["ctx"]["expected"])
    for start, words in _KINDS.items():
        if kind.startswith(start):
            return words
    return str(error["msg"])

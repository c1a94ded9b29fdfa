"""Reading a profile strictly: whatever is wrong is one line with the file, the key and the remedy."""

from __future__ import annotations

import json
import os
import shlex
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gputune import settings
from gputune.errors import ProfileError
from gputune.measurement import LOOKS
from gputune.profile import strict_yaml
from gputune.profile.document import SCHEMA, Profile
from gputune.strict_types import Wrong, made

MOST_BYTES = 256 * 1024
MOST_FAMILIES = 64

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
    _check_sizes(data)
    _check_values(data)
    try:
        profile: Profile = made(Profile, data)
    except Wrong as wrong:
        raise Fault(str(wrong)) from None
    return profile


def _bytes(path: Path) -> bytes:
    """The content of a regular file of bearable size, which only its owner and group can write.

    Symbolic links are followed first, since a Kubernetes ConfigMap consists of them. O_NONBLOCK: a named pipe must not wait for its
    writer. What is looked at is the open file, which no one can exchange any more.
    """
    try:
        descriptor = os.open(os.path.realpath(path), os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb", closefd=True) as file:
            mode = os.fstat(descriptor).st_mode
            if not stat.S_ISREG(mode):
                raise Fault("is not a regular file", _NAME)
            if mode & stat.S_IWOTH and not os.fstatvfs(descriptor).f_flag & os.ST_RDONLY:
                raise Fault(
                    "can be written by everybody", f"chmod o-w {shlex.quote(str(path))}, if what it says is yours"
                )
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


def _check_sizes(data: Mapping[str, Any]) -> None:
    """What no probe writes, and would keep a reader busy."""
    if len(_items(data.get("families"))) > MOST_FAMILIES:
        raise Fault(f"families: at most {MOST_FAMILIES} kinds of network expected")
    rows = data.get("measurements")
    for number, row in enumerate(rows if isinstance(rows, list) else []):
        samples = row.get("samples") if isinstance(row, dict) else None
        if isinstance(samples, list) and len(samples) > LOOKS[-1]:
            raise Fault(f"measurements.{number}.samples: at most {LOOKS[-1]} expected, {len(samples)} given")


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
    try:
        made(setting.VALUE, value)
    except Wrong as wrong:
        raise Fault(str(wrong.below(*place))) from None
    low, high = getattr(setting, "LIMITS", (None, None))
    for number in value.values() if isinstance(value, dict) else [value]:
        if low is not None and number is not None and not low <= number <= high:
            raise Fault(f"{'.'.join(place)}: a number from {low} to {high} expected, {number} given")

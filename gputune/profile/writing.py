"""Writing a profile: YAML that reads well, whole or not at all; and its JSON Schema."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from gputune import settings
from gputune.errors import MeasureError
from gputune.host import atomic
from gputune.profile import strict_yaml
from gputune.profile.document import SCHEMA, Profile


def dump(profile: Profile) -> str:
    """The profile as YAML: settings in blocks, one line for each measurement, finding and gap."""
    return "".join(_sections(asdict(profile)))


def save(profile: Profile, path: str | Path, *, replace: bool = True) -> None:
    """Write the file whole or not at all; without `replace` only where none is there.

    Raises MeasureError when it cannot be written; what stood there before still does.
    """
    target = Path(os.path.realpath(path))
    text = dump(profile)
    try:
        if target.exists() and not target.is_file():
            raise MeasureError(
                f"{path}: is not a regular file", "name another place with -o"
            )  # renaming would replace it
        atomic.write(target, text, replace=replace)
    except OSError as error:
        if isinstance(error, FileExistsError) and not replace:
            return
        raise MeasureError(
            f"{path}: not written: {error.strerror}", "make room there, or name another place with -o"
        ) from None


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a profile, with each setting's own type of value."""
    from pydantic import TypeAdapter

    schema = TypeAdapter(Profile).json_schema()
    choice = schema["$defs"].pop("Choice")
    properties = {name: _choice_schema(choice, name, setting) for name, setting in settings.all_settings().items()}
    every = {"type": "object", "properties": properties, "additionalProperties": False}
    schema["properties"] |= {
        "schema": {"const": SCHEMA},
        "settings": every,
        "families": {"type": "object", "additionalProperties": every},
    }
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _choice_schema(choice: dict[str, Any], name: str, setting: Any) -> dict[str, Any]:
    from pydantic import TypeAdapter

    value = TypeAdapter(setting.VALUE).json_schema()
    low, high = getattr(setting, "LIMITS", (None, None))
    if low is not None:
        numbers = value.get("additionalProperties") or next(
            (one for one in value.get("anyOf", []) if one["type"] == "integer"), value
        )
        numbers |= {"minimum": low, "maximum": high}
    title = (setting.__doc__ or name).split("\n")[0]
    return choice | {"title": name, "description": title, "properties": choice["properties"] | {"value": value}}


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]  # the base is chosen at run time
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: Any, value: str) -> Any:
    """Quote what either this reader or a YAML 1.1 reader would take for something other than text.

    Bytes that were no UTF-8 stand in Python's text as surrogates, which no file can hold: they are written as their numbers.
    """
    value = value.encode(errors="backslashreplace").decode()
    quoted = strict_yaml.plain(value) != value
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="'" if quoted else None)


def _number(dumper: Any, value: float) -> Any:
    """As JSON writes it, with the fraction without which a YAML 1.1 reader takes `1e-07` for text."""
    text = json.dumps(value, allow_nan=False)
    if "." not in text:
        text = text.replace("e", ".0e")
    return dumper.represent_scalar("tag:yaml.org,2002:float", text)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(float, _number)


def _yaml(value: Any, flow: bool) -> str:
    text: str = yaml.dump(
        value, Dumper=_Dumper, default_flow_style=flow, sort_keys=False, width=10**6, allow_unicode=True
    )
    return text.removesuffix("...\n").rstrip("\n")


def _sections(data: dict[str, Any]) -> Iterator[str]:
    for key, value in data.items():
        if key in ("settings", "families") and value:
            yield f"{key}:\n" + _indented(_choices(value), 2)
        elif isinstance(value, tuple | list) and value:
            yield f"{key}:\n" + _rows(value)
        else:
            yield f"{key}: {_yaml(value, flow=True)}\n"


def _rows(rows: Sequence[Any]) -> str:
    return "".join(f"- {_yaml(_trimmed(row), flow=True)}\n" for row in rows)


def _trimmed(row: dict[str, Any]) -> dict[str, Any]:
    """Without what is empty: those keys have that as their default."""
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in row.items()
        if value not in (None, {}, ())
    }


def _choices(mapping: dict[str, Any]) -> str:
    lines = []
    for name, value in mapping.items():
        lines.append(f"{_yaml(name, flow=True)}:{'' if value else ' {}'}\n")
        if "value" in value and "reason" in value:
            fields = (
                f"{key}: {_yaml(list(one) if isinstance(one, tuple) else one, flow=True)}\n"
                for key, one in value.items()
            )
            lines.append(_indented("".join(fields), 2))
        else:
            lines.append(_indented(_choices(value), 2))
    return "".join(lines)


def _indented(text: str, by: int) -> str:
    return "".join(" " * by + line for line in text.splitlines(keepends=True))

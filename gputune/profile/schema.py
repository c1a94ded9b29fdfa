"""The JSON Schema of a profile, for editors and other tools."""

from typing import Any

from gputune import settings, strict_types
from gputune.plugins import Setting
from gputune.profile.document import SCHEMA, Profile


def json_schema() -> dict[str, Any]:
    """The schema, with each setting's own type of value."""
    schema = strict_types.schema(Profile)
    choice = schema["$defs"].pop("Choice")
    properties = {name: _choice(choice, name, setting) for name, setting in settings.all_settings().items()}
    every = {"type": "object", "properties": properties, "additionalProperties": False}
    schema["properties"] |= {
        "schema": {"const": SCHEMA},
        "settings": every,
        "families": {"type": "object", "additionalProperties": every},
    }
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _choice(choice: dict[str, Any], name: str, setting: Setting) -> dict[str, Any]:
    value = strict_types.schema(setting.VALUE)
    low, high = getattr(setting, "LIMITS", (None, None))
    if low is not None:
        numbers = value.get("additionalProperties") or next(
            (one for one in value.get("anyOf", []) if one["type"] == "integer"), value
        )
        numbers |= {"minimum": low, "maximum": high}
    title = (setting.__doc__ or name).split("\n")[0]
    return choice | {"title": name, "description": title, "properties": choice["properties"] | {"value": value}}

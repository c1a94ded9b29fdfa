"""The JSON Schema of a profile, for editors and other tools."""

from typing import Any

from gputune import knobs, strict_types
from gputune.knobs import Knob
from gputune.live.models import DIGEST
from gputune.profile.document import LONGEST_ENTRY, MOST_DIMENSIONS, MOST_MODELS, MOST_SHAPES, SCHEMA, Profile
from gputune.profile.limits import MOST_PROGRAMS

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    schema = strict_types.schema(Profile)
    choice = schema["$defs"].pop("Choice")
    properties = {name: _choice(choice, name, setting) for name, setting in knobs.all_knobs().items()}
    every = {"type": "object", "properties": properties, "additionalProperties": False}
    schema["properties"] |= {
        "schema": {"const": SCHEMA},
        "settings": every,
        "families": {"type": "object", "additionalProperties": every},
    }
    # What a program is held against beside its types.
    schema["properties"]["programs"] |= {"maxItems": MOST_PROGRAMS}
    schema["$defs"]["ModelKey"]["properties"]["digest"] |= {"pattern": f"^{DIGEST}$"}
    program = schema["$defs"]["Program"]["properties"]
    program["settings"] = {"$ref": "#/properties/settings"}
    values = {name: one["properties"]["value"] for name, one in properties.items()}
    program["by_numerics"] |= {
        "additionalProperties": {"type": "object", "properties": values, "additionalProperties": False}
    }
    program["entry"] |= {"minLength": 1, "maxLength": LONGEST_ENTRY, "pattern": "^[^/]*$"}
    program["models"] |= {"maxItems": MOST_MODELS}
    program["input_shapes"] |= {"maxItems": MOST_SHAPES}
    program["input_shapes"]["items"] |= {"maxItems": MOST_DIMENSIONS, "items": {"type": "integer", "minimum": 0}}
    program["world_size"] |= {"minimum": 1}
    return {"$schema": DIALECT, **schema}


def _choice(choice: dict[str, Any], name: str, setting: Knob) -> dict[str, Any]:
    value = strict_types.schema(setting.VALUE)
    low, high = getattr(setting, "LIMITS", (None, None))
    if low is not None:
        numbers = value.get("additionalProperties") or next(
            (one for one in value.get("anyOf", []) if one["type"] == "integer"), value
        )
        numbers |= {"minimum": low, "maximum": high}
    title = (setting.__doc__ or name).split("\n")[0]
    return choice | {"title": name, "description": title, "properties": choice["properties"] | {"value": value}}

"""GPUTUNE_APPLY, which carries values to the shim: canonical JSON of setting to value, and the measured torch."""

import json
from collections.abc import Mapping

from .. import plugins, settings
from ..settings import Value

VARIABLE = "GPUTUNE_APPLY"
MOST_BYTES = 4096
_TORCH = "torch"
"""The key of the measured torch's version; no setting has this name."""


def text(values: Mapping[plugins.Setting, Value], torch: str | None) -> str:
    """The payload; empty where there is nothing to set. It has the measured `torch` where a value depends on it."""
    named = {plugins.name_of(setting): value for setting, value in values.items()}
    if torch and any(_TORCH in setting.DEPENDS for setting in values):
        named[_TORCH] = torch
    return json.dumps(named, sort_keys=True, separators=(",", ":")) if named else ""


def parse(payload: str) -> tuple[dict[str, Value], str | None]:
    """The values by setting, and the version of torch they were measured with. Raises ValueError with the reason."""
    if len(payload.encode(errors="surrogateescape")) > MOST_BYTES:
        raise ValueError(f"{VARIABLE} is longer than {MOST_BYTES} bytes")
    values = json.loads(payload)
    if not isinstance(values, dict):
        raise ValueError(f"{VARIABLE} is not a JSON object")
    return values, values.pop(_TORCH, None)


def handed_down(environ: Mapping[str, str]) -> dict[str, Value]:
    """The values that an enclosing `gputune apply` set or exported, by setting; empty where there is no such apply."""
    try:
        return parse(environ.get(VARIABLE, ""))[0]
    except (ValueError, RecursionError):
        return {}


def exported_by_us(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment variables that an enclosing `gputune apply` exported, with their values."""
    values = handed_down(environ)
    return variables({settings.load(name): value for name, value in values.items() if name in settings.names()})


def variables(values: Mapping[plugins.Setting, Value]) -> dict[str, str]:
    """The environment variables of the launch settings among these."""
    exported = [setting.environ(value) for setting, value in values.items() if setting.PHASE == "launch"]
    return {name: text for each in exported for name, text in each.items()}

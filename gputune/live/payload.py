"""GPUTUNE_APPLY, which carries values to the shim: one JSON object with the fields of `Payload`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .. import knobs
from ..knobs import Value

if TYPE_CHECKING:
    from .advice import Advice

VARIABLE = "GPUTUNE_APPLY"
TUNE = "GPUTUNE_TUNE"
"""The variable with the assignment of a run of a program that is being tuned (`orders.Assignment`)."""
MOST_BYTES = 16384


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    settings: Mapping[str, Value] = field(default_factory=dict)
    """The settings made right after `import torch`, or exported."""
    torch: str | None = None
    """The version of torch that was measured, where a value depends on it."""
    advice: Advice | None = None
    """The settings put into models."""
    elsewhere: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By program that was tuned on another machine, how that differs: not all of what was tuned is applied."""
    is_tuned: bool = False
    """Whether the process belongs to a program that is being tuned, and obeys the assignment in `TUNE`."""

    @property
    def text(self) -> str:
        """Canonical JSON; empty where there is nothing to do."""
        if not self.settings and not self.advice and not self.elsewhere and not self.is_tuned:
            return ""
        more: dict[str, Any] = {"torch": self.torch} if self.torch else {}
        more |= {"advice": self.advice.plain} if self.advice else {}
        more |= {"elsewhere": {name: list(how) for name, how in self.elsewhere.items()}} if self.elsewhere else {}
        more |= {"is_tuned": True} if self.is_tuned else {}
        return json.dumps({"settings": dict(self.settings), **more}, sort_keys=True, separators=(",", ":"))


def of(
    values: Mapping[knobs.Knob, Value],
    torch: str | None,
    advice: Advice | None = None,
    elsewhere: Mapping[str, Sequence[str]] | None = None,
) -> Payload:
    """The payload of these values, with the measured `torch` where a value depends on it."""
    depends = any("torch" in setting.DEPENDS for setting in values)
    named = {knobs.name_of(setting): value for setting, value in values.items()}
    return Payload(settings=named, torch=torch if depends else None, advice=advice, elsewhere=elsewhere or {})


def parse(text: str) -> Payload:
    """Raises ValueError with the reason."""
    if len(text.encode(errors="surrogateescape")) > MOST_BYTES:
        raise ValueError(f"{VARIABLE} is longer than {MOST_BYTES} bytes")
    data = json.loads(text)
    if not isinstance(data, dict) or not isinstance(data.get("settings"), dict):
        raise ValueError(f"{VARIABLE} is not a JSON object with settings")
    advice = None
    try:
        if data.get("advice"):
            from .advice import Advice  # which a process with flags alone does not need

            advice = Advice.from_plain(data["advice"])
        is_tuned = data.get("is_tuned") is True
        elsewhere = {str(name): tuple(map(str, how)) for name, how in data.get("elsewhere", {}).items()}
        settings, torch = data["settings"], data.get("torch")
        return Payload(settings=settings, torch=torch, advice=advice, elsewhere=elsewhere, is_tuned=is_tuned)
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"{VARIABLE} is not understood: {error}") from None


def handed_down(environ: Mapping[str, str]) -> Payload:
    """The payload of an enclosing `gputune apply`; an empty one where there is none."""
    try:
        return parse(environ.get(VARIABLE, ""))
    except (ValueError, RecursionError):
        return Payload()


def exported_by_us(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment variables that an enclosing `gputune apply` exported, with their values."""
    values = handed_down(environ).settings
    return variables({knobs.load(name): value for name, value in values.items() if name in knobs.names()})


def variables(values: Mapping[knobs.Knob, Value]) -> dict[str, str]:
    """The environment variables of the launch settings among these."""
    exported = [setting.environ(value) for setting, value in values.items() if setting.PHASE == "launch"]
    return {name: text for each in exported for name, text in each.items()}

"""One knob a file: what it may be set to, what the measurements recommend, and how it is applied and read back.

A setting's file has

- a docstring: the knob, why it matters, its source (`gputune explain NAME` prints it);
- `VALUE`: the type of its value, from which the profile is validated and its JSON Schema made;
- `PHASE`: `launch` (environment variables, before the process starts), `process` (torch globals, after `import torch`)
  or `code` (a line in the user's script, through `Tuning`);
- `NUMERICS`: what it does to results: `exact` (bit for bit the same, but that a dataset which draws random numbers draws others in
  other workers), `rounding` (same precision, another order of operations), `tf32` or `mixed`;
- `DEPENDS`: the fields of the fingerprint that its choice rests on;
- `recommend(facts, measurements) -> Choice`, always: where nothing is gained, torch's default with the reason;
- where it differs by kind of network, `of_family(facts, measurements, family) -> Choice | None`, None where that network's
  steps did not measure it;
- by phase: `environ(value)`, and `NAMES`, the variables that are the user's word on it; or `apply(value)`, `current()` and
  `default()`; or `USE`, the line in the script. A launch setting may have the second too, for a process that runs already, and has
  `current` and `default` in any case. `apply` raises ValueError, with the reason, where something else that the user chose forbids
  the value.

These are constants of the code and never keys of a profile, so a file cannot claim to be harmless. The files import the
standard library and each other only (relatively), because the shim loads this folder as a private package into
interpreters that must not see gputune.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, cast

from .. import plugins

Phase = Literal["launch", "process", "code"]
Numerics = Literal["exact", "rounding", "tf32", "mixed"]
Value = bool | int | str | dict[str, int] | None

LEVELS: tuple[Numerics, ...] = ("exact", "rounding", "tf32", "mixed")
"""What a setting may do to results, from nothing on; `--numerics` names the highest that is allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What is recommended for one setting, and why.

    `gain` is how many times as fast the alternative ran as torch's default, with its `interval` at 99 %, also where the
    default is kept because of it; both are None where nothing was measured that could give one. `evidence` names the
    benches that the choice rests on.
    """

    __pydantic_config__ = {"strict": True, "extra": "forbid", "allow_inf_nan": False}

    value: Value
    gain: float | None = None
    interval: tuple[float, float] | None = None
    reason: str
    evidence: tuple[str, ...] = field(default=())


def names() -> list[str]:
    """Every setting's name, which is its file's."""
    return list(plugins.names(__name__))


def load(name: str) -> plugins.Setting:
    """The module of one setting (see `plugins.Setting`). Raises KeyError for a name that is none."""
    return cast(plugins.Setting, plugins.load(__name__, name))


def all_settings() -> Mapping[str, plugins.Setting]:
    return {name: load(name) for name in names()}

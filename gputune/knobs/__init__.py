"""One setting a file: what it may be set to, what the measurements recommend, and how it is applied and read back.

A setting's file has

- a docstring: the setting, why it matters, and the source (`gputune explain NAME` prints it);
- `VALUE`: the type of its value, against which profiles are validated and from which the JSON Schema is derived;
- `PHASE`: `launch` (environment variables, before the process starts), `process` (torch globals, after `import torch`)
  or `code` (a line in the user's script, through `Tuning`);
- `NUMERICS`: its effect on results: `exact` (bit for bit the same, although a dataset that draws random numbers draws
  others in other workers), `rounding` (same precision, another order of operations), `tf32` or `mixed`;
- `DEPENDS`: the fields of the fingerprint on which its choice depends, if any;
- `recommend(facts, measurements) -> Choice`, always: without a gain, torch's default and the reason;
- where it differs by kind of network, or of a dataset's samples, `of_family(facts, measurements, family) -> Choice |
  None`, None where it was not measured for that kind;
- where it has more than two values, or speed in one network refuses one for all, `gain_of(facts, measurements, value,
  family) -> Comparison | None`: the speed of a value over torch's default, in a family or (with an empty one) in
  general; `_evidence.never()` for what is refused; None where these rows do not tell;
- where a change must bring more than 3 %, `WORTH`, the ratio from which it is worth it;
- where others' work on the CPUs cannot be what makes a large gain, `BELIEVED_FROM`, the ratio from which it is believed
  although they worked meanwhile;
- for `launch`, `environ(value)`, `NAMES` (the variables by which a user sets it), `current()` and `default()`; with
  `apply(value)`, it can also be set in a running process;
- for `process`, `apply(value)`, `current()` and `default()`; `apply` raises ValueError with the reason where another
  choice of the user's forbids the value;
- for `code`, `USE`: the line in the script;
- if the search tries it on a program's own steps: `STAGE`, when; `CANDIDATE`, the value that is tried beside torch's
  default; `AFTER`, the settings that it is tried on top of, as far as they are candidates; `NEEDS`, what machine and
  program must have; `SPARES_HOST`, whether a step has less to do for the host as well as for the GPU;
  `PRECISION_LIMITS`, how far results may then be from FP32's.

These are constants of the code and never keys of a profile, so a file cannot claim to be harmless. The files import
only the standard library and each other (relatively), because the shim loads this folder as part of a private package
into interpreters that must not see gputune.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast

from .. import plugins

if TYPE_CHECKING:
    from gputune.facts import Facts as Facts
    from gputune.measurement import Comparison as Comparison
    from gputune.measurement import Measurement as Measurement

    Measurements = Sequence[Measurement]
else:  # where the shim loads this folder there are no facts
    Facts = Comparison = Measurement = Measurements = Any

Phase = Literal["launch", "process", "code"]
Numerics = Literal["exact", "rounding", "tf32", "mixed"]
Stage = Literal["loading", "precision", "options", "compile"]
"""When the search tries a setting, in this order."""
Need = Literal["gpu", "cpu", "tf32", "bfloat16", "images", "attention", "training", "inference"]
"""What a machine, or a program, must have so that a setting can be tried there."""
Value = bool | int | str | dict[str, int] | None

LEVELS: tuple[Numerics, ...] = ("exact", "rounding", "tf32", "mixed")
"""The effects a setting may have on results, from none upwards; `--numerics` names the highest that is allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The relative differences from FP32 that a setting's precision explains; without arguments those of FP32 itself,
    whose convolutions run in TF32 by torch's default.
    """

    loss: float = 0.005
    gradients: float = 0.05
    """The difference of all gradients together, in the norm."""
    along: float = 0.01
    """The difference of the gradients' part in the direction of FP32's: rounding errors point anywhere, a wrong factor
    does not."""
    parameter: float = 0.15
    """The difference of one parameter's gradient, if it has a considerable share of all."""
    outputs: float = 0.005
    """The difference of a model's outputs for the same inputs, in the norm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The recommended value of one setting, and why.

    `gain` is the measured speed of the alternative divided by that of torch's default, with its `interval` at 99 %,
    also where the default is kept because of it; both are None where neither was measured. `evidence` names the benches
    behind the choice. `unmeasured`: nothing that would tell was measured, or too little of it. `provisional`: the
    benches were disturbed, or must run again before they are believed. In both cases the value is torch's default.
    `since` (UTC, ISO 8601): an earlier probe of this machine chose the value, and it still stands.
    """

    value: Value
    gain: float | None = None
    interval: tuple[float, float] | None = None
    reason: str
    evidence: tuple[str, ...] = field(default=())
    unmeasured: bool = False
    provisional: bool = False
    since: str | None = None


def names() -> list[str]:
    return list(plugins.names(__name__))


def load(name: str) -> plugins.Setting:
    """The module of one setting (see `plugins.Setting`). Raises KeyError for an unknown name."""
    return cast(plugins.Setting, plugins.load(__name__, name))


def all_settings() -> Mapping[str, plugins.Setting]:
    return {name: load(name) for name in names()}


def value_text(value: Value) -> str:
    """A setting's value in words; `none` stands for torch's own choice."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {number}" for key, number in value.items()) or "unknown"
    if value is None:
        return "none"
    return ("on" if value else "off") if isinstance(value, bool) else str(value)

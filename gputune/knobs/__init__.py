"""Knobs: one setting a file, which is the only place that knows how the setting is turned on, read back and undone.

A knob's file has

- a docstring: the setting, why it matters, and the source (`gputune explain NAME` prints it);
- `VALUE`: the type of its value, against which profiles are validated and from which the JSON Schema is derived;
  `DEFAULT`, torch's own value; `LIMITS`, if it is a number, the least and the most that a profile may hold; and
  `UNMEASURED`, the reason for the default if no bench measures it;
- `PHASE`: `launch` (environment variables, before the process starts), `process` (torch's flags, after `import torch`)
  or `code` (a line of the user's script, or turned on in a running program's models);
- `NUMERICS`: its effect on results: `exact` (bit for bit the same, although a dataset that draws random numbers draws
  others in other workers), `rounding` (same precision, another order of operations), `tf32` or `mixed`;
- `DEPENDS`: the fields of the fingerprint on which its choice depends;
- for `launch`, `environ(value)`, `NAMES` (the variables by which a user sets it) and `current()`; with `apply(value)`,
  it can also be set in a running process; with `cpus_of_rank()`, ranks below a launcher get no more than that;
- for `process`, `apply(value)` and `current()`; `apply` raises ValueError with the reason if another choice of the
  user's forbids the value; if torch has several ways to set the flag, `undoing()`, which returns what sets all of them
  back to what they are now, and `chooses(setter, given)`, whether a call of one of torch's setters sets the flag; and
  `obstacle(root, value)` as below, if a model can be a reason not to set it;
- for both, `default()` if torch's own value differs by machine or release;
- for `code`, `USE`: the line in the script. If it can be turned on in a model of a running program:
  `obstacle(root, value)`, the reason why it is not turned on in this model, or None; `turn_on(root, value)`, which
  returns the value in force and may raise; `turn_off(root)`, after which the model is as it was before; `IN_CALLS`,
  whether it may make the model's calls fail; then `FAULTS`, a pattern of what torch says as it fails, and of the
  attributes of tensors that a program's asserts may find changed; and `INSTEAD`, other values that are turned on for
  some;
- if the search tries it on a program's own steps: `STAGE`, when; `CANDIDATE`, the value that is tried beside torch's
  default; `AFTER`, the settings that it is tried on top of, as far as they are candidates; `NEEDS`, what machine and
  program must have; `SPARES_HOST`, whether a step has less to do for the host as well as for the GPU;
  `PRECISION_LIMITS`, how far results may then be from FP32's.

These are constants of the code and never keys of a profile, so a file cannot claim to be harmless. The files import
only the standard library and, relatively, each other and what is carried beside them; torch inside functions.
"""

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, cast, get_args

Phase = Literal["launch", "process", "code"]
Numerics = Literal["exact", "rounding", "tf32", "mixed"]
Stage = Literal["loading", "precision", "options", "compile"]
"""When the search tries a setting, in this order."""
Need = Literal["gpu", "cpu", "tf32", "bfloat16", "images", "attention", "training", "inference"]
"""A property of a machine or a program without which a setting is not tried there."""
Value = bool | int | str | dict[str, int] | None
Root = Any
"""A model that a running program calls: `live.root.Root`, which stands above."""

LEVELS: tuple[Numerics, ...] = get_args(Numerics)
"""The effects a setting may have on results, from none upwards; `--numerics` names the highest that is allowed."""
STAGES: tuple[Stage, ...] = get_args(Stage)


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


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a setting is not turned on in a model."""

    why: str
    users: bool = False
    """Whether because the program does something of the kind itself."""


class Knob(Protocol):
    """The package's docstring says which of these a knob has."""

    __name__: str
    __doc__: str | None

    VALUE: Any
    DEFAULT: Any
    PHASE: Phase
    NUMERICS: Numerics
    DEPENDS: tuple[str, ...]
    USE: str
    NAMES: tuple[str, ...]
    IN_CALLS: bool
    FAULTS: str
    INSTEAD: Mapping[Value, Value]

    def environ(self, value: Any) -> dict[str, str]: ...
    def apply(self, value: Any) -> None: ...
    def current(self) -> Any: ...
    def cpus_of_rank(self) -> int | None: ...
    def undoing(self) -> Callable[[Sequence[Any]], None]: ...
    def chooses(self, setter: str, given: Sequence[Any]) -> bool: ...
    def default(self) -> Any: ...
    def obstacle(self, root: Root, value: Value) -> Obstacle | None: ...
    def turn_on(self, root: Root, value: Value) -> Value: ...
    def turn_off(self, root: Root) -> None: ...


def names() -> list[str]:
    from .. import plugins  # which a process with flags alone does not need

    return list(plugins.names(__name__))


def load(name: str) -> Knob:
    """The module of one knob (see `Knob`). Raises KeyError for an unknown name."""
    if name.startswith("_") or not name.isidentifier():
        raise KeyError(name)
    try:
        return cast(Knob, importlib.import_module(f"{__name__}.{name}"))
    except ModuleNotFoundError as error:
        if error.name != f"{__name__}.{name}":
            raise
        raise KeyError(name) from None


def name_of(knob: Knob) -> str:
    return knob.__name__.rpartition(".")[2]


def all_knobs() -> Mapping[str, Knob]:
    return {name: load(name) for name in names()}


def in_order(given: Iterable[str]) -> list[str]:
    """In the order in which settings are tried and turned on: by the search's stages, each behind those that `AFTER`
    names, and then by their effect on results.
    """

    def place(name: str) -> tuple[int, int, int, str]:
        knob = load(name)
        stage = getattr(knob, "STAGE", None)
        return STAGES.index(stage) if stage else len(STAGES), _depth(name), LEVELS.index(knob.NUMERICS), name

    return sorted(given, key=place)


def _depth(name: str) -> int:
    return max((_depth(one) + 1 for one in getattr(load(name), "AFTER", ())), default=0)


def in_models() -> list[str]:
    """The settings that can be turned on in the models of a running program, in order."""
    return in_order(name for name in names() if hasattr(load(name), "turn_on"))


def turned_on_for(name: str, value: Value) -> Value:
    """The value that is turned on in a model if this one is asked for: another one only if the knob says so."""
    instead: Mapping[Value, Value] = getattr(load(name), "INSTEAD", {})
    return instead.get(value, value) if isinstance(value, str) else value


def default_of(knob: Knob) -> Value:
    """Torch's own value in this process."""
    return cast(Value, knob.default() if hasattr(knob, "default") else knob.DEFAULT)


def is_default(knob: Knob, value: Value) -> bool:
    """Whether the value leaves torch alone: None always; False, zero and empty except for torch's own flags."""
    return value is None or (knob.PHASE != "process" and not value)


def is_beyond(knob: Knob, value: Value, limit: Numerics | None) -> bool:
    """Whether a value affects results more than the limit allows; torch's default never does."""
    if limit is None or value == knob.DEFAULT:
        return False
    return LEVELS.index(knob.NUMERICS) > LEVELS.index(limit)


def given(name: str, value: object) -> str:
    """That a program decides by this argument itself, with its value where that can be typed."""
    return f"the program gave {name}" + (f"={value!r}" if value is None or isinstance(value, int | str) else "")


def value_text(value: Value) -> str:
    """A setting's value in words; `none` stands for torch's own choice."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {number}" for key, number in value.items()) or "unknown"
    if value is None:
        return "none"
    return ("on" if value else "off") if isinstance(value, bool) else str(value)

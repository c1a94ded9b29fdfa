"""The parts of a profile's answer, as data: what is gained and how, what was chosen, and what to type next."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Literal

from gputune.settings import Value

PLACEHOLDER = "PROFILE"
"""Stands in a command for the path of a profile that is in no file, or fits on no line."""


class By(Enum):
    """How a gain is reached."""

    APPLY = auto()
    """`gputune apply` alone: variables and torch's flags."""
    MIXED = auto()
    """What `gputune apply --numerics mixed`, or `gputune tune`, puts into the models of a script that nobody edits."""
    SCRIPT = auto()
    """Lines of the script: float16 needs a loss scaler."""
    LOADER = auto()
    """Arguments of a DataLoader: by `--inject-dataloader`, by `gputune tune`, or by a line of the script."""
    LOADER_LINES = auto()
    """As LOADER, but for `--inject-dataloader`, which follows the general number of workers, and that is none."""
    PROGRAM = auto()
    """`gputune apply` alone, which recognises the program that was tuned."""
    NONE = auto()
    """There is nothing to gain: torch's defaults are as fast."""
    UNCERTAIN = auto()
    """Parts of what was chosen gain, and all of it together not with certainty."""
    UNMEASURED = auto()
    """What would tell was not measured, or too little of it."""
    UNKNOWN = auto()
    """The choices stand from an earlier probe, and the profile has no rows of them together."""
    PROVISIONAL = auto()
    """The machine was too busy to tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How many times as fast as torch's defaults something was measured to be, with the interval at 99 %."""

    times: float
    interval: tuple[float, float]
    without: tuple[str, ...] = ()
    """The settings that go in as well, and were not measured with the rest: they are not in the figure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """What one kind of network, one kind of samples, or one tuned program gains over torch's defaults."""

    kind: Literal["network", "samples", "program"]
    name: str
    """The family (`transformer`, `waiting`; `decoding` or `dataset` for the general choice), or the program's entry."""
    by: By
    times: float | None = None
    """With all that is recommended; None where no figure is known."""
    interval: tuple[float, float] | None = None
    by_apply: Reach | None = None
    """What `gputune apply` alone reaches; None where it was not measured. Of networks only, as is the next one."""
    by_mixed: Reach | None = None
    """What `gputune apply --numerics mixed` reaches."""
    workers: int | None = None
    """Of samples: the recommended number."""
    guard: str = ""
    """Of a program: what became of its loss."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """A setting that is not at torch's default, and its own gain; `family` is empty for the general choice."""

    name: str
    value: Value
    gain: float | None
    interval: tuple[float, float] | None
    family: str = ""


class Step(Enum):
    """What a command of `Next` is for."""

    REPAIR = auto()
    """An error was found: its remedy comes first. The words are the remedy, to be typed as it stands."""
    LOOK = auto()
    """Whether it is mended."""
    AGAIN = auto()
    """Choices are provisional: measure them again once the machine is idle."""
    MEASURE = auto()
    """Most is not measured."""
    MEASURE_OTHERS = auto()
    """Most is not measured but for a program that was tuned, which a probe leaves as it is."""
    RETRY = auto()
    """Benches gave no result: run them once more."""
    PROGRAM = auto()
    """Run a program that was tuned."""
    APPLY = auto()
    MIXED = auto()
    """As APPLY, with what goes into the script's models."""
    LOADER = auto()
    """As APPLY, with workers for DataLoaders that were given none."""
    TUNE = auto()
    HERE = auto()
    """The profile was measured on another machine: measure this one, into a file of its own."""
    TUNE_ANYWAY = auto()
    """Nothing is to be applied; a script of one's own may differ from the reference networks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """A command to type next, in words, and what it is for."""

    step: Step
    words: tuple[str, ...]

"""The outcome of a setting in a process, as one row, and why: a plain sentence, or data if code asks for the reason."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Literal, Self, TypeGuard

from ..knobs import Value

Status = Literal["applied", "kept-user", "changed-later", "skipped", "failed"]
Source = Literal["profile", "environment", "program", "torch"]

TF32_OVERRIDE = "NVIDIA_TF32_OVERRIDE"
"""0 forbids TF32 in cuBLAS and cuDNN, 1 forces it in matmuls and RNNs; either overrules torch's flags."""

OTHER = "other"
"""The reason, in JSON, of a plain sentence that no code asks for."""


class Reason(Enum):
    """The reasons that code asks for. The value is the sentence, with placeholders for the arguments."""

    DEFAULT = "torch's default"
    ELSEWHERE = "measured on another machine: {all}"
    BEYOND_NUMERICS = "beyond the numerics limit {0}: its effect on results is {1}"
    PUT_IN = "put into {all}"
    TF32_FORBIDDEN = TF32_OVERRIDE + "=0 defeats it: nothing will run in TF32"
    TF32_FORCED = TF32_OVERRIDE + "=1 defeats it: matmuls and RNNs will run in TF32"
    NO_MODEL = "no model that returned tensors was called with gradients between two optimizer steps"
    NO_STEP = "no optimizer took two steps"
    MANY_MODELS = "{0} modules are called one by one"
    OTHER_MODELS = "tuned for other models than this program's"
    CAPTURES = "the program captures a CUDA graph"
    FEW_CALLS = "no optimizer took two steps, and no dozen calls were made without gradients"
    NO_LOADER = "no DataLoader was asked for a batch"
    NO_IMAGES = "it has no 2-d convolutions"

    def __call__(self, *arguments: object) -> "Why":
        return Why(self.name.lower(), tuple(str(argument) for argument in arguments))


@dataclass(frozen=True, slots=True)
class Why:
    """A reason with its arguments, as in JSON, where a plain sentence is the argument of `OTHER`."""

    reason: str
    """The name of a `Reason` in lower case."""
    arguments: tuple[str, ...]

    @property
    def kind(self) -> Reason:
        return Reason[self.reason.upper()]

    def __str__(self) -> str:
        return self.kind.value.format(*self.arguments, all=", ".join(self.arguments))


def is_one(why: Why | str, *reasons: Reason) -> TypeGuard[Why]:
    return isinstance(why, Why) and why.kind in reasons


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """One setting: its value before and after, who chose it, and why. None is an unknown or missing value."""

    setting: str
    before: Value = None
    after: Value = None
    status: Status
    source: Source | None = None
    """Who chose the value in force: the profile, the environment, the program itself, or torch (its default)."""
    reasons: tuple[Why | str, ...]

    def __str__(self) -> str:
        """One line: `matmul_precision tf32 (was ieee): applied (profile), in this process`."""
        from ..knobs import value_text
        from ..resources.printable import printable

        value = "" if self.after is None else f" {value_text(self.after)}"
        was = "" if self.before in (None, self.after) else f" (was {value_text(self.before)})"
        source = f" ({self.source})" if self.source else ""
        return printable(f"{self.setting}{value}{was}: {self.status}{source}, {self.why}")

    @property
    def why(self) -> str:
        return "; ".join(map(str, self.reasons))

    def because(self, *reasons: Reason) -> tuple[str, ...] | None:
        """The arguments of the first of the row's reasons that is one of these kinds; None where no reason is."""
        return next((why.arguments for why in self.reasons if is_one(why, *reasons)), None)

    def and_because(self, *more: Why | str) -> Self:
        return replace(self, reasons=(*self.reasons, *more))

    @property
    def plain(self) -> dict[str, Any]:
        """The row for JSON, and for crossing between this module and its copy below the private parent package."""
        whys = [why if isinstance(why, Why) else Why(OTHER, (why,)) for why in self.reasons]
        reasons = [{"reason": why.reason, "arguments": list(why.arguments)} for why in whys]
        return {
            "setting": self.setting, "before": self.before, "after": self.after, "status": self.status,
            "source": self.source, "why": self.why, "reasons": reasons,
        }  # fmt: skip

    @classmethod
    def from_plain(cls, row: Mapping[str, Any]) -> Self:
        names = {OTHER, *(reason.name.lower() for reason in Reason)}
        reasons: tuple[Why | str, ...] = tuple(
            why["arguments"][0] if why["reason"] == OTHER else Why(why["reason"], tuple(why["arguments"]))
            for why in row["reasons"]
        )
        if any(why["reason"] not in names for why in row["reasons"]):
            reasons = (row["why"],)  # of another version, whose shim this process was started with
        return cls(**{name: row[name] for name in ("setting", "before", "after", "status", "source")}, reasons=reasons)

"""What became of a setting, and why: reasons are data, and their sentence is made at the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Literal

from ..settings import Value

Status = Literal["applied", "kept-user", "changed-later", "skipped", "failed"]
Source = Literal["profile", "environment", "program", "torch"]

TF32_OVERRIDE = "NVIDIA_TF32_OVERRIDE"
"""0 forbids TF32 to cuBLAS and cuDNN and 1 forces it on matmuls and RNNs, whatever torch's flags say."""


class Reason(Enum):
    """Why a setting has its status; the value is the sentence, with places for the arguments."""

    DISABLED = "GPUTUNE_DISABLE=1"
    DEFAULT = "torch's default"
    ELSEWHERE = "measured on another machine: {all}"
    OTHER_TORCH = "measured with torch {0}, and this is {1}"
    BEYOND_NUMERICS = "left out by numerics {0}: its effect on results is {1}"
    SHARED_CPUS = "the command starts several processes, which share the CPUs"
    NEEDS_START = "takes effect before a process starts: gputune apply PROFILE -- CMD"
    IN_SCRIPT = "takes a line in the script: {0}"
    BY_LINE = "by the script's own line"
    BY_LINE_FOR = "by the script's own line, for a {0}"
    AFTER_TORCH = "right after import torch"
    IN_PROCESS = "in this process"
    IN_PROCESS_LATE = "in this process, where its variable would come too late"
    BY_VARIABLE = "by its variable"
    EXPORTS = "{all}"
    EXPORTED = "{all} is exported"
    VARIABLE_ASKS = "its variable asks for {0}"
    ALREADY = "it already was so"
    SET_BEFORE = "the program or its environment had set {0}"
    FORBIDDEN = "{0}"
    CHANGED_LATER = "the program changed it later, from {0}"
    NOT_SET_HERE = "no profile set it here"
    TF32_FORBIDDEN = TF32_OVERRIDE + "=0 defeats it: no TF32 will run"
    TF32_FORCED = TF32_OVERRIDE + "=1 defeats it: TF32 will run in matmuls and RNNs"
    NO_SUCH_SETTING = "this gputune has no such setting"
    READS_OTHERWISE = "it was set to {0} and reads {1}"
    UNREADABLE_NOW = "now it cannot be read: {0}"
    COMPILE_FAILED = "torch.compile failed: {0}"
    ERROR = "{0}: {1}"
    TOO_FEW_SAMPLES = "a dataset of {0} has nothing to load ahead"
    SAMPLE_KIND = "{0}, for which {1} measured best"
    NO_TEMPORARY_FOLDER = "workers need a folder for temporary files (TMPDIR), and there is none"
    OTHER_CPUS = "{0} measured with {1} CPUs, {2} here"
    LITTLE_SHM = "batches of {0} MiB, and /dev/shm has {1} MiB free for them"
    WORKERS_SHARE_CPUS = "{0} measured, and {1} workers share {2} CPUs here"

    def __call__(self, *arguments: object) -> Why:
        return Why(self, tuple(str(argument) for argument in arguments))


@dataclass(frozen=True, slots=True)
class Why:
    """A reason with its arguments."""

    reason: Reason
    arguments: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.reason.value.format(*self.arguments, all=", ".join(self.arguments))


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """One setting: its value before and after, who chose that, and why. None where there is nothing to say."""

    setting: str
    before: Value = None
    after: Value = None
    status: Status
    source: Source | None = None
    """Whose value holds: the profile's, one of the environment, one that the program set itself, or torch's default."""
    reasons: tuple[Why, ...]

    @property
    def why(self) -> str:
        """The reasons as one sentence."""
        return "; ".join(map(str, self.reasons))

    def because(self, *reasons: Reason) -> tuple[str, ...] | None:
        """The arguments of the first of these reasons; None where it is not for one of them."""
        return next((why.arguments for why in self.reasons if why.reason in reasons), None)

    def and_because(self, *more: Why) -> Applied:
        return replace(self, reasons=(*self.reasons, *more))

    @property
    def plain(self) -> dict[str, Any]:
        """As JSON has it, and as it passes between this module and its copy below another parent package."""
        reasons = [{"reason": why.reason.name.lower(), "arguments": list(why.arguments)} for why in self.reasons]
        return {
            "setting": self.setting, "before": self.before, "after": self.after, "status": self.status,
            "source": self.source, "why": self.why, "reasons": reasons,
        }  # fmt: skip

    @classmethod
    def of_plain(cls, row: Mapping[str, Any]) -> Applied:
        reasons = tuple(Why(Reason[one["reason"].upper()], tuple(one["arguments"])) for one in row["reasons"])
        kept = {name: row[name] for name in ("setting", "before", "after", "status", "source")}
        return cls(**kept, reasons=reasons)

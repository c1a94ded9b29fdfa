"""The outcome of a setting, and why. Reasons are data, which become a sentence only in a report."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Literal, Self

from ..settings import Value

Status = Literal["applied", "kept-user", "changed-later", "skipped", "failed"]
Source = Literal["profile", "environment", "program", "torch"]

TF32_OVERRIDE = "NVIDIA_TF32_OVERRIDE"
"""0 forbids TF32 in cuBLAS and cuDNN, 1 forces it in matmuls and RNNs; either overrules torch's flags."""


class Reason(Enum):
    """Why a setting has its status. The value is the sentence, with placeholders for the arguments."""

    DISABLED = "switched off by GPUTUNE_DISABLE=1"
    DEFAULT = "torch's default"
    ELSEWHERE = "measured on another machine: {all}"
    OTHER_TORCH = "measured with torch {0}, but this is torch {1}"
    BEYOND_NUMERICS = "beyond the numerics limit {0}: its effect on results is {1}"
    NOT_ASKED = "not among the settings that were asked for"
    SHARED_CPUS = "the command starts several processes, which share the CPUs"
    NEEDS_START = "must be set before a process starts: gputune apply PROFILE -- CMD"
    IN_SCRIPT = "needs a line in the script: {0}"
    BY_LINE = "used by the script"
    BY_LINE_FOR = "used by the script, with the value for {0} models"
    INTO_MODELS = "put into each model in its first steps, as measured for its kind"
    INTO_LOADERS = "put into each DataLoader that was given no workers"
    PUT_IN = "put into {all}"
    BFLOAT16_INSTEAD = "bfloat16 instead of float16, which needs a loss scaler"
    AFTER_TORCH = "right after import torch"
    IN_PROCESS = "in this process"
    IN_PROCESS_LATE = "in this process, too late for its environment variable"
    TUNED_WITHOUT = "as it was tuned"
    BY_VARIABLE = "through its environment variable"
    EXPORTS = "{all}"
    EXPORTED = "already exported: {all}"
    VARIABLE_ASKS = "its environment variable asked for {0}"
    ALREADY = "already had this value"
    SET_BEFORE = "the program or its environment had already set {0}"
    FORBIDDEN = "{0}"
    CHANGED_LATER = "the program later changed it from {0}"
    NOT_SET_HERE = "not set by gputune in this process"
    TF32_FORBIDDEN = TF32_OVERRIDE + "=0 defeats it: nothing will run in TF32"
    TF32_FORCED = TF32_OVERRIDE + "=1 defeats it: matmuls and RNNs will run in TF32"
    NO_SUCH_SETTING = "this gputune has no such setting"
    READS_OTHERWISE = "set to {0}, but reads back as {1}"
    UNREADABLE_NOW = "its current value cannot be read: {0}"
    COMPILE_FAILED = "torch.compile failed: {0}"
    ERROR = "{0}: {1}"
    OTHER_VERSION = "in the words of another version: {0}"
    TOO_FEW_SAMPLES = "nothing to load ahead in a dataset of length {0}"
    SAMPLE_KIND = "{0}; {1} workers measured best for such samples"
    NO_TEMPORARY_FOLDER = "workers need a folder for temporary files (TMPDIR), and none is available"
    OTHER_CPUS = "{0} workers were measured with {1} CPUs, and this process has {2}"
    LITTLE_SHM = "a batch takes {0} MiB, and this process's share of /dev/shm is {1} MiB"
    NO_MODEL = "no model was called with gradients between two optimizer steps"
    NO_STEP = "no optimizer took two steps"
    MANY_MODELS = "{0} modules are called one by one"
    OLD_TORCH = "torch {0} is older than 2.4"
    OTHER_MODELS = "tuned for other models than this program's"
    OWN_AUTOCAST = "the program uses autocast or half precision itself"
    OWN_INFERENCE = "the program uses inference mode itself"
    TRAINS = "the program computes gradients"
    OPAQUE = "it returns a {0}, which cannot be looked into"
    HOOKED = "it has hooks, which may keep what is made in inference mode"
    KEEPS = "the model keeps {0}, which is made in inference mode"
    FEW_CALLS = "no optimizer took two steps, and no dozen calls were made without gradients"
    OWN_COMPILE = "the program compiles it itself"
    OWN_FORMAT = "the program uses channels_last itself"
    OWN_ARGUMENT = "the program gave {0}"
    LEFT_SCRIPTED = "{0} is compiled by torch.jit"
    LEFT_SHARDED = "{0} holds the parameters in its own way"
    LEFT_OPTIMIZER = "trained by {0}"
    LEFT_DTYPE = "its parameters are {0}"
    LEFT_MIXED = "its parameters are not all FP32 on one device"
    LEFT_DEVICE = "its parameters are on {0}, and this was measured on {1}"
    LEFT_CHECKPOINTING = "it uses selective checkpointing"
    LEFT_DOUBLE_BACKWARD = "the program differentiates gradients (create_graph), which torch.compile does not support"
    LEFT_FUNCTION = "{0}: an autograd.Function that may not bear autocast (it lacks custom_fwd)"
    NEEDS_SCALER = "this device computes in float16 only, which needs a loss scaler in the script"
    NO_FUSED_FORM = "{0} has no fused form"
    NO_OPTIMIZER = "no optimizer of torch's trains it"
    SPARSE = "its gradients are sparse"
    NO_IMAGES = "it has no 2-d convolutions"
    FIVE_DIMENSIONS = "it has 5-d tensors"
    FORWARD_REPLACED = "the forward of {0} was replaced"
    WRAPPED_BEFORE = "DistributedDataParallel had wrapped it before"
    CALL_FAILED = "its call failed with it: {0}: {1}"
    ITERABLE = "an IterableDataset would be repeated by every worker"
    START_METHOD = "workers would be started by {0}, and only fork needs nothing of the script"
    DRAWS_RANDOM = "its samples draw random numbers, which differ in workers"
    NOT_IN_WORKERS = "a forked process could not load its first sample"

    def __call__(self, *arguments: object) -> "Why":
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
    """One setting: its value before and after, who chose it, and why. None is an unknown or missing value."""

    setting: str
    before: Value = None
    after: Value = None
    status: Status
    source: Source | None = None
    """Who chose the value in force: the profile, the environment, the program itself, or torch (its default)."""
    reasons: tuple[Why, ...]

    def __str__(self) -> str:
        """One line: `matmul_precision tf32 (was ieee): applied (profile), in this process`."""
        from ..resources.printable import printable
        from ..settings import value_text

        value = "" if self.after is None else f" {value_text(self.after)}"
        was = "" if self.before in (None, self.after) else f" (was {value_text(self.before)})"
        source = f" ({self.source})" if self.source else ""
        return printable(f"{self.setting}{value}{was}: {self.status}{source}, {self.why}")

    @property
    def why(self) -> str:
        """The reasons as one sentence, for a report."""
        return "; ".join(map(str, self.reasons))

    def because(self, *reasons: Reason) -> tuple[str, ...] | None:
        """The arguments of the first of the row's reasons that is one of these kinds; None where no reason is."""
        return next((why.arguments for why in self.reasons if why.reason in reasons), None)

    def and_because(self, *more: Why) -> Self:
        return replace(self, reasons=(*self.reasons, *more))

    @property
    def plain(self) -> dict[str, Any]:
        """The row for JSON, and for crossing between this module and its copy below the private parent package."""
        reasons = [{"reason": why.reason.name.lower(), "arguments": list(why.arguments)} for why in self.reasons]
        return {
            "setting": self.setting, "before": self.before, "after": self.after, "status": self.status,
            "source": self.source, "why": self.why, "reasons": reasons,
        }  # fmt: skip

    @classmethod
    def from_plain(cls, row: Mapping[str, Any]) -> Self:
        try:
            reasons = tuple(Why(Reason[why["reason"].upper()], tuple(why["arguments"])) for why in row["reasons"])
        except KeyError:  # a row of another version, whose shim this process was started with
            reasons = (Reason.OTHER_VERSION(row["why"]),)
        fields = {name: row[name] for name in ("setting", "before", "after", "status", "source")}
        return cls(**fields, reasons=reasons)

"""The profile's types. Settings come from a closed list with typed values: no environment, no paths, no expressions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from gputune.advice import Choice
from gputune.checks import Finding
from gputune.facts.gap import Gap
from gputune.knobs import Numerics, Value
from gputune.live.models import ModelKey
from gputune.measurement import Measurement
from gputune.strict_types import Mismatch

if TYPE_CHECKING:
    from gputune.facts import Facts

SCHEMA = 1

LONGEST_ENTRY = 255
MOST_MODELS = 32
MOST_SHAPES = 32
MOST_DIMENSIONS = 8
MOST_WINDOWS = 16
MOST_STARTS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """The hardware and libraries that a choice may rest on. A setting's DEPENDS names fields of this, or `device`."""

    gpu: str | None = None
    """The GPU's name; None for a profile of the CPU."""
    gpu_count: int = 0
    compute_capability: str | None = None
    driver: str | None = None
    torch: str | None = None
    cuda: str | None = None
    cublas: str | None = None
    cudnn: str | None = None
    cpu: str | None = None
    cpu_budget: int | None = None

    @property
    def device(self) -> str | None:
        return self.gpu or self.cpu

    def differences(self, other: Fingerprint, fields: Sequence[str]) -> list[str]:
        """Which of `fields` differ, as `device (NVIDIA H200 there, AMD EPYC here)`; `other` is this machine's."""
        pairs = ((name, getattr(self, name), getattr(other, name)) for name in fields)
        return [
            f"{name} ({there or 'none'} there, {here or 'none'} here)" for name, there, here in pairs if there != here
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """Whether a program trains with its settings as it does in FP32."""

    verdict: Literal["accepted", "refused", "unknown", "off"]
    """Refused: no combination was accepted, and nothing is put in. Unknown: FP32 itself shows nothing to compare with,
    as where no loss was seen or a script does not repeat itself. Off: it was not asked.
    """
    steps: int
    """The length of each run, in iterations of the training loop."""
    reason: str = ""
    fp32: tuple[tuple[float, float], ...] = ()
    """For each part of a run, the lowest and the highest mean loss that FP32 runs of other seeds had."""
    tuned: tuple[float, ...] = ()
    """For each part, the mean loss with the settings."""

    def __post_init__(self) -> None:
        _check_length(self.fp32, MOST_WINDOWS, "fp32")
        _check_length(self.tuned, MOST_WINDOWS, "tuned")


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """How long steps take in whole starts of a program, in turn with torch's defaults and with its settings."""

    plain_ms: tuple[float, ...]
    tuned_ms: tuple[float, ...]
    cost_seconds: float
    """How much longer the first steps take with the settings."""

    def __post_init__(self) -> None:
        for name in ("plain_ms", "tuned_ms"):
            times = getattr(self, name)
            _check_length(times, MOST_STARTS, name)
            if not times or min(times) <= 0:
                raise Mismatch("times above 0 expected", (name,))


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Settings measured on one training script of the user's, with the names and keys by which it is recognised."""

    entry: str
    """The script's file name (`train.py`) or the module's name (`package.train`), never a path."""
    created: str
    """UTC, ISO 8601."""
    fingerprint: Fingerprint
    models: tuple[ModelKey, ...]
    input_shapes: tuple[tuple[int, ...], ...]
    """The shapes of the tensors that the models were called with."""
    world_size: int
    """The number of processes that trained together."""
    settings: dict[str, Choice]
    by_numerics: dict[Numerics, dict[str, Value]]
    """The best combination of values whose effect on results stays within each level."""
    measurements: tuple[Measurement, ...] = ()
    trains: bool = True
    """Whether it takes steps of an optimizer; otherwise its models' calls without gradients were tuned."""
    guard: Guard | None = None
    confirmation: Confirmation | None = None
    dataset: str | None = None
    """The class of the dataset whose DataLoader was tuned; None if none was, and in older files."""
    gaps: tuple[Gap, ...] = ()
    """The settings that could not be tried, or failed, and why."""
    refused: tuple[Gap, ...] = ()
    """The combinations that gained and that the guard refused, and why."""

    @property
    def key(self) -> tuple[str, tuple[ModelKey, ...], int]:
        """The same for each tune of one program."""
        return self.entry, self.models, self.world_size

    def __post_init__(self) -> None:
        if not 1 <= len(self.entry) <= LONGEST_ENTRY or "/" in self.entry:
            raise Mismatch(f"a name of 1 to {LONGEST_ENTRY} characters without a slash expected", ("entry",))
        if len(self.dataset or "") > LONGEST_ENTRY:
            raise Mismatch(f"a name of at most {LONGEST_ENTRY} characters expected", ("dataset",))
        if self.world_size < 1:
            raise Mismatch(f"a number from 1 expected, {self.world_size} given", ("world_size",))
        _check_length(self.models, MOST_MODELS, "models")
        _check_length(self.input_shapes, MOST_SHAPES, "input_shapes")
        for number, shape in enumerate(self.input_shapes):
            _check_length(shape, MOST_DIMENSIONS, "input_shapes", str(number))
            if min(shape, default=0) < 0:
                raise Mismatch(f"no negative number expected, {min(shape)} given", ("input_shapes", str(number)))


def _check_length(values: Sequence[object], most: int, *place: str) -> None:
    if len(values) > most:
        raise Mismatch(f"at most {most} expected, {len(values)} given", place)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One machine's profile, with every setting. A file must have all parts but `programs`: else it was cut off."""

    schema: int
    created: str
    """UTC, ISO 8601."""
    gputune: str
    fingerprint: Fingerprint
    settings: dict[str, Choice]
    families: dict[str, dict[str, Choice]]
    """The choices that differ from `settings` by kind of network, from measured training steps."""
    programs: tuple[Program, ...] = ()
    """The user's own training scripts that were measured. They stand before the parts that no file may miss."""
    measurements: tuple[Measurement, ...]
    findings: tuple[Finding, ...]
    gaps: tuple[Gap, ...]


def now() -> str:
    """The time at which a profile is created: UTC, ISO 8601."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def fingerprint(facts: Facts, device: str) -> Fingerprint:
    gpu = facts.device_gpu(device)
    same_model = [other for other in facts.gpus if gpu and other.name == gpu.name and other.torch_index is not None]
    return Fingerprint(
        gpu=gpu.name if gpu else None,
        gpu_count=len(same_model),
        compute_capability=gpu.compute_capability if gpu else None,
        driver=facts.driver.version if gpu else None,
        torch=facts.libraries.torch,
        cuda=facts.libraries.cuda,
        cublas=facts.libraries.cublas,
        cudnn=facts.libraries.cudnn,
        cpu=facts.cpu.model,
        cpu_budget=facts.cpu.budget,
    )

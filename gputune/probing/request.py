"""What is to be probed, which devices that comes to, and how a probe tells where it stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from gputune.bench_process import Budget, MatmulShape, UserDataset
from gputune.errors import MeasureError, UsageError
from gputune.facts import Facts
from gputune.facts.gap import Gap

ALL = "all"
"""In the place of a device: all GPUs of this node, at once."""

OPTIONS = {"shapes": "FILE", "dataset": "FILE.py:CALLABLE"}
"""What a user may name, which its bench then measures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Where a probe stands: bench `number` of `count`, what it does now, and the seconds that it may take."""

    number: int
    count: int
    bench: str
    doing: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to probe: `device` is auto, cpu, cuda, cuda:N or all; `only` names the benches to run (all that fit the budget by
    default); `shapes` are matmuls of the user's own, `dataset` what is to be loaded.
    """

    device: str = "auto"
    budget: Budget = "standard"
    only: Sequence[str] = ()
    shapes: Sequence[MatmulShape] = ()
    dataset: Sequence[UserDataset] = ()

    @property
    def options(self) -> dict[str, Any]:
        """What the user named, as it travels to the benches that ask for it."""
        named: dict[str, Sequence[Any]] = {option: getattr(self, option) for option in OPTIONS}
        return {option: [asdict(one) for one in asked] for option, asked in named.items() if asked}


def device_of(found: Facts, asked: str) -> str:
    """The device that was asked for (auto, cpu, cuda or cuda:N) as torch names it. Raises UsageError; MeasureError where it is not
    there.
    """
    kind, _, index = asked.partition(":")
    visible = _visible(found)
    if asked == "auto":
        return f"cuda:{visible[0]}" if visible else "cpu"
    if asked == "cpu":
        return "cpu"
    if kind != "cuda" or not ((index.isascii() and index.isdigit()) or asked == "cuda"):
        raise UsageError(f"--device {asked}: there is no such device", "choose from auto, cpu, cuda, cuda:N")
    if int(index or 0) not in visible:
        raise _none(asked, visible)
    return f"cuda:{int(index or 0)}"


def devices_of(found: Facts) -> tuple[list[str], list[Gap]]:
    """All GPUs that torch sees and that are of the first one's kind, since one profile is to hold for them; a Gap for each other.

    Raises MeasureError where torch sees none.
    """
    visible = _visible(found)
    if not visible:
        raise _none(ALL, visible)
    names = {f"cuda:{index}": gpu.name for index in visible if (gpu := found.device_gpu(f"cuda:{index}"))}
    first, *_ = names.values()
    others = {device: name for device, name in names.items() if name != first}
    gaps = [
        Gap(fact=device, reason=f"not measured, since it is of another kind ({name}): gputune probe --device {device}")
        for device, name in others.items()
    ]
    return [device for device in names if device not in others], gaps


def _visible(found: Facts) -> list[int]:
    return sorted(gpu.torch_index for gpu in found.gpus if gpu.torch_index is not None)


def _none(asked: str, visible: Sequence[int]) -> MeasureError:
    seen = f"torch sees {len(visible)} GPU{'' if len(visible) == 1 else 's'}" if visible else "torch sees no GPU"
    return MeasureError(f"--device {asked}: {seen}", "see: gputune check, or measure the CPU with --device cpu")

"""The input of a probe, and the devices that it means."""

from collections.abc import Sequence
from dataclasses import dataclass

from gputune.bench_process import Budget, MatmulShape, UserDataset
from gputune.errors import MeasureError, UsageError
from gputune.facts import Facts
from gputune.facts.gap import Gap

ALL = "all"
"""The value of `--device` for all GPUs of this node at once."""

OPTIONS = {"shapes": "FILE", "dataset": "FILE.py:CALLABLE"}
"""The options that name something for a bench to measure, each a field of Request, and the form of their argument."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The input of a probe: `device` is auto, cpu, cuda, cuda:N or all; `only` names the benches to run (by default all
    that the budget has time for); `shapes` are the user's matmuls, `dataset` the user's dataset.
    """

    device: str = "auto"
    budget: Budget = "standard"
    only: Sequence[str] = ()
    shapes: Sequence[MatmulShape] = ()
    dataset: Sequence[UserDataset] = ()

    def named(self, option: str) -> Sequence[object]:
        """Return what the user named by an option; nothing for one that a probe does not have."""
        values: Sequence[object] = getattr(self, option) if option in OPTIONS else ()
        return values


def device_of(facts: Facts, requested: str) -> str:
    """Return the requested device (auto, cpu, cuda or cuda:N) by torch's name. Raises UsageError for any other word,
    MeasureError for a GPU that torch does not see.
    """
    kind, _, index = requested.partition(":")
    visible = _visible(facts)
    if requested == "auto":
        return f"cuda:{visible[0]}" if visible else "cpu"
    if requested == "cpu":
        return "cpu"
    if kind != "cuda" or not ((index.isascii() and index.isdigit()) or requested == "cuda"):
        raise UsageError(f"--device {requested}: there is no such device", "choose from auto, cpu, cuda, cuda:N")
    if int(index or 0) not in visible:
        raise _not_there(requested, visible)
    return f"cuda:{int(index or 0)}"


def devices_of(facts: Facts) -> tuple[list[str], list[Gap]]:
    """Return the GPUs of the first one's model that torch sees, since one profile is to hold for all, and a Gap for
    each of another model. Raises MeasureError where torch sees none.
    """
    visible = _visible(facts)
    if not visible:
        raise _not_there(ALL, visible)
    names = {f"cuda:{index}": gpu.name for index in visible if (gpu := facts.device_gpu(f"cuda:{index}"))}
    first, *_ = names.values()
    others = {device: name for device, name in names.items() if name != first}
    gaps = [
        Gap(fact=device, reason=f"not measured, since it is another model ({name}): gputune probe --device {device}")
        for device, name in others.items()
    ]
    return [device for device in names if device not in others], gaps


def _visible(facts: Facts) -> list[int]:
    return sorted(gpu.torch_index for gpu in facts.gpus if gpu.torch_index is not None)


def _not_there(requested: str, visible: Sequence[int]) -> MeasureError:
    seen = f"torch sees {len(visible)} GPU{'' if len(visible) == 1 else 's'}" if visible else "torch sees no GPU"
    return MeasureError(f"--device {requested}: {seen}", "see: gputune check, or measure the CPU with --device cpu")

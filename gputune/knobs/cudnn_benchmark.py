"""Let cuDNN time its algorithms for each new convolution shape and keep the fastest (`torch.backends.cudnn.benchmark`).

It pays only where cuDNN's own choice is poor, costs a search for every new shape (so it hurts where shapes vary), takes
memory for what it tries, and may choose another algorithm in the next run. So it must certainly gain a tenth in whole
training steps whose peak memory was looked at. Deterministic mode (`cudnn.deterministic` or
`torch.use_deterministic_algorithms`) wins over it.

Source: PyTorch, "Reproducibility" and "Performance tuning guide".
"""

from collections.abc import Callable, Sequence
from typing import Any

from . import Need, Numerics, Phase, Stage
from ._setters import SET_BENCHMARK, by_us

VALUE = bool
DEFAULT = False
PHASE: Phase = "process"
NUMERICS: Numerics = "rounding"
DEPENDS = ("device", "compute_capability", "torch")
STAGE: Stage = "options"
AFTER = ("fused_optimizer",)
CANDIDATE = True
NEEDS: tuple[Need, ...] = ("gpu", "images")


def apply(value: bool) -> None:
    import torch

    if value and (torch.backends.cudnn.deterministic or torch.are_deterministic_algorithms_enabled()):
        raise ValueError("deterministic mode is on, and wins")
    with by_us():
        torch.backends.cudnn.benchmark = value


def current() -> bool:
    import torch

    return bool(torch.backends.cudnn.benchmark)


def chooses(setter: str, given: Sequence[Any]) -> bool:
    """Whether a function of `torch._C` sets cuDNN's search."""
    return setter == SET_BENCHMARK


def undoing() -> Callable[[Sequence[Any]], None]:
    """Make a function that sets cuDNN's search back to its present value."""
    was = current()
    return lambda _: apply(was)

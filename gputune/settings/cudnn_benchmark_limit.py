"""How many plans cuDNN's own search times for a new convolution (`torch.backends.cudnn.benchmark_limit`): torch's 10, 0 for all.

It plays a part only where `cudnn_benchmark` is on. More plans make the search longer, for every new shape, and seldom end in
a faster one: cuDNN lists them by what it expects of them. No bench tries other limits, so a profile keeps torch's
until you write a number there.

Source: PyTorch, `torch.backends.cudnn`.
"""

from __future__ import annotations

from typing import Any

from . import Choice, Numerics, Phase
from ._evidence import keep

VALUE = int | None
PHASE: Phase = "process"
NUMERICS: Numerics = "rounding"
DEPENDS = ("device", "compute_capability", "torch")
LIMITS = (0, 1000)

OF_TORCH = 10


def recommend(facts: Any, measurements: Any) -> Choice:
    return keep(None, f"torch's default, {OF_TORCH} plans a shape; other limits are not measured")


def apply(value: int) -> None:
    import torch

    if current() is None:
        raise RuntimeError("this torch was built without cuDNN")
    torch.backends.cudnn.benchmark_limit = value


def current() -> int | None:
    """None where torch was built without cuDNN."""
    import torch

    limit = torch.backends.cudnn.benchmark_limit
    return None if limit is None else int(limit)


def default() -> int | None:
    return None if current() is None else OF_TORCH
